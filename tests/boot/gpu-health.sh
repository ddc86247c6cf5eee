#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu api
# console: check-health:gpus: fabric-bandwidth: GPU 0 \(0000:53:00.0\): .*reduced bandwidth
# console: check-health:gpus: fabric-route-recovery: GPU 1
# console: check-health:gpus: fabric-route: GPU 2
# console: check-health:gpus: fabric-timeout-recovery: GPU 3
# console: check-health:gpus: fabric-configuration: GPU 4 .*incorrect system GUID
# console: check-health:gpus: fabric-partition: GPU 5
# console: check-health:gpus: fabric-links: GPU 6 .*insufficient NVLinks
# console: check-health:gpus: fabric-unhealthy: GPU 7
# console: check-health:gpus: fabric-limited: GPU 0
# console: check-health:gpus: row-remap-pending: GPU 1
# console: check-health:gpus: row-remap-failed: GPU 2
# console: check-health:gpus: ecc-uncorrected: GPU 3 .*2 uncorrectable memory errors
# console: check-health:gpus: nvlink-down: GPU 4 .*3 of its 18 NVLinks are down \(0, 5, 17\)
# console: check-health:gpus: hw-thermal-slowdown: GPU 5
# console: check-health:gpus: hw-power-brake-slowdown: GPU 6
# console: check-health:gpus: sw-thermal-slowdown: GPU 7
# console: check-health:gpus: hw-slowdown: GPU 0
# console: check-health:gpus: gpu-reset: GPU 1
# console: check-health:gpus: node-reboot: GPU 2
# console: check-health:gpus: drain-p2p: GPU 3
# console: check-health:gpus: drain-and-reset: GPU 4
# console: check-health:gpus: recover-domain: GPU 5
# console: check-health:gpus: bus-reset: GPU 6
# console: check-health:gpus: system-reboot: GPU 7
# console: check-health:gpus: recovery-unknown: GPU 0
# console: check-health:gpus: page-retirement-pending: GPU 0
# console: check-health:gpus: off-the-bus: GPU 3 \(0000:86:00.0\)
# console: NODESTRAP verdict=failed code=EHEALTH step=check-health
# console: nodestrap: failed \(33 EHEALTH\) at check-health:gpus: GPU 2 .*the driver says: reboot the node
# GPUs with faults: each word is on the console, in status and in the metrics, and the configuration decides what follows.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

policy() { spec "{accelerator: {nvidia: {health: $1}}}"; }
# again [LINE…]: the same machine with other GPUs, and the run phase once more
again() { printf '%s\n' "$@" >/etc/fakes/nvml; nvml_changed; systemctl reset-failed nodestrap-run; systemctl restart nodestrap-run; }
shown() { nodestrap status --long | grep -E -- "$1" || { nodestrap status --long | head -40; return 1; }; }
metric() { grep -E -- "^nodestrap_$1" /run/nodestrap/metrics.prom || { grep -E '^nodestrap_gpu' /run/nodestrap/metrics.prom; return 1; }; }
addresses=(0000:53:00.0 0000:64:00.0 0000:75:00.0 0000:86:00.0 0000:97:00.0 0000:a8:00.0 0000:b9:00.0 0000:ca:00.0)
# found GPU WORD…: in status and in the metrics
found() {
        local word gpu=$1; shift
        for word; do
                try "status has $word of GPU $gpu" shown "^  $word: GPU $gpu \(${addresses[gpu]}\): "
                try "the metrics have $word of GPU $gpu" metric "gpu_health\{gpu=\"$gpu\",address=\"${addresses[gpu]}\",word=\"$word\"\} 1$"
        done
        try "the metrics say that GPU $gpu is not healthy" metric "gpu_healthy\{gpu=\"$gpu\",address=\"${addresses[gpu]}\"\} 0$"
}

power_on p5-48xlarge; mapfile -t addresses < <(gpus)
try "a healthy machine comes up" node_starts
try "status lists what the health check covered" shown '^Health: good, checked fabric, recovery, memory, nvlink, clocks'
try "the metrics say that all eight GPUs are healthy" is "$(grep -c '^nodestrap_gpu_healthy.* 1$' /run/nodestrap/metrics.prom)" 8
try "the metrics have no fault" no grep -q '^nodestrap_gpu_health{' /run/nodestrap/metrics.prom

try "the node runs with eight different faults of the fabric" again 'health 0 0x1 2' 'health 1 0x4 2' 'health 2 0x10 2' 'health 3 0x40 2' 'health 4 0x200 2' 'health 5 0x400 2' 'health 6 0x500 2' 'health 7 0 2'
found 0 fabric-bandwidth; found 1 fabric-route-recovery; found 2 fabric-route; found 3 fabric-timeout-recovery
found 4 fabric-configuration; found 5 fabric-partition; found 6 fabric-links; found 7 fabric-unhealthy
try "status has eight findings" shown '^Health: 8 findings$'

try "the node runs with faults of memory, links and clocks" again 'health 0 0 3' 'rows 1 pending' 'rows 2 failed' 'ecc 3 2' 'links 4 0,5,17' 'reasons 5 0x48' 'reasons 6 0x88' 'reasons 7 0x20'
found 0 fabric-limited; found 1 row-remap-pending; found 2 row-remap-failed; found 3 ecc-uncorrected
found 4 nvlink-down; found 5 hw-thermal-slowdown; found 6 hw-power-brake-slowdown; found 7 sw-thermal-slowdown
try "status no longer has the fault of the earlier run" no shown 'fabric-route'

try "the node does not run if the driver wants a reset or a replacement" no again 'reasons 0 0x8' 'recovery 1 1' 'recovery 2 2' 'recovery 3 3' 'recovery 4 4' 'recovery 5 5' 'recovery 6 6' 'recovery 7 7'
found 0 hw-slowdown; found 1 gpu-reset; found 2 node-reboot; found 3 drain-p2p
found 4 drain-and-reset; found 5 recover-domain; found 6 bus-reset; found 7 system-reboot
try "the verdict is failed with EHEALTH" is "$(value verdict) $(value code)" "failed EHEALTH"
try "the message has the first fault and the number of others" says 'GPU 1 .*reset it .*\(and 5 more\)$'
try "an unknown recovery action only leads to a warning" again 'recovery 0 9'
found 0 recovery-unknown
try "an action for the trays of a whole rack does not keep the node down" again 'recovery all 5'
found 5 recover-domain
try "the node runs if GPUs are slow for a moment" again 'reasons all 0x8 1x'
try "status says that health is good after a slow moment" shown '^Health: good'

# ---- before the node has ever run ----
power_on p5-48xlarge; echo 'recovery 2 2' >/etc/fakes/nvml; nvml_changed
fails 33 EHEALTH 'GPU 2 .*the driver says: reboot the node' "a GPU whose driver wants a reboot"
power_on p5-48xlarge; policy require; echo 'links 4 0,5' >/etc/fakes/nvml; nvml_changed
fails 33 EHEALTH 'GPU 4 \(0000:97:00.0\): 2 of its 18 NVLinks are down \(0, 5\)' "require: a GPU with links that are down"
power_on p5-48xlarge; cp /vmtest/cluster.yaml /etc/eks/nodeadm.d/; spec '{failurePolicy: join-tainted}'; echo 'recovery 2 2' >/etc/fakes/nvml; nvml_changed
try "join-tainted: the node comes up" node_starts
try "join-tainted: the verdict is tainted" is "$(value verdict) $(value code)" "tainted EHEALTH"
try "kubelet registers with a taint" sh -c "tr '\0' '\n' </run/recording-kubelet/argv | grep -x -- '--register-with-taints=nodestrap/unhealthy=EHEALTH:NoSchedule'"
power_on p5-48xlarge; policy 'off'; printf '%s\n' 'links 4 0,5' 'recovery 2 2' >/etc/fakes/nvml; nvml_changed
try "health off: the node comes up" node_starts
try "health off: the metrics have no health" no grep -q 'health' /run/nodestrap/metrics.prom
try "health off: status has no line for health" no shown '^Health'
power_on p5-48xlarge; echo 'error nvmlDeviceGetRemappedRows 15 3' >/etc/fakes/nvml; nvml_changed
fails 33 EHEALTH 'GPU 3 .*does not answer on the PCI bus' "a GPU that is lost"
power_on p5-48xlarge fabric-takes=100000; printf '%s\n' 'health 3 0x500 2' 'links 3 all' >/etc/fakes/nvml; spec '{accelerator: {nvidia: {fabric: {timeout: 20s}}}}'; nvml_changed
fails 33 EFABRIC 'In Progress' "a fabric that never completes"
try "status also reports the links of that GPU" shown '^  nvlink-down: GPU 3 .*18 of its 18'

# ---- other classes ----
power_on g4dn; echo 'pages 0 pending' >/etc/fakes/nvml; nvml_changed
try "T4: the node comes up" node_starts
mapfile -t addresses < <(gpus)
found 0 page-retirement-pending
power_on p4d-24xlarge; echo 'links 5 3' >/etc/fakes/nvml; policy require; nvml_changed
fails 33 EHEALTH 'GPU 5 .*1 of its 12 NVLinks is down \(3\)' "an A100 with a link that is down"
power_on p5-4xlarge; policy require
try "p5.4xlarge, whose links are not connected: the node comes up" node_starts
try "the machine is well, and status lists what it checked" shown '^Health: good, checked recovery, memory, clocks'

finish
