#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: front no-controllers
# `nodestrap wait --for devices` beside a real API server, with the rights of the node: what device plugins and DRA drivers offer of eight GPUs.
# The test patches the Node as kubelet would after a plugin, and makes ResourceSlices as a DRA driver does, with the token of the node.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"

# counted DIR ACCELERATOR [MORE]: what init has recorded on that machine
counted() {
        [ -d "$1/etc" ] || machine "$1"; mkdir -p "$1/run/nodestrap"
        printf '{"version": "1", "bootId": "%s", "verdict": "ok", "code": "OK", "runs": {"config,devices,run": {"phases": "config,devices,run", "verdict": "ok"}}, "accelerator": %s%s}\n' \
                "$(cat /proc/sys/kernel/random/boot_id)" "$2" "${3-}" >"$1/run/nodestrap/status.json"
}
eight='{"counted": 8, "efa": 2, "expectDevices": true}'
declare -A waits
begin() { : >"$1/err"; ( "$NODESTRAP" wait --root "$1" "${@:2}" >"$1/out" 2>"$1/err"; echo $? >"$1/rc" ) & waits[$1]=$!; }
end() { wait "${waits[$1]}"; }
ended_with() { is "$(cat "$1/rc")" "$2" || { cat "$1/err"; return 1; }; }
# within DIR TEXT: the message comes two seconds after the API server knows it
within() { local i; for ((i = 0; i < 20; i++)); do ! grep -qF -- "$2" "$1/err" || return 0; sleep 0.1; done; cat "$1/err"; return 1; }
told() { local i; for ((i = 0; i < 300; i++)); do ! grep -qF -- "$2" "$1/err" || return 0; sleep 0.1; done; cat "$1/err"; return 1; }
metric() { grep -qxF "nodestrap_devices{resource=\"$2\",kind=\"$3\"} $4" "$1/run/nodestrap/joined.prom" || { cat "$1/run/nodestrap/joined.prom"; return 1; }; }
# offers RESOURCE ALLOCATABLE [CAPACITY]: as kubelet reports a plugin
offers() { kubectl patch node $NODE --subresource=status --type=merge -p "{\"status\": {\"allocatable\": {\"$1\": \"$2\"}, \"capacity\": {\"$1\": \"${3-$2}\"}}}" >/dev/null; }
# publishes NUMBER [TAINTED]: a slice of the DRA driver
publishes() {
        local i devices='' taint; for ((i = 0; i < $1; i++)); do
                taint=''; [ "$i" -ge "${2-0}" ] || taint=', "taints": [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]'
                devices+="${devices:+, }{\"name\": \"gpu-$i\", \"attributes\": {\"type\": {\"string\": \"gpu\"}}$taint}, {\"name\": \"vfio-$i\", \"attributes\": {\"type\": {\"string\": \"vfio\"}}}"
        done
        printf '{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "gpus"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "%s", "pool": {"name": "%s", "generation": 1, "resourceSliceCount": 1}, "devices": [%s]}}' \
                $NODE $NODE "$devices" | as_node create -f - >/dev/null
}
unpublish() { kubectl delete resourceslice gpus >/dev/null; }
lacks="Not yet (EDEVICES): Node $NODE of cluster training is Ready, but"

register >/dev/null; counted gpus "$eight"
begin gpus --for devices --timeout 2m
try "wait says that no plugin has registered" told gpus "$lacks pods can get 0 of 8 nvidia.com/gpu: no device plugin or DRA driver has registered them"
offers nvidia.com/gpu 7
try "wait says that one of eight devices is missing" within gpus "$lacks pods can get 7 of 8 nvidia.com/gpu: the device plugin has registered no more"
offers nvidia.com/gpu 0 8
try "a plugin that has registered and ended" within gpus "$lacks pods can get 0 of 8 nvidia.com/gpu: the device plugin has exited, or finds the others unhealthy; see the log of its pod"
offers nvidia.com/gpu 8
try "a late plugin: the EFA devices come next" within gpus "$lacks pods can get 0 of 2 vpc.amazonaws.com/efa"
publishes 8
try "wait warns of two publishers of one device" within gpus "$lacks a device plugin offers 8 of nvidia.com/gpu and a DRA driver 8, so two pods may get the same device. Remove the plugin or the DRA driver from this node"
unpublish; again() { local i; for ((i = 0; i < 20; i++)); do [ "$(grep -cF -- "$2" "$1/err")" -lt 2 ] || return 0; sleep 0.1; done; cat "$1/err"; return 1; }
try "wait goes on to the next device after one publisher is gone" again gpus "$lacks pods can get 0 of 2 vpc.amazonaws.com/efa"
kubectl delete node $NODE >/dev/null
try "the Node is deleted" within gpus "Not yet (ENOTREGISTERED): Node $NODE of cluster training was registered and then deleted"
register >/dev/null; offers nvidia.com/gpu 8
begun=${EPOCHREALTIME/./}; offers vpc.amazonaws.com/efa 2
end gpus; took=$((${EPOCHREALTIME/./} - begun))
try "wait succeeds when all devices are there" ended_with gpus 0
try "within two seconds ($((took / 1000)) ms, kubectl included)" [ $took -le 2000000 ]
try "the last line of wait says so" grep -F "nodestrap: ok: Node $NODE of cluster training is ready with all devices: registered " gpus/err
try "metrics have both numbers" eval 'metric gpus nvidia.com/gpu expected 8 && metric gpus nvidia.com/gpu allocatable 8 && metric gpus vpc.amazonaws.com/efa allocatable 2'

# ---- DRA alone ----
kubectl delete node $NODE >/dev/null; register >/dev/null; counted dra '{"counted": 8}'
begin dra --for devices --timeout 2m
try "wait says that the DRA driver offers nothing yet" told dra "$lacks pods can get 0 of 8 nvidia.com/gpu"
publishes 8 1
try "a slice whose device has a taint, with the rights of the node" within dra "$lacks pods can get 7 of 8 nvidia.com/gpu: the DRA driver offers no more untainted devices"
unpublish; publishes 8
end dra; try "wait succeeds with all devices of the DRA driver" ended_with dra 0
try "other nodes are not its business" no as_node get resourceslices
try "the node may list only its own resource slices" as_node get resourceslices --field-selector "spec.nodeName=$NODE"
unpublish

# ---- what the NodeConfig expects, without --for ----
counted gpus "$eight"; offers nvidia.com/gpu 8; offers vpc.amazonaws.com/efa 1
begin gpus --timeout 4s
end gpus; try "wait fails at the deadline of expectDevices" ended_with gpus 60
try "its last line has the code, the sentence and a command" grep -F "nodestrap: failed (60 EDEVICES) at join: Node $NODE of cluster training is Ready, but pods can get 1 of 2 vpc.amazonaws.com/efa: the device plugin has registered no more; kubectl get pods -A -o wide --field-selector spec.nodeName=$NODE (" gpus/err
try "status says that devices are missing" sh -c "'$NODESTRAP' status --root gpus | grep -F 'DEVICES MISSING (60 EDEVICES)'"
condition() { kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='NodestrapReady')]['status', 'reason', 'message']}"; }
send() { timeout 100 "$NODESTRAP" send-events --root gpus 2>sent; }
try "the condition is sent" send
try "the condition is False" grep -F "False EDEVICES Node $NODE of cluster training is Ready, but pods can get 1 of 2 vpc.amazonaws.com/efa" <(condition)
offers vpc.amazonaws.com/efa 2; begin gpus --timeout 1m
end gpus; try "the missing one comes" ended_with gpus 0
try "send-events sends the condition" send
try "the condition is True" grep -F "True NodestrapDone" <(condition)
begin gpus --for ready --timeout 1m; end gpus 0
try "a wait for Ready alone leaves that" eval 'send; grep -F "True NodestrapDone" <(condition)'

# ---- MIG and huge pages ----
counted mig '{"counted": 2, "migDevices": 7, "gpus": [{"index": 0, "address": "a", "mig": true}, {"index": 1, "address": "b", "mig": false}]}' ', "hugepages": [{"size": 2097152, "requested": 512, "got": 512, "node": -1}]'
kubectl delete node $NODE >/dev/null; register >/dev/null; offers nvidia.com/mig-1g.10gb 6; offers nvidia.com/gpu 1
begin mig --for devices --timeout 1m
try "wait says that one MIG device of seven is missing" told mig "$lacks pods can get 7 of 8 nvidia.com/mig-*"
offers nvidia.com/mig-1g.10gb 7
try "wait says that kubelet must count huge pages again" within mig "$lacks pods can get 0 of 1Gi hugepages-2Mi: kubelet counts them when it starts; run systemctl restart kubelet"
offers hugepages-2Mi 1Gi
end mig; try "wait succeeds with all MIG devices" ended_with mig 0

# ---- what does not go ----
machine unknown; begin unknown --for devices --timeout 1m
try "no report of init" told unknown "$lacks init left no readable report of how many devices the node has"
counted unknown '{"counted": 1}'
end unknown; try "wait reads a report that init writes later" ended_with unknown 0
counted none '{"counted": 0}'; begin none --for devices --timeout 1m
end none; try "a machine without devices" ended_with none 0
counted old '{"counted": 8}'; front_says status=404; begin old --for devices --timeout 4s; end old; front_says pass
try "404 of the Node is not an answer about devices" eval 'ended_with old 60 && grep -F "failed (60 EAPIERROR)" old/err'
kubectl create clusterrole see-nodes --verb=get,list,watch --resource=nodes >/dev/null
kubectl create clusterrolebinding see-nodes --clusterrole=see-nodes --group=viewers >/dev/null
authenticator_stop; authenticator_start mapped somebody viewers; now=$EPOCHSECONDS; while [ "$EPOCHSECONDS" = "$now" ]; do sleep 0.02; done
counted blind '{"counted": 8}'; begin blind --for devices --timeout 1m; end blind
try "wait uses the Node without the right to see ResourceSlices" ended_with blind 0
try "wait warns once of the missing right" is "$(grep -cF "The API server does not let this node see its ResourceSlices (403 Forbidden), so devices of a DRA driver do not count." blind/err)" 1
finish
