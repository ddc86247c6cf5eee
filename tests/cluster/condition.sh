#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: front no-controllers
# The condition NodestrapReady in the status of the own Node, set with the rights of the node. There is one write for a verdict, also after
# later boots and typed runs. Writers of the rest of the status leave it alone. With cluster.repairCondition also AcceleratedHardwareReady,
# unless another manager has it.
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
try "a boot ends well" init
try "of a Node that does not exist, nothing is told" is "$(waiting)" 0
register; patch "{\"spec\": {\"providerID\": \"aws:///us-west-2a/$instance\"}}"
try "the wait sees it registered" nodestrap wait --root root --for registered --timeout 30s
try "and leaves one notice" is "$(waiting)" 1
try "for root alone" is "$(stat -c %a $spool/*)" 600
try "which is sent" send_condition
try "at the first attempt" is "$(cat sent)" "nodestrap: Set in cluster training: condition NodestrapReady=True (NodestrapDone) of Node $NODE."
try "the Node has it" has True NodestrapDone
try "its times are those of the write" is "$(condition .lastHeartbeatTime)" "$(condition .lastTransitionTime)"
described() { kubectl describe node $NODE >described; grep -E "$1" described || { cat described; return 1; }; }
try "kubectl describe node shows it" described 'NodestrapReady +True .* NodestrapDone +nodestrap has done all steps of this boot'
grep -E '^Conditions:|NodestrapReady' described | sed 's/^/# /'
try "Ready of kubelet is still there" is "$(kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='Ready')].status}")" True

# ---- ten faults ----
since() { condition .lastTransitionTime; }
first=$(since); until [ "$(date -u +%FT%TZ)" != "$first" ]; do :; done
# A NodeConfig of one line, and the code of its failure.
while IFS='|' read -r code spec; do
        printf '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": %s}\n' "$spec" >root/more.json
        try "$code: the run fails" fails
        try "$code: it is sent" send_condition
        try "$code: the Node says False" has False "$code"
        try "$code: and the sentence" grep -qF "$(condition .message | cut -c1-60)" said
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
try "no NodeConfig: the run fails" no nodestrap init --root root -c file:///empty
try "it is sent" send_condition
try "the Node says so" has False ENOCONFIG
printf '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {}}\n' >root/more.json
ill; try "unknown memory: the run fails" fails
try "it is sent" send_condition
try "the Node says so" has False EFACTS
try "False is not the state of the beginning" no is "$fault" "$first"
try "and one state since the first of them" is "$(since)" "$fault"
try "which was written since" no is "$(condition .lastHeartbeatTime)" "$fault"
second=$(since) before=$(version)
try "the same failure again" fails
try "it is sent" send_condition
try "and not written again" is "$(version)" "$before"
well; try "mended" init
try "it is sent" send_condition
try "the Node is well" has True NodestrapDone
try "since now" no is "$(since)" "$second"

# ---- other boots ----
reboot; try "the first phases of the next boot" init --skip run
try "say that they work" send_condition
try "which is not known yet" has Unknown NodestrapRunning
try "its end" init --skip config
try "is told" send_condition
try "the Node is well again" has True NodestrapDone
reboot; try "a boot that is over before the sender has a network" init
try "leaves the last word alone" is "$(waiting)" 1
try "that is sent" send_condition
try "the Node is well" has True NodestrapDone

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
try "thirty heartbeats of kubelet" heartbeats
try "leave it alone" has True NodestrapDone
other='{"status": {"conditions": [{"type": "NodestrapReady", "status": "Unknown", "reason": "Other"}]}}'
try "another writer" kubectl patch node $NODE --subresource=status --type=strategic -p "$other"
init 2>said; send_condition
try "has it until the next verdict" has True NodestrapDone

# ---- what does not go ----
delete() { kubectl delete node $NODE >/dev/null; }
# later NAME CODE MEND: it waits, says why once, and is sent when it can be
later() {
        local pid; : >sent; ill; fails; find $spool -type f ! -name '*.condition' -delete; timeout 100 "$NODESTRAP" send-events --root root 2>sent & pid=$!
        until grep -q "condition NodestrapReady is not sent yet ($2)" sent; do kill -0 $pid 2>/dev/null || { cat sent; try "$1: it waits" false; return; }; sleep 0.05; done
        $3; wait $pid
        try "$1: it is sent when it can be" has False EFACTS
        well; init 2>said; send_condition
        try "$1: and so is the recovery" has True NodestrapDone
}
registers() { register; patch "{\"spec\": {\"providerID\": \"aws:///us-west-2a/$instance\"}}"; }
delete; later "a Node that was deleted" ENOTREGISTERED registers
theirs() { delete; register; patch '{"spec": {"providerID": "aws:///us-west-2a/i-0fedcba9876543210"}}'; }
theirs; later "a Node of another instance" ENOTREGISTERED "eval delete; registers"
stop front; later "an API server that is down" EAPIROUTE front_start
front_says status=503 2>/dev/null; later "one that has no time" EAPIERROR "front_says pass"
# deny CODE EXPRESSION: conditions of which this is true of c
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
        try "the cluster denies it (${word% *})" deny "${word% *}" "c.type == 'NodestrapReady' && c.reason == 'EFACTS'"
        ill; fails; try "that is no failure of the sender" send_condition
        try "it gives up" is "$(waiting)" 0
        try "with one line" is "$(wc -l <sent)" 1
        try "that says why" bash -c 'grep -E "condition NodestrapReady was not sent \($1\): .*not here" sent || { cat sent; false; }' _ "${word#* }"
        kubectl delete validatingadmissionpolicybinding no-conditions >/dev/null; well
done

# ---- AcceleratedHardwareReady ----
# unhealthy REASON: the last verdict is about a GPU, as tests/boot/gpu-health-machine.sh has it of a machine
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
try "a boot that is well says nothing of the hardware" is "$(hardware .status)" ""
try "a GPU that is unusable" unhealthy NvidiaXID79Error
try "leaves one notice" is "$(waiting)" 1
try "which is sent" send_condition
try "NodestrapReady is False" has False EHEALTH
try "so is AcceleratedHardwareReady" hardware_is False NvidiaXID79Error
try "its message is the finding" is "$(hardware .message)" "GPU 5 (0000:a8:00.0): NVIDIA driver: the GPU has fallen off the bus"
try "both are told" says "$(set_line 'NodestrapReady=False (EHEALTH)'; set_line 'AcceleratedHardwareReady=False (NvidiaXID79Error)')"
kubectl describe node $NODE | grep -E '^Conditions:|NodestrapReady|AcceleratedHardware' | sed 's/^/# /'
before=$(version); unhealthy NvidiaXID79Error; send_condition
try "the same again is not written" is "$(version)" "$before"
first=$(hardware .lastTransitionTime); until [ "$(date -u +%FT%TZ)" != "$first" ]; do :; done
unhealthy NvidiaXID154Error; send_condition
try "another reason is" hardware_is False NvidiaXID154Error
try "in the same state" is "$(hardware .lastTransitionTime)" "$first"
ill; fails; send_condition
try "a failure of another kind" has False EFACTS
try "leaves it" hardware_is False NvidiaXID154Error
well; reboot; init --skip run 2>said; send_condition
try "and so does a boot that is not over" hardware_is False NvidiaXID154Error
try "which ends well" init --skip config
send_condition
try "the node is well" has True NodestrapDone
try "and its hardware" hardware_is True NodestrapDone
before=$(version); init 2>said; send_condition
try "once" is "$(version)" "$before"

agent True >said
try "another manager has it now" grep -q eks-node-monitoring-agent <(kubectl get node $NODE -o yaml --show-managed-fields)
unhealthy NvidiaXID79Error; send_condition
try "the node says False" has False EHEALTH
try "and leaves the hardware to that one" hardware_is True Agent
try "with a warning" says "$(set_line 'NodestrapReady=False (EHEALTH)'; echo "$refusal eks-node-monitoring-agent owns this condition of Node $NODE; leave repairs to it, and remove spec.cluster.repairCondition")"
try "and no second attempt" is "$(waiting)" 0
agent False >said; init 2>said; send_condition
try "a boot that is well" has True NodestrapDone
try "does not mend it for that one" hardware_is False Agent
try "nor says a word of it" says "$(set_line 'NodestrapReady=True (NodestrapDone)')"
patch '{"metadata": {"managedFields": [{}]}}'; unhealthy NvidiaXID79Error; send_condition
try "a condition that nobody is known to have written stays, too" hardware_is False Agent
try "with a warning" grep -qF "$refusal an unknown manager owns" sent
delete; registers >said; well; init 2>said; send_condition

for word in "Forbidden EFORBIDDEN" "Invalid EAPIERROR"; do
        try "the cluster denies it (${word% *})" deny "${word% *}" "c.type == 'AcceleratedHardwareReady'" AcceleratedHardwareReady
        delete; registers >said; rm -f root/var/lib/nodestrap/condition.json; unhealthy NvidiaXID79Error
        try "that is no failure of the sender" send_condition
        try "the node says False" has False EHEALTH
        try "and nothing of the hardware" is "$(hardware .status)" ""
        try "it gives up" is "$(waiting)" 0
        try "with one line" is "$(wc -l <sent)" 1
        try "that says why" bash -c 'grep -E "condition AcceleratedHardwareReady was not sent \($1\): .*not here" sent || { cat sent; false; }' _ "${word#* }"
        kubectl delete validatingadmissionpolicybinding no-conditions >/dev/null; reboot; init --skip run 2>said; send_condition
        try "the next boot knows what the node has" has Unknown NodestrapRunning
        init --skip config 2>said; send_condition
done
unhealthy NvidiaXID79Error; find $spool -type f ! -name '*.condition' -delete; front_says status=503; timeout 100 "$NODESTRAP" send-events --root root 2>sent & pid=$!
until grep -q "is not sent yet (EAPIERROR)" sent; do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
front_says pass; wait $pid
try "an API server that has no time gets both later" hardware_is False NvidiaXID79Error
well; init 2>said; send_condition
try "and the recovery" hardware_is True NodestrapDone

echo '{"machine": 7' >root/var/lib/nodestrap/condition.json
try "what it remembers is damaged: a run" init
try "has nothing to tell" is "$(waiting)" 0
finish
