#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu
# console: check-health:gpus: pcie-width: GPU 1 \(0000:64:00.0\): .*uses 8 lanes, but most others of its model use 16
# console: check-health:gpus: pcie-speed: GPU 2 \(0000:75:00.0\): .*at 16.0 GT/s, but most others of its model at 32.0 GT/s
# console: check-health:gpus: pcie-width: 0000:50:00.0: the PCIe link of this EFA device
# console: check-health:gpus: efa-port: the port of EFA device rdmap80s0 is "1: DOWN"|check-health:gpus: efa-port: 0000:50:00.0: the port of EFA device rdmap80s0
# console: check-health:gpus: efa-port: 0000:51:00.0: this EFA function has no RDMA device
# console: check-health:gpus: xid: GPU 3 .*a memory row awaits remapping \(Xid 63\), 2 times, first at
# console: check-health:gpus: sxid: 0000:c4:00.0: an NVSwitch reports error 20034, fatal for a link
# console: check-health:gpus: gpu-init: GPU 4
# console: check-health:gpus: gdrdrv: GDRCopy has no /dev/gdrdrv, though its module is loaded
# console: check-health:gpus: peer-memory: EFA cannot reach GPU memory
# console: check-health:gpus: off-the-bus: GPU 5 .*fallen off the bus \(Xid 79\)
# console: check-health:gpus: gsp-timeout: GPU 6 .*does not answer \(Xid 119\)
# console: check-health:gpus: reset-required: NVIDIA driver: a GPU accepts no work until it is reset
# console: check-health:gpus: nvlink-error: NVIDIA driver: it cannot tell which NVLinks are up
# console: check-driver:nvidia: driver-parameter: the NVIDIA driver was loaded with GrdmaPciTopoCheckOverride=0 \(wanted: 1\)
# console: check-driver:nvidia: the NVIDIA driver was loaded with GrdmaPciTopoCheckOverride=0 \(wanted: 1\)
# console: NODESTRAP verdict=failed code=EHEALTH step=check-health
# Faults around the GPUs: links, EFA, the kernel log, the way from EFA to the GPUs. Each is on the console, in status and in the metrics;
# the configuration decides what follows.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

policy() { spec "{accelerator: {nvidia: {health: $1}}}"; }
shown() { nodestrap status --long | grep -E -- "$1" || { nodestrap status --long | head -40; return 1; }; }
metric() { grep -E -- "^nodestrap_$1" /run/nodestrap/metrics.prom || { grep -E '^nodestrap_gpu' /run/nodestrap/metrics.prom; return 1; }; }
no() { ! "$@"; }
link_is() { echo "$3" >"/sys/bus/pci/devices/$1/$2"; }
again() { systemctl reset-failed nodestrap-run; systemctl restart nodestrap-run; }
# found WORD ADDRESS: in status and in the metrics
found() {
        try "status has $1 of ${2:-the machine}" shown "^  $1: .*$2"
        try "the metrics have $1 of ${2:-the machine}" metric "gpu_health\{gpu=\"[0-9]*\",address=\"$2\",word=\"$1\"\} 1$"
}

power_on p5-48xlarge
try "a healthy machine comes up" node_starts
try "status says that the health of the machine is good" shown '^Health: good, checked .*pcie, kernel-log, efa, gpudirect$'
try "EFA reaches the GPUs" shown '^GPUDirect: yes, by dma-buf and efa_nv_peermem$'
try "the metrics say that GPUDirect works" metric 'gpudirect 1$'

link_is 0000:64:00.0 current_link_width 8; link_is 0000:75:00.0 current_link_speed '16.0 GT/s PCIe'; link_is 0000:50:00.0 current_link_width 4
mknod_of=$(awk '$2 == "gdrdrv"' /proc/devices); mkdir -p /run/fakes/machine/sys/module/gdrdrv
sed '/^$/i 235 gdrdrv' /proc/devices >/run/fakes/devices; cat /run/fakes/devices >/run/fakes/machine/proc/devices
try "the node runs with slow links and without a GDRCopy device" again
try "the kernel had no gdrdrv before the test" is "$mknod_of" ''
found pcie-width 0000:64:00.0; found pcie-speed 0000:75:00.0; found pcie-width 0000:50:00.0; found gdrdrv ''
try "status has four findings" shown '^Health: 4 findings$'
try "the metrics say that GPU 1 is not healthy" metric 'gpu_healthy\{gpu="1",address="0000:64:00.0"\} 0$'
mknod -m 666 /dev/gdrdrv c 235 0
link_is 0000:64:00.0 current_link_width 16; link_is 0000:75:00.0 current_link_speed '32.0 GT/s PCIe'; link_is 0000:50:00.0 current_link_width 8
try "the node runs after the repair" again
try "status says that health is good after the repair" shown '^Health: good'
rm /dev/gdrdrv

# ---- from power-on ----
power_on p5-48xlarge 'efa-port-state=0000:50:00.0 1: DOWN
0000:51:00.0 none' 'kmsg=NVRM: Xid (PCI:0000:86:00): 13, Graphics Exception
NVRM: Xid (PCI:0000:86:00): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.
NVRM: Xid (PCI:0000:86:00): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.
nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up
NVRM: GPU 0000:97:00.0: RmInitAdapter failed! (0x62:0x40:2417)'
try "the node comes up with port faults and errors in the kernel log" node_starts
found efa-port 0000:50:00.0; found efa-port 0000:51:00.0; found xid 0000:86:00.0; found sxid 0000:c4:00.0; found gpu-init 0000:97:00.0
try "status has five findings" shown '^Health: 5 findings$'

lost='kmsg=NVRM: Xid (PCI:0000:a8:00): 79, GPU has fallen off the bus.
NVRM: GPU 0000:a8:00.0: GPU has fallen off the bus.
NVRM: Xid (PCI:0000:b9:00): 119, pid=7, Timeout after 6s of waiting for RPC response from GPU6 GSP! Expected function 76'
power_on p5-48xlarge 'nvml=recovery none' "$lost"
fails 33 EHEALTH 'GPU 5 \(0000:a8:00.0\): .*fallen off the bus .*\(and 1 more\)$' "a GPU off the bus, with a driver that has no recovery actions"
found off-the-bus 0000:a8:00.0; found gsp-timeout 0000:b9:00.0
power_on p5-48xlarge 'nvml=recovery none' "$lost"; spec '{cluster: {repairCondition: true}}'
systemctl stop nodestrap-event.path; systemctl mask --runtime nodestrap-event.service 2>/dev/null
id=$(cat /sys/devices/virtual/dmi/id/board_asset_tag); [[ $id = i-* ]] || id=$(cat /sys/devices/virtual/dmi/id/product_uuid)
mkdir -p /var/lib/nodestrap; printf '{"machine": "%s", "bootId": ""}' "$id" >/var/lib/nodestrap/condition.json       # a Node has one
fails 33 EHEALTH 'GPU 5 \(0000:a8:00.0\): .*fallen off the bus' "a GPU off the bus, with repairCondition"
try "each finding has the reason that EKS uses for it" is "$(grep -o '"reason": "[^"]*"' /run/nodestrap/status.json | sort -u | xargs)" 'reason: NvidiaXID119Error reason: NvidiaXID79Error'
try "the condition for the cluster has the reason of the first finding" grep -h '"repairReason": "NvidiaXID79Error"' /run/nodestrap/events/*.condition
try "the condition for the cluster has the message of the first finding" grep -h '"repairMessage": "GPU 5 (0000:a8:00.0): NVIDIA driver: the GPU has fallen off the bus' /run/nodestrap/events/*.condition
systemctl unmask --runtime nodestrap-event.service 2>/dev/null
power_on p5-48xlarge "$lost"
try "the node comes up with a GPU off the bus if the driver wants no recovery action" node_starts
found off-the-bus 0000:a8:00.0; found gsp-timeout 0000:b9:00.0

power_on p5-48xlarge 'nvml=recovery none' 'kmsg=NVRM: Xid (PCI:0000:a8:00): 95, pid=7062, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No
NVRM: Xid (PCI:0000:a8:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
NVRM: Xid (PCI:0000:a8:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)'
try "the node comes up if the driver has taken its recovery action back" node_starts
found xid 0000:a8:00.0

power_on p5-48xlarge 'kmsg=NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @ kernel_channel.c:2874
NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0s postRxDetLinkMask failed!'
try "the node comes up with kernel errors that name no GPU" node_starts
found reset-required ''; found nvlink-error ''

power_on p5-48xlarge 'efa-port-state=0000:50:00.0 1: DOWN'; policy require
fails 33 EHEALTH '0000:50:00.0.*1: DOWN' "require: a port that is down"

# ---- the way from EFA to the GPUs ----
power_on p5-48xlarge efa-p2p=; echo 'options nvidia NVreg_EnableGpuFirmware=0' >/etc/modprobe.d/nvidia-disable-gsp.conf
try "the proprietary driver: the node comes up" node_starts
try "status says that the proprietary module does not support dma-buf" shown "^GPUDirect: no, the proprietary NVIDIA kernel module does not support dma-buf"
try "the metrics say that GPUDirect does not work" metric 'gpudirect 0$'
found peer-memory ''
power_on p5-48xlarge efa-p2p=; echo 'options nvidia NVreg_EnableGpuFirmware=0' >/etc/modprobe.d/nvidia-disable-gsp.conf
spec '{accelerator: {nvidia: {health: off, gpuDirect: on}}}'
fails 33 EHEALTH 'EFA cannot reach GPU memory, .*but spec.accelerator.nvidia.gpuDirect requires direct access: the proprietary NVIDIA kernel module does not support dma-buf' "the proprietary driver, with gpuDirect on"

# ---- a tray ----
early() { echo 'options nvidia NVreg_GrdmaPciTopoCheckOverride=0' >/etc/modprobe.d/zzz-image.conf; }
power_on p6e-gb200; early
try "the node comes up if the driver option of the image comes last" node_starts
try "status says that the driver needs another option and a reboot" shown '^GPUDirect: no, the NVIDIA driver needs GrdmaPciTopoCheckOverride=1, but was loaded with 0; reboot once'
found peer-memory ''
power_on p6e-gb200; early; spec '{accelerator: {nvidia: {gpuDirect: on}}}'
fails 33 EDRIVERSETTING 'loaded with GrdmaPciTopoCheckOverride=0 .wanted: 1' "a wrong driver option, with gpuDirect on"
power_on p6e-gb200; early; spec '{accelerator: {nvidia: {gpuDirect: off}}}'
try "gpuDirect off: the node comes up" node_starts
try "gpuDirect off: status says that health is good without GPUDirect" shown '^Health: good, checked .*kernel-log, efa$'
rm /etc/modprobe.d/zzz-image.conf

# ---- other classes ----
for f in p4d-24xlarge p5en-48xlarge p6-b200 g4dn g6e; do
        power_on $f; policy require
        try "$f without faults: the node comes up" node_starts
        try "$f: the machine is well" shown '^Health: good'
done
try "g6e: EFA reaches the GPUs" shown '^GPUDirect: yes'
power_on g6e efa-takes=180; policy require
try "the node comes up if EFA is slower than the driver" node_starts
try "the machine is well when EFA comes late" shown '^Health: good'
power_on g4dn
try "g4dn comes up" node_starts
try "g4dn: status says that GPUDirect does not work" shown "^GPUDirect: no, the proprietary NVIDIA kernel module"

finish
