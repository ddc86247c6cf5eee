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
try "the run phase succeeds" exited nodestrap-run 0
try "nodestrap-run.service is active" active nodestrap-run
try "nodestrap-devices.service stays failed" failed nodestrap-devices
try "kubelet was started once" starts 1
try "kubelet gets a label with the code of the failure" has --node-labels=nodestrap/unhealthy=ESYSCTL
try "kubelet gets the taint behind the taint of the user, in its last argument" last --register-with-taints=dedicated=training:NoExecute,nodestrap/unhealthy=ESYSCTL:NoSchedule
try "kubelet keeps the argument that a script added" has --patched=1
try "the verdict has the code, exit status and step of the cause" is "$(status verdict code exit step)" "tainted ESYSCTL 40 set-sysctl:net.ipv4.no_such_setting"
try "the journal has a line that names the cause" in_journal '^nodestrap: tainted \([0-9]+ ESYSCTL\) at set-sysctl:net.ipv4.no_such_setting: '
try "the journal has the verdict as a warning" sh -c "journalctl -b -o json NODESTRAP_VERDICT=tainted PRIORITY=4 | grep -q NODESTRAP_CODE"
try "the metrics say that the node is tainted" grep -x 'nodestrap_tainted 1' /run/nodestrap/metrics.prom
try "the first line of status says that the node is tainted" sh -c "nodestrap status | head -n 1 | grep '^tainted ([0-9]* ESYSCTL) at set-sysctl'"

me=$(sed -n 's/.*"node": "\(.*\)".*/\1/p' /run/nodestrap/status.json)
try "nodestrap asks the cluster for the Node once" is "$(requests)" 1
kubelet=$(property kubelet MainPID)
try "a second run with the same failure succeeds" again
try "a second run with the same failure does not restart kubelet" is "$(property kubelet MainPID)" "$kubelet"

try "the cluster accepts a Node without the taint" node POST ''
try "init fails if the Node exists without the taint" no again
try "the failed run has the code of the cause" is "$(status verdict code exit)" "failed ESYSCTL 40"
try "the message names the cause and says why the node cannot join" grep -E '^nodestrap: failed \(40 ESYSCTL\) at set-sysctl:.*no_such_setting.*; and the node cannot join with a taint: Node .* exists without the taint' out/again
try "the message says that kubelet keeps running" grep -F 'kubelet, started by an earlier run in this boot, keeps running. Run kubectl taint node' out/again
try "the failed run does not restart kubelet" is "$(property kubelet MainPID)" "$kubelet"
try "kubelet keeps the taint in its last argument after the failed run" last --register-with-taints=dedicated=training:NoExecute,nodestrap/unhealthy=ESYSCTL:NoSchedule
try "the cluster accepts a taint on the Node" node PATCH "/$me" '{"taints": [{"key": "nodestrap/unhealthy", "value": "EGPU", "effect": "NoSchedule"}]}'
try "init succeeds if the Node has a taint" again
try "the verdict is tainted if the Node has a taint" is "$(status verdict code)" "tainted ESYSCTL"
try "a message names the older value of the taint" grep -F 'node-taint-older: ' out/again

spec join-tainted net.ipv4.ip_forward
asked=$(requests)
try "a run in which all is well succeeds" again
try "a run in which all is well does not ask for the Node" is "$(requests)" "$asked"
try "a run in which all is well has the verdict ok" is "$(status verdict code)" "ok OK"
try "the environment file with the taint is gone" no test -e /run/nodestrap/kubelet-environment
try "kubelet restarts once" starts 2
try "the restarted kubelet has no taint of nodestrap" lacks unhealthy
try "the restarted kubelet keeps the taint of the user" has --register-with-taints=dedicated=training:NoExecute
try "a message says that the Node keeps its taint, and how to remove it" grep -q 'node-was-tainted: .*kubectl taint node' out/again
kubelet=$(property kubelet MainPID)
try "another run in which all is well succeeds" again
try "another run in which all is well does not restart kubelet" is "$(property kubelet MainPID)" "$kubelet"
# shellcheck disable=SC2046 # sources are words
without_devices() { nodestrap init --skip config --skip devices $(sources) 2>out/without; }
try "a run without the devices succeeds after they were well" without_devices
try "a run without the devices has no warning after they were well" no grep devices-skipped out/without
rm /run/nodestrap/status.json
try "a run without the devices succeeds if their state is not known" without_devices
try "a warning says that kubelet starts without the devices" grep -q 'devices-skipped: --skip devices: kubelet starts without' out/without

spec hold net.ipv4.no_such_setting
try "init fails with failurePolicy: hold" no again
try "the verdict is failed with failurePolicy: hold" is "$(status verdict code)" "failed ESYSCTL"
try "nodestrap writes no taint with failurePolicy: hold" no test -e /run/nodestrap/kubelet-environment
finish
