#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: front no-controllers
# nodestrap sets the condition NodestrapReady in the status of its Node, with the rights of the node. Each verdict is one write, also after
# later boots and runs by hand. Other writers of the status leave it alone. With cluster.repairCondition, nodestrap also sets
# AcceleratedHardwareReady, unless another manager owns it.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
spool=root/run/nodestrap/events instance=i-0123456789abcdef0
mkdir root && "$tests/fixtures/expand.sh" m5-large root && cp root/proc/meminfo meminfo
mkdir -p root/sys/devices/virtual/dmi/id root/proc/sys/kernel/random; echo $instance >root/sys/devices/virtual/dmi/id/board_asset_tag
cat /proc/sys/kernel/random/boot_id >root/proc/sys/kernel/random/boot_id
printf '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {}}\n' >root/more.json

ill() { rm -f root/proc/meminfo; echo nonsense >root/proc/meminfo; }
well() { rm -f root/proc/meminfo; cp meminfo root/proc/; }
# shellcheck disable=SC2120    # try passes them
init() { nodestrap init --root root -c imds://user-data -c file:///more.json "$@"; }
fails() { ! init 2>said || { cat said; return 1; }; }
reboot() { rm -r root/run; mkdir -p root/{run,proc/sys/kernel/random}; cat /proc/sys/kernel/random/uuid >root/proc/sys/kernel/random/boot_id; }
send() { timeout 100 "$NODESTRAP" send-events --root root 2>sent; }
# The events of failures have a script of their own.
send_condition() { find $spool -type f ! -name '*.condition' -delete 2>/dev/null; send; }
waiting() { find $spool -name '*.condition' 2>/dev/null | wc -l; }
condition() { kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='NodestrapReady')]$1}"; }
has() { is "$(condition .status) $(condition .reason)" "$1 $2"; }
version() { kubectl get node $NODE -o 'jsonpath={.metadata.resourceVersion}'; }
patch() { kubectl patch node $NODE --type=merge -p "$1" >/dev/null; }

# ---- the first boot ----
try "the first init succeeds" init
try "init leaves no notice if the Node does not exist" is "$(waiting)" 0
register; patch "{\"spec\": {\"providerID\": \"aws:///us-west-2a/$instance\"}}"
try "wait sees that the Node is registered" nodestrap wait --root root --for registered --timeout 30s
try "wait leaves one notice" is "$(waiting)" 1
try "only root can read the notice" is "$(stat -c %a $spool/*)" 600
try "send-events sends the first notice" send_condition
try "send-events prints one line that names the condition" is "$(cat sent)" "nodestrap: Set in cluster training: condition NodestrapReady=True (NodestrapDone) of Node $NODE."
try "the Node has NodestrapReady=True" has True NodestrapDone
try "the times of the condition are the time of the write" is "$(condition .lastHeartbeatTime)" "$(condition .lastTransitionTime)"
described() { kubectl describe node $NODE >described; grep -E "$1" described || { cat described; return 1; }; }
try "kubectl describe node shows the condition" described 'NodestrapReady +True .* NodestrapDone +nodestrap has done all steps of this boot'
grep -E '^Conditions:|NodestrapReady' described | sed 's/^/# /'
try "the condition Ready of kubelet is still there" is "$(kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='Ready')].status}")" True

# ---- ten faults ----
since() { condition .lastTransitionTime; }
first=$(since); until [ "$(date -u +%FT%TZ)" != "$first" ]; do :; done
# A NodeConfig of one line, and the code of its failure.
while IFS='|' read -r code spec; do
        printf '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": %s}\n' "$spec" >root/more.json
        try "$code: init fails" fails
        try "$code: send-events sends the notice" send_condition
        try "$code: the Node has NodestrapReady=False" has False "$code"
        try "$code: the condition has the sentence of the failure" grep -qF "$(condition .message | cut -c1-60)" said
        [ -n "${fault-}" ] || fault=$(since)
done <<'END'
ESYNTAX|{
EINVALID|{"instance": {"hugePages": {"mode": "sometimes"}}}
EINVALID|{"instance": {"sysctl": {"kernel.modprobe": "/bin/sh"}}}
EINVALID|{"kubelet": {"config": {"maxPods": -1}}}
EINVALID|{"instance": {"localStorage": {"strategy": "RAID7"}}}
EINVALID|{"accelerator": {"nvidia": {"imex": {"mode": "host"}}}}
EINVALID|{"instance": {"network": {"efa": {"mode": "perhaps"}}}}
EINVALID|{"kubelet": {"flags": ["--node-lables=a=b"]}}
END
echo >root/empty
try "init fails without a NodeConfig" no nodestrap init --root root -c file:///empty
try "send-events sends the notice about the missing NodeConfig" send_condition
try "the Node has NodestrapReady=False with ENOCONFIG" has False ENOCONFIG
printf '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {}}\n' >root/more.json
ill; try "init fails if the memory is unknown" fails
try "send-events sends the notice about the unknown memory" send_condition
try "the Node has NodestrapReady=False with EFACTS" has False EFACTS
try "the first failure changes the transition time of the condition" no is "$fault" "$first"
try "later failures keep the transition time of the first one" is "$(since)" "$fault"
try "later failures change the heartbeat time of the condition" no is "$(condition .lastHeartbeatTime)" "$fault"
second=$(since) before=$(version)
try "init fails again with the same failure" fails
try "send-events succeeds for the same failure" send_condition
try "send-events does not write the same failure again" is "$(version)" "$before"
well; try "init succeeds after the repair" init
try "send-events sends the notice about the repair" send_condition
try "the Node has NodestrapReady=True after the repair" has True NodestrapDone
try "the repair changes the transition time" no is "$(since)" "$second"

# ---- other boots ----
reboot; try "the first phases of the next boot succeed" init --skip run
try "send-events sends the notice about the first phases" send_condition
try "the Node has NodestrapReady=Unknown during the boot" has Unknown NodestrapRunning
try "the last phase of the next boot succeeds" init --skip config
try "send-events sends the notice about the last phase" send_condition
try "the Node has NodestrapReady=True after the last phase" has True NodestrapDone
reboot; try "a boot succeeds before the sender has a network" init
try "a boot that the sender missed leaves only the last notice" is "$(waiting)" 1
try "send-events sends the last notice of the missed boot" send_condition
try "the Node has NodestrapReady=True after the missed boot" has True NodestrapDone

# ---- other writers ----
# As kubelet patches the status (kubernetes: pkg/util/node, PatchNodeStatus()).
heartbeats() {
        local n token; token=$(nodestrap token --cluster-name training --region $REGION | python3 -c 'import json, sys; print(json.load(sys.stdin)["status"]["token"])')
        for n in {10..39}; do
                curl -sS --fail-with-body --cacert "$CLUSTER/pki/ca.crt" -H "Authorization: Bearer $token" -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' -o answer \
                        -d "{\"status\": {\"\$setElementOrder/conditions\": [{\"type\": \"Ready\"}], \"conditions\": [{\"type\": \"Ready\", \"lastHeartbeatTime\": \"2026-01-02T03:04:${n}Z\"}]}}" \
                        "$API/api/v1/nodes/$NODE/status" || { cat answer; return 1; }
        done
        is "$(kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='Ready')].lastHeartbeatTime}")" 2026-01-02T03:04:39Z
}
try "the API server accepts thirty heartbeats of kubelet" heartbeats
try "heartbeats of kubelet leave NodestrapReady alone" has True NodestrapDone
other='{"status": {"conditions": [{"type": "NodestrapReady", "status": "Unknown", "reason": "Other"}]}}'
try "another writer can change NodestrapReady" kubectl patch node $NODE --subresource=status --type=strategic -p "$other"
init 2>said; send_condition
try "the next verdict replaces the condition of the other writer" has True NodestrapDone

# ---- what does not go ----
delete() { kubectl delete node $NODE >/dev/null; }
# later NAME CODE MEND: the sender waits, says why once, and sends the notice when it can
later() {
        local pid; : >sent; ill; fails; find $spool -type f ! -name '*.condition' -delete; timeout 100 "$NODESTRAP" send-events --root root 2>sent & pid=$!
        until grep -q "condition NodestrapReady has not been sent yet ($2)" sent; do kill -0 $pid 2>/dev/null || { cat sent; try "$1: send-events waits" false; return; }; sleep 0.05; done
        $3; wait $pid
        try "$1: send-events sends the notice when it can" has False EFACTS
        well; init 2>said; send_condition
        try "$1: send-events sends the recovery" has True NodestrapDone
}
registers() { register; patch "{\"spec\": {\"providerID\": \"aws:///us-west-2a/$instance\"}}"; }
delete; later "a Node that was deleted" ENOTREGISTERED registers
theirs() { delete; register; patch '{"spec": {"providerID": "aws:///us-west-2a/i-0fedcba9876543210"}}'; }
theirs; later "a Node of another instance" ENOTREGISTERED "eval delete; registers"
stop front; later "an API server that is down" EAPIROUTE front_start
front_says status=503 2>/dev/null; later "an API server that answers 503" EAPIERROR "front_says pass"
# deny CODE EXPRESSION: the cluster denies conditions c for which this is true
deny() {
        cat <<-END | kubectl apply -f - >/dev/null
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: no-conditions}
	spec:
	  failurePolicy: Fail
	  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [nodes/status], operations: [UPDATE]}]}
	  validations: [{expression: "!object.status.conditions.exists(c, $2)", message: "not here", reason: $1}]
	---
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicyBinding
	metadata: {name: no-conditions}
	spec: {policyName: no-conditions, validationActions: [Deny]}
	END
        local end=$((SECONDS + 60))
        until kubectl patch node $NODE --subresource=status --type=strategic -p "{\"status\": {\"conditions\": [{\"type\": \"${3-NodestrapReady}\", \"status\": \"False\", \"reason\": \"EFACTS\", \"message\": \"$RANDOM\"}]}}" 2>&1 |
                grep -qi "is $1: .*not here"; do [ $SECONDS -lt $end ] || return; sleep 0.1; done
}
for word in "Forbidden EFORBIDDEN" "Invalid EAPIERROR"; do
        try "the cluster denies NodestrapReady (${word% *})" deny "${word% *}" "c.type == 'NodestrapReady' && c.reason == 'EFACTS'"
        ill; fails; try "send-events succeeds if the cluster denies NodestrapReady" send_condition
        try "send-events drops the notice if the cluster denies NodestrapReady" is "$(waiting)" 0
        try "send-events prints one line if the cluster denies NodestrapReady" is "$(wc -l <sent)" 1
        try "the line of send-events says why the cluster denies NodestrapReady" bash -c 'grep -E "condition NodestrapReady was not sent \($1\): .*not here" sent || { cat sent; false; }' _ "${word#* }"
        kubectl delete validatingadmissionpolicybinding no-conditions >/dev/null; well
done

# ---- AcceleratedHardwareReady ----
# unhealthy REASON: makes the last verdict one about a GPU, as tests/boot/gpu-health-machine.sh has it on a machine
unhealthy() {
        ill; fails
        kubectl patch node $NODE --subresource=status --type=merge -p "{\"status\": {\"nodeInfo\": {\"bootID\": \"$(cat root/proc/sys/kernel/random/boot_id)\"}}}" >/dev/null
        python3 - root/run/nodestrap/status.json "$1" <<-'END' && well && nodestrap wait --root root --for registered --timeout 10s 2>waited
	import json, sys
	path, reason = sys.argv[1:]
	status = json.load(open(path))
	text = "GPU 5 (0000:a8:00.0): NVIDIA driver: the GPU has fallen off the bus"
	findings = [{"word": "pcie-width", "address": "0000:53:00.0", "unusable": False, "text": "slow"},
	            {"word": "off-the-bus", "address": "0000:a8:00.0", "unusable": True, "text": text, "gpu": 5, "reason": reason}]
	status.update(code="EHEALTH", step="check-health:gpus", text=text, accelerator={"health": {"complete": True, "findings": findings}})
	json.dump(status, open(path, "w"))
	END
}
hardware() { kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='AcceleratedHardwareReady')]$1}"; }
hardware_is() { is "$(hardware .status) $(hardware .reason)" "$1 $2"; }
# agent STATUS: another manager writes it
agent() {
        kubectl patch node $NODE --subresource=status --type=strategic --field-manager=eks-node-monitoring-agent \
                -p "{\"status\": {\"conditions\": [{\"type\": \"AcceleratedHardwareReady\", \"status\": \"$1\", \"reason\": \"Agent\", \"message\": \"$RANDOM\"}]}}"
}
says() { is "$(cat sent)" "$1"; }
set_line() { echo "nodestrap: Set in cluster training: condition $1 of Node $NODE."; }
refusal="nodestrap: warning: condition AcceleratedHardwareReady=False (NvidiaXID79Error) was not sent:"
init 2>said; send_condition
try "a boot without a failure does not set AcceleratedHardwareReady" is "$(hardware .status)" ""
try "wait succeeds after a verdict about an unusable GPU" unhealthy NvidiaXID79Error
try "wait leaves one notice about the unusable GPU" is "$(waiting)" 1
try "send-events sends the notice about the unusable GPU" send_condition
try "the Node has NodestrapReady=False with EHEALTH" has False EHEALTH
try "the Node has AcceleratedHardwareReady=False with the reason of the GPU" hardware_is False NvidiaXID79Error
try "the message of AcceleratedHardwareReady is the finding" is "$(hardware .message)" "GPU 5 (0000:a8:00.0): NVIDIA driver: the GPU has fallen off the bus"
try "send-events names both conditions" says "$(set_line 'NodestrapReady=False (EHEALTH)'; set_line 'AcceleratedHardwareReady=False (NvidiaXID79Error)')"
kubectl describe node $NODE | grep -E '^Conditions:|NodestrapReady|AcceleratedHardware' | sed 's/^/# /'
before=$(version); unhealthy NvidiaXID79Error; send_condition
try "send-events does not write the same GPU failure again" is "$(version)" "$before"
first=$(hardware .lastTransitionTime); until [ "$(date -u +%FT%TZ)" != "$first" ]; do :; done
unhealthy NvidiaXID154Error; send_condition
try "send-events writes another reason of a GPU failure" hardware_is False NvidiaXID154Error
try "another reason keeps the transition time of AcceleratedHardwareReady" is "$(hardware .lastTransitionTime)" "$first"
ill; fails; send_condition
try "the Node has NodestrapReady=False with EFACTS after a failure of another kind" has False EFACTS
try "a failure of another kind leaves AcceleratedHardwareReady alone" hardware_is False NvidiaXID154Error
well; reboot; init --skip run 2>said; send_condition
try "a boot that is not over leaves AcceleratedHardwareReady alone" hardware_is False NvidiaXID154Error
try "the last phase of the boot after the GPU failure succeeds" init --skip config
send_condition
try "the Node has NodestrapReady=True after the GPU failure" has True NodestrapDone
try "the Node has AcceleratedHardwareReady=True after the GPU failure" hardware_is True NodestrapDone
before=$(version); init 2>said; send_condition
try "send-events does not write the same success again" is "$(version)" "$before"

agent True >said
try "another manager owns AcceleratedHardwareReady" grep -q eks-node-monitoring-agent <(kubectl get node $NODE -o yaml --show-managed-fields)
unhealthy NvidiaXID79Error; send_condition
try "the Node has NodestrapReady=False if another manager owns the hardware condition" has False EHEALTH
try "nodestrap leaves AcceleratedHardwareReady to the other manager" hardware_is True Agent
try "a warning names the other manager of AcceleratedHardwareReady" says "$(set_line 'NodestrapReady=False (EHEALTH)'; echo "$refusal eks-node-monitoring-agent owns this condition of Node $NODE; leave repairs to it, and remove spec.cluster.repairCondition")"
try "send-events does not retry a condition of another manager" is "$(waiting)" 0
agent False >said; init 2>said; send_condition
try "the Node has NodestrapReady=True if another manager owns the hardware condition" has True NodestrapDone
try "a good boot leaves AcceleratedHardwareReady=False of the other manager" hardware_is False Agent
try "a good boot prints no line about the condition of the other manager" says "$(set_line 'NodestrapReady=True (NodestrapDone)')"
patch '{"metadata": {"managedFields": [{}]}}'; unhealthy NvidiaXID79Error; send_condition
try "nodestrap leaves AcceleratedHardwareReady alone if its manager is unknown" hardware_is False Agent
try "a warning says that an unknown manager owns AcceleratedHardwareReady" grep -qF "$refusal an unknown manager owns" sent
delete; registers >said; well; init 2>said; send_condition

for word in "Forbidden EFORBIDDEN" "Invalid EAPIERROR"; do
        try "the cluster denies AcceleratedHardwareReady (${word% *})" deny "${word% *}" "c.type == 'AcceleratedHardwareReady'" AcceleratedHardwareReady
        delete; registers >said; rm -f root/var/lib/nodestrap/condition.json; unhealthy NvidiaXID79Error
        try "send-events succeeds if the cluster denies AcceleratedHardwareReady" send_condition
        try "the Node has NodestrapReady=False if the cluster denies the hardware condition" has False EHEALTH
        try "the Node has no AcceleratedHardwareReady if the cluster denies it" is "$(hardware .status)" ""
        try "send-events drops the notice if the cluster denies AcceleratedHardwareReady" is "$(waiting)" 0
        try "send-events prints one line if the cluster denies AcceleratedHardwareReady" is "$(wc -l <sent)" 1
        try "the line of send-events says why the cluster denies AcceleratedHardwareReady" bash -c 'grep -E "condition AcceleratedHardwareReady was not sent \($1\): .*not here" sent || { cat sent; false; }' _ "${word#* }"
        kubectl delete validatingadmissionpolicybinding no-conditions >/dev/null; reboot; init --skip run 2>said; send_condition
        try "the next boot sets NodestrapReady=Unknown after the denial" has Unknown NodestrapRunning
        init --skip config 2>said; send_condition
done
unhealthy NvidiaXID79Error; find $spool -type f ! -name '*.condition' -delete; front_says status=503; timeout 100 "$NODESTRAP" send-events --root root 2>sent & pid=$!
until grep -q "has not been sent yet (EAPIERROR)" sent; do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
front_says pass; wait $pid
try "an API server that answers 503 gets AcceleratedHardwareReady=False later" hardware_is False NvidiaXID79Error
well; init 2>said; send_condition
try "the recovery sets AcceleratedHardwareReady=True" hardware_is True NodestrapDone

echo '{"machine": 7' >root/var/lib/nodestrap/condition.json
try "init succeeds with a damaged condition.json" init
try "init with a damaged condition.json leaves no notice" is "$(waiting)" 0
finish
