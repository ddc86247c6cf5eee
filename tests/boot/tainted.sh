#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# spec: {kubelet: {flags: ["--register-with-taints=dedicated=training:NoExecute"]}}
# spec: {failurePolicy: join-tainted, instance: {sysctl: {net.ipv4.no_such_setting: "1"}}}
# tree: enabled kubelet_enabled patched api
# console: NODESTRAP verdict=tainted code=ESYSCTL step=set-sysctl:net.ipv4.no_such_setting
# A step of the devices fails and the policy is join-tainted: the node joins with a label and a taint that say so. So it does where the
# image enables kubelet and a script has patched its arguments. When all is well again, kubelet gets its own arguments back.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

argv() { tr '\0' '\n' </run/recording-kubelet/argv; }
has() { argv | grep -qxF -- "$1" || { argv; return 1; }; }
lacks() { ! argv | grep -- "$1"; }
last() { is "$(argv | tail -n 1)" "$1"; }
# shellcheck disable=SC2046 # sources are words
again() { nodestrap init --skip config $(sources) 2>out/again; }
spec() { printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {failurePolicy: %s, instance: {sysctl: {%s: "1"}}}\n' "$1" "$2" >/etc/eks/nodeadm.d/51-spec.yaml; }
requests() { grep -c ' GET /api/v1/nodes/' out/kube.log; }
# node METHOD PATH [SPEC]: with the rights that it needs
node() {
        curl -sSf --noproxy '*' --cacert /etc/kubernetes/pki/ca.crt -X "$1" -H "Authorization: Bearer $(nodestrap token --cluster-name training --region us-west-2 | grep -o 'k8s-aws-v1[^"]*')" \
                -H 'Content-Type: application/json' -d "{\"metadata\": {\"name\": \"$me\"}, \"spec\": ${3:-null}}" "https://127.0.0.1:6443/api/v1/nodes$2" >/dev/null
}
status() { python3 -c 'import json, sys; print(*(json.load(open("/run/nodestrap/status.json"))[k] for k in sys.argv[1:]))' "$@"; }

systemctl stop nodestrap-event.path nodestrap-event.service     # it asks for the Node when it has time
try "the run phase ended well" exited nodestrap-run 0
try "so nodestrap-run.service is active" active nodestrap-run
try "the unit of the devices phase stays one that has failed" failed nodestrap-devices
try "kubelet was started once" starts 1
try "with a label" has --node-labels=nodestrap/unhealthy=ESYSCTL
try "with a taint beside the user's own, last of all" last --register-with-taints=dedicated=training:NoExecute,nodestrap/unhealthy=ESYSCTL:NoSchedule
try "and with what was added to its arguments" has --patched=1
try "the verdict keeps code and exit of the cause" is "$(status verdict code exit step)" "tainted ESYSCTL 40 set-sysctl:net.ipv4.no_such_setting"
try "the last line names the cause" in_journal '^nodestrap: tainted \([0-9]+ ESYSCTL\) at set-sysctl:net.ipv4.no_such_setting: '
try "the journal has it as a warning" sh -c "journalctl -b -o json NODESTRAP_VERDICT=tainted PRIORITY=4 | grep -q NODESTRAP_CODE"
try "so do the metrics" grep -x 'nodestrap_tainted 1' /run/nodestrap/metrics.prom
try "status says it first" sh -c "nodestrap status | head -n 1 | grep '^tainted ([0-9]* ESYSCTL) at set-sysctl'"

me=$(sed -n 's/.*"node": "\(.*\)".*/\1/p' /run/nodestrap/status.json)
try "the cluster was asked for its Node once" is "$(requests)" 1
kubelet=$(property kubelet MainPID)
try "a second run with the same failure ends as well" again
try "it leaves kubelet alone" is "$(property kubelet MainPID)" "$kubelet"

try "somebody makes a Node without the taint" node POST ''
try "a run is a failure then" no again
try "with the code of what is wrong" is "$(status verdict code exit)" "failed ESYSCTL 40"
try "the last line says of both" grep -E '^nodestrap: failed \(40 ESYSCTL\) at set-sysctl:.*no_such_setting.*; and the node cannot join with a taint: Node .* exists without the taint' out/again
try "and of kubelet, which runs" grep -F 'kubelet, started by an earlier run of this boot, keeps running. Run kubectl taint node' out/again
try "it does" is "$(property kubelet MainPID)" "$kubelet"
try "so is what it was started with" last --register-with-taints=dedicated=training:NoExecute,nodestrap/unhealthy=ESYSCTL:NoSchedule
try "somebody taints it" node PATCH "/$me" '{"taints": [{"key": "nodestrap/unhealthy", "value": "EGPU", "effect": "NoSchedule"}]}'
try "then the node is tainted again" again
try "with that verdict" is "$(status verdict code)" "tainted ESYSCTL"
try "and the older value is told" grep -F 'node-taint-older: ' out/again

spec join-tainted net.ipv4.ip_forward
asked=$(requests)
try "a run in which all is well" again
try "asks for no Node" is "$(requests)" "$asked"
try "has that verdict" is "$(status verdict code)" "ok OK"
try "the file is gone" no test -e /run/nodestrap/kubelet-environment
try "kubelet was restarted once" starts 2
try "without the taint" lacks unhealthy
try "with the user's own" has --register-with-taints=dedicated=training:NoExecute
try "what the Node keeps is said" grep -q 'node-was-tainted: .*kubectl taint node' out/again
kubelet=$(property kubelet MainPID)
try "a run after that" again
try "changes nothing" is "$(property kubelet MainPID)" "$kubelet"
# shellcheck disable=SC2046 # sources are words
without_devices() { nodestrap init --skip config --skip devices $(sources) 2>out/without; }
try "one without the devices, which were well" without_devices
try "is nothing to tell" no grep devices-skipped out/without
rm /run/nodestrap/status.json
try "where nobody knows of them" without_devices
try "kubelet's gate is said to be open" grep -q 'devices-skipped: --skip devices: kubelet starts without' out/without

spec hold net.ipv4.no_such_setting
try "failurePolicy: hold makes a failure of it" no again
try "with that verdict" is "$(status verdict code)" "failed ESYSCTL"
try "and no taint" no test -e /run/nodestrap/kubelet-environment
finish
