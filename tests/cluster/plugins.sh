#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# tree: plugins
# cluster: no-controllers
# The real kubelet beside device plugins and DRA drivers on its public interfaces: capacity and allocatable of its Node, ResourceSlices.
#
# kubelet 1.37.0 with its own nodeStatusUpdateFrequency of 10 s wrote this. Seconds since the Node was Ready; nvidia.com/gpu of status.capacity
# and of status.allocatable. Nothing else changed: status.allocatable at 20 s was {"cpu":"1930m","ephemeral-storage":"242424114388",
# "hugepages-1Gi":"0","hugepages-2Mi":"0","memory":"23993480Ki","nvidia.com/gpu":"7","pods":"29"}.
#     0.1  none  none   no plugin
#     9.6  "8"   "8"    a plugin with 8 devices has registered
#    19.9  "8"   "7"    one of them is unhealthy
#    30.1  "8"   "0"    all of them are
#    40.4  "7"   "7"    it lists 7, all healthy
#    50.5  "0"   "0"    it lists none
#    60.8  "8"   "0"    another one registered with 8, and died 4 s later: between two writes, so that no write had 8 in allocatable
#   336.6  "8"   "0"    the periodic write, without a change
#   357.3  "0"   "0"    five minutes after that death
# A change comes with the next write, up to 10 s later; this test sets 1 s. A kubelet that starts again writes "0" "0" until the plugin has
# registered again. kubelet deletes the slices of a driver 30 s after that has ended, and all slices of its Node when it starts. Drivers that
# still ran then published theirs 29 s later.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
# shellcheck source=tests/cluster/lib/state.sh
. "$(dirname "$(realpath "$0")")/lib/state.sh"
wants containerd
gpu=nvidia.com/gpu efa=vpc.amazonaws.com/efa mig=nvidia.com/mig-1g.5gb

# ---- the node ----
begins() { kubelet_begins --kubeconfig=/kubelet.kubeconfig; disown; }
ends() { kill -KILL "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
ready() { kubectl wait --for=create --timeout=60s "node/$NODE" && kubectl wait --for=condition=Ready --timeout=60s "node/$NODE"; }
ip address add 10.0.2.15/32 dev lo
mkdir cni; echo '{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "loopback"}]}' >cni/10-pods.conflist
certificate node ca "/O=system:nodes/CN=system:node:$NODE"; kubeconfig node node.kubeconfig
try "the machine starts" machine_starts
kubectl --kubeconfig node.kubeconfig config view --raw --flatten >root/kubelet.kubeconfig; kubectl config view --raw --flatten >root/driver.kubeconfig
cp "$PLUGINS"/{device,dra}-plugin root/usr/bin/
try "init succeeds" init 'nodeStatusUpdateFrequency: 1s'
begins
try "the Node is Ready" ready || { tail -5 log | cut -c1-400 | sed 's/^/# /'; finish; }

# ---- the wait for devices ----
# counts GPUS EFA: what init would have recorded on such a machine
counts() {
        printf '{"version": "1", "bootId": "%s", "verdict": "ok", "code": "OK", "runs": {"config,devices,run": {"phases": "config,devices,run", "verdict": "ok"}}, "accelerator": {"counted": %d, "efa": %d}}\n' \
                "$(cat /proc/sys/kernel/random/boot_id)" "$1" "$2" >root/run/nodestrap/status.json
}
mkdir -p root/proc/sys/kernel/random; cat /proc/sys/kernel/random/boot_id >root/proc/sys/kernel/random/boot_id
waits() { counts 8 32; nodestrap wait --root root --for devices --timeout 2m 2>waited & within 30 grep -q "Not yet" waited; }
told() { tail -n 1 waited | grep -F -- "$1"; }
# says WHAT: of this node, last and soon after the API server knows it
says() { within 2 told "Not yet (EDEVICES): Node $NODE of cluster training is Ready, but $1" >/dev/null || { cat waited; return 1; }; }
reached() { within 2 told "nodestrap: ok: Node $NODE of cluster training is ready with all devices" >/dev/null || { cat waited; return 1; }; }

# ---- plugins of the tests: NAME [OPTION…], whose output is log/NAME ----
plugin() { spawn "$1" chroot root /usr/bin/device-plugin "${@:2}"; }
driver() { spawn "$1" chroot root /usr/bin/dra-plugin --node "$NODE" --kubeconfig /driver.kubeconfig "${@:2}"; }
numbers() { echo "$2" >"root/$1.new"; mv "root/$1.new" "root/$1"; }

# ---- what the cluster has ----
began=$EPOCHREALTIME; exec 3>&1
shows() { awk -v a="$began" -v b="$EPOCHREALTIME" -v what="$*" 'BEGIN { printf "# %5.1f s: %s\n", b - a, what }' >&3; }
of() { kubectl get node "$NODE" -o "jsonpath={.status.capacity.${1//./\\.}} {.status.allocatable.${1//./\\.}}"; }
has() { is "$(of "$1")" "$2"; }
# writes RESOURCE "CAPACITY ALLOCATABLE": kubelet does, sooner or later
writes() { within 30 has "$@" >/dev/null || has "$@" || return; shows "$@"; }
# How many devices the slices of DRIVER have, and how many of these a taint
slices() {
        kubectl get resourceslices --field-selector "spec.nodeName=$NODE,spec.driver=$1" \
                -o 'jsonpath={range .items[*].spec.devices[*]}{.name} {.taints[*].effect}{"\n"}{end}' | awk '{ n += NF > 0; bad += NF > 1 } END { print n + 0, bad + 0 }'
}
published() { is "$(slices "$1")" "$2"; }
publishes() { within 60 published "$@" >/dev/null || published "$@" || return; shows "slices of $1: $2"; }

# ---- a driver that dies ----
driver dies --driver dies.example --devices 3
try "a DRA driver publishes" publishes dies.example "3 0"
stop dies; died=$SECONDS

# ---- a device plugin ----
waits
try "kubelet writes no device without a plugin" has $gpu " "
try "so says the wait" says "pods can get 0 of 8 $gpu: no device plugin or DRA driver has registered them"
numbers gpus "8 0"; plugin gpus --file /gpus
try "8 of 8 healthy" writes $gpu "8 8"
try "wait goes on to the EFA devices" says "pods can get 0 of 32 $efa: no device plugin or DRA driver has registered them"
numbers gpus "8 1"
try "7 healthy of 8: the capacity stays" writes $gpu "8 7"
try "wait says that the plugin dropped one device" says "pods can get 7 of 8 $gpu: the device plugin has exited, or finds the others unhealthy; see the log of its pod"
numbers gpus "8 8"
try "0 healthy of 8" writes $gpu "8 0"
try "wait says that the plugin has ended" says "pods can get 0 of 8 $gpu: the device plugin has exited, or finds the others unhealthy; see the log of its pod"
numbers gpus "7 0"
try "kubelet writes the 7 devices of a new plugin" writes $gpu "7 7"
try "wait says that the plugin registered only 7" says "pods can get 7 of 8 $gpu: the device plugin has registered no more"
numbers gpus "0 0"
try "a plugin with no device is not like none" writes $gpu "0 0"
try "wait says that pods get none of the devices" says "pods can get 0 of 8 $gpu: "
stop gpus; plugin gpus --die 3s
try "a plugin that registers" writes $gpu "8 8"
try "the plugin dies: the capacity stays" writes $gpu "8 0"
try "wait says that the plugin has died" says "pods can get 0 of 8 $gpu: the device plugin has exited, or finds the others unhealthy; see the log of its pod"
stop gpus; plugin gpus --delay 3s
try "a late plugin has no devices at first" no within 2 has $gpu "8 8"
try "the plugin gives all 8 GPUs in the end" writes $gpu "8 8"
try "wait goes on to the EFA devices" says "pods can get 0 of 32 $efa"
plugin efa --resource $efa --devices 32
try "the EFA plugin registers 32 devices at once" writes $efa "32 32"
try "wait succeeds" reached
plugin mig --resource $mig --devices 7
try "the MIG plugin registers 7 devices" writes $mig "7 7"
stop mig

# ---- two publishers ----
numbers dra "8 0"; driver dra --file /dra
try "a DRA driver publishes 8 GPUs" publishes gpu.nvidia.com "8 0"
try "devices of the plugin stay beside a DRA driver" has $gpu "8 8"
waits
try "wait warns of a plugin and a DRA driver with 8 devices each" says "a device plugin offers 8 of $gpu and a DRA driver 8, "
numbers dra "8 1"
try "the DRA driver gives one device a taint" publishes gpu.nvidia.com "8 1"
try "wait does not count the device with a taint" says "a device plugin offers 8 of $gpu and a DRA driver 7, "
stop gpus
try "the devices of the plugin go" writes $gpu "8 0"
try "wait says that one device has a taint" says "pods can get 7 of 8 $gpu: the DRA driver offers no more untainted devices"
numbers dra "7 0"
try "the DRA driver offers seven devices" publishes gpu.nvidia.com "7 0"
numbers dra "8 0"
try "the DRA driver offers all devices" publishes gpu.nvidia.com "8 0"
try "wait succeeds" reached
try "slices of the driver that has died go" publishes dies.example "0 0"
try "kubelet takes the slices away after half a minute" [ $((SECONDS - died)) -ge 29 ]

# ---- kubelet starts again, without another boot ----
ends
try "while kubelet is away nothing changes" has $efa "32 32"
begins
try "a new one offers nothing of plugins that have not registered with it" writes $efa "0 0"
try "the driver takes all slices away" published gpu.nvidia.com "0 0"
waits
try "wait says that pods get no device" says "pods can get 0 of 8 $gpu: "
plugin gpus
try "another plugin registers 8 devices" writes $gpu "8 8"
try "a plugin that has not registered again offers nothing" has $efa "0 0"
try "wait says that pods get no EFA device" says "pods can get 0 of 32 $efa: "
stop efa; plugin efa --resource $efa --devices 32
try "the EFA plugin registers 32 devices" writes $efa "32 32"
try "wait succeeds" reached

finish
