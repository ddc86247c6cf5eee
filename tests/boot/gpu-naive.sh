#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu
# The wrong order breaks machines: pytorch/ci-infra#552, NVIDIA/gpu-operator#2781, spectrocloud/CanvOS#700, siderolabs/extensions#717,
# Azure/AgentBaker#8736, NVIDIA/mig-parted#82. Each runs on a machine that was just powered on: first in the order that broke, then by
# nodestrap.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

# ours NAME FIXTURE [NAME=VALUE…]: nodestrap brings the node up. $SPEC is the spec of its NodeConfig, or empty.
ours() {
        local name=$1 fixture=$2; shift 2
        power_on "$fixture" "$@"; spec "${SPEC:-{\}}"
        systemctl start --no-block nodestrap-devices nodestrap-run; ami_starts    # at a boot all of them are queued at once
        try "$name" node_starts
}

power_on p5-48xlarge
try "fabric manager before the driver waits for GPUs in vain" no systemctl start nvidia-fabricmanager
try "fabric manager reports the unfinished fabric" sh -c "journalctl -b -o cat -u nvidia-fabricmanager | grep 'not all local fabric manager instances finished'"
ours "nodestrap brings the node up with a driver that takes long" p5-48xlarge driver-takes=60
try "fabric manager starts after the driver, and kubelet after fabric manager" in_order 'module nvidia$' fm-active kubelet
try "fabric manager did not give up with nodestrap" never fm-gave-up

power_on p6-b200
modprobe nvidia
try "fabric manager before mlx5_ib takes HGX B200 for an older system" no systemctl start nvidia-fabricmanager
try "fabric manager reports a system without switches" sh -c "journalctl -b -o cat -u nvidia-fabricmanager | grep 'Detected Pre-NVL5 system'"
try "fabric manager finds nothing to do before mlx5_ib is loaded" happened fm-nothing-to-do
kubelet_starts
try "the node takes pods although no GPU has a fabric" no kubelet_saw fabric=completed
power_on p6-b200
modprobe -a nvidia mlx5_ib
try "fabric manager cannot start before ib_umad is loaded" no systemctl start nvidia-fabricmanager
try "fabric manager reports that ib_umad is missing" happened 'fm-refused ib_umad'
ours "nodestrap loads the missing modules and brings the node up" p6-b200
try "nodestrap loads mlx5_core, mlx5_ib and ib_umad before NVLSM and fabric manager" in_order 'module mlx5_core' 'module mlx5_ib' 'module ib_umad' nvlsm-started fm-active 'kubelet .*fabric=completed'
try "fabric manager was started once" once fm-

power_on p6-b200
modprobe -a nvidia mlx5_ib ib_umad
try "fabric manager without NVLSM finds nothing to do" no nv-fabricmanager -c /dev/null -g 0x1
/opt/nvidia/nvlsm/sbin/nvlsm --pid_file /run/nvlsm.pid
try "the NVIDIA start script fails beside an NVLSM that another unit runs" no systemctl start nvidia-fabricmanager
try "the NVIDIA start script has started a second NVLSM" happened nvlsm-second
kill "$(cat /run/nvlsm.pid)"
power_on p6-b200
modprobe -a nvidia mlx5_ib ib_umad
guid=$(port_guid mlx5_0)
/opt/nvidia/nvlsm/sbin/nvlsm --guid "$guid" --pid_file /run/nvlsm.pid
try "NVLSM on the first port of a bridge lets fabric manager start" sh -c "nv-fabricmanager -c /dev/null -g $guid >/dev/null 2>&1"     # its daemon keeps what it was given
kubelet_starts
try "no GPU joins the fabric by a port that is not for a subnet manager" kubelet_saw 'gpus=8 fabric=(not-started|in-progress)'
kill "$(cat /run/nvlsm.pid)" "$(cat /run/nvidia-fabricmanager/nv-fabricmanager.pid)"
ours "nodestrap leaves the choice of the port to the NVIDIA script" p6-b200
try "nodestrap finds the right port" kubelet_saw 'gpus=8 fabric=completed'

power_on p6-b200
modprobe -a nvidia mlx5_ib ib_umad; mv /usr/sbin/ibstat /root/
try "the NVIDIA start script fails without infiniband-diags" no systemctl start nvidia-fabricmanager
try "the NVIDIA start script fails each time without infiniband-diags" no systemctl start nvidia-fabricmanager
kubelet_starts
try "the node takes pods with an incomplete fabric" kubelet_saw 'gpus=8 fabric=(not-started|in-progress)'
power_on p6-b200
fails 33 EFABRICMANAGER 'ibstat.*infiniband-diags' "an image without infiniband-diags"
try "nodestrap does not start fabric manager" never fm-
mv /root/ibstat /usr/sbin/

for fixture in g6e p6e-gb200; do
        power_on $fixture
        modprobe nvidia
        try "$fixture: fabric manager fails without a switch" no systemctl start nvidia-fabricmanager
        ours "$fixture: nodestrap brings the node up" $fixture
        try "$fixture: fabric manager never ran" never 'fm-|nvlsm'
        try "$fixture: fabric manager is inactive and has not failed" is "$(property nvidia-fabricmanager ActiveState)" inactive
done

power_on p5-48xlarge
modprobe nvidia; systemctl mask --runtime nvidia-fabricmanager 2>/dev/null
try "a masked fabric manager cannot be started" no systemctl start nvidia-fabricmanager
power_on p5-48xlarge
modprobe nvidia
kubelet_starts
try "the node takes pods without fabric manager, and the fabric is incomplete" kubelet_saw 'gpus=8 fabric=(not-started|in-progress)'
power_on p5-48xlarge fabric-takes=120
modprobe nvidia; systemctl start nvidia-fabricmanager; kubelet_starts
try "a kubelet that does not wait for the fabric finds it unfinished" kubelet_saw fabric=in-progress
ours "nodestrap brings the node up with a slow fabric" p5-48xlarge fabric-takes=120
try "kubelet starts after the slow fabric is complete" kubelet_saw 'gpus=8 fabric=completed'

power_on p5-48xlarge
printf '[Unit]\nBefore=containerd.service\n[Service]\nType=oneshot\nTimeoutStartSec=500ms\nExecStart=/bin/systemctl start containerd\n' >/run/systemd/system/waits.service
systemctl daemon-reload
try "a oneshot unit before containerd that starts containerd cannot start" no systemctl start waits
rm /run/systemd/system/waits.service

power_on p5-48xlarge
modprobe nvidia; systemctl start nvidia-fabricmanager; nvidia-smi -mig 1 >/dev/null
try "nvidia-ctk fails if MIG is on and there are no instances" no nvidia-ctk cdi generate --output=/run/cdi/nvidia.yaml
nvidia-smi mig -cgi 1g.10gb,1g.10gb -C >/dev/null
try "nvidia-ctk leaves out instances without device nodes" sh -c "nvidia-ctk cdi generate --output=/run/cdi/nvidia.yaml 2>&1 | grep -q 'Could not locate /dev/nvidia-caps/nvidia-cap'"
SPEC='{accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.10gb: 7}}]}}}' ours "nodestrap divides the GPUs and brings the node up" p5-48xlarge
try "nodestrap lists the divided GPUs and then writes CDI" in_order fm-active 'nvidia-smi .*-L' 'cdi-generated devices=56' 'kubelet .*instances=56 cdi=yes'

power_on p4d-24xlarge
modprobe nvidia; systemctl start nvidia-fabricmanager; nvidia-smi -mig 1 >/dev/null; nvidia-ctk cdi generate --output=/run/cdi/nvidia.yaml; kubelet_starts
try "the node has no MIG instances if A100 are not reset for MIG mode" kubelet_saw 'gpus=8 .*instances=0'
SPEC='{accelerator: {nvidia: {mig: [{devices: all, profiles: {3g.20gb: 1, 2g.10gb: 1, 1g.5gb: 2}}]}}}' ours "nodestrap resets the A100 for MIG mode and brings the node up" p4d-24xlarge
try "nodestrap resets the A100 before fabric manager starts" in_order 'reset all' fm-active 'nvidia-smi .*-L' 'cdi-generated devices=32' 'kubelet .*instances=32 cdi=yes'
try "fabric manager is active after the reset" active nvidia-fabricmanager

power_on p5-48xlarge fm-version=570.86.15
modprobe nvidia
try "a fabric manager of another version gives up" no systemctl start nvidia-fabricmanager
try "fabric manager gives up because of its version" happened fm-version

power_on p6e-gb200
modprobe nvidia; printf '10.0.0.%s\n' 1 2 >/etc/nvidia-imex/nodes_config.cfg; echo IMEX_CMD_ENABLED=1 >/etc/nvidia-imex/config.cfg
systemctl start nvidia-imex
try "the IMEX daemon of DRA cannot start if IMEX runs on the host" no nvidia-imex -c /etc/nvidia-imex/config.cfg
try "the IMEX daemon of DRA reports that the role is taken" happened imex-in-use
SPEC='{accelerator: {nvidia: {imex: {mode: dra}}}}' ours "nodestrap keeps IMEX off the host and brings the node up" p6e-gb200
printf '10.0.0.%s\n' 1 2 >/etc/nvidia-imex/nodes_config.cfg; echo IMEX_CMD_ENABLED=1 >/etc/nvidia-imex/config.cfg
try "systemctl cannot start nvidia-imex by mistake" no systemctl start nvidia-imex
try "the IMEX daemon of DRA starts with nodestrap" nvidia-imex -c /etc/nvidia-imex/config.cfg
kill "$(cat /run/nvidia-imex/nvidia-imex.pid)"

power_on p5-48xlarge
modprobe nvidia
try "the kernel has no module for IMEX channels" no modprobe nvidia-caps-imex-channels
try "channel 0 does not exist" no test -e /dev/nvidia-caps-imex-channels/channel0
SPEC='{accelerator: {nvidia: {imex: {createChannel0: true}}}}' ours "nodestrap brings the node up with createChannel0" p5-48xlarge
try "channel 0 is a device that every container may open" sh -c "stat -c %F:%a:%t:%T /dev/nvidia-caps-imex-channels/channel0 | grep -E '^character special file:666:[0-9a-f]+:0'"
try "nodestrap loads no module for channels" never module-refused

early='http://169.254.169.254/latest/api/token: Network is unreachable'
power_on p5-48xlarge driver-fails="$early"
try "a driver loader that needs the metadata service fails before the network is up" no systemctl start nvidia-kmod-load
kubelet_starts
try "the node takes pods although it has no driver" kubelet_saw 'gpus=\? '
ours "nodestrap loads the driver itself if the loader fails" p5-48xlarge driver-fails="$early"
try "nodestrap loads the driver before fabric manager and kubelet start" in_order driver-failed 'module nvidia$' fm-active 'kubelet gpus=8 fabric=completed'

power_on p5-48xlarge; all=$(gpus | paste -sd' ')
power_on p5-48xlarge unbound="$all"
modprobe nvidia; kubelet_starts
try "the node takes pods although a module of the wrong flavour binds no GPU" kubelet_saw gpus=0
power_on p5-48xlarge unbound="$all"
fails 33 EDRIVER "0000:53:00.0.*flavo" "a driver module of the wrong flavour"

finish
