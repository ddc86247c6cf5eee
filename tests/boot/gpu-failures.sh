#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu api
# console: NODESTRAP verdict=failed code=EFABRIC step=await-fabric
# console: nodestrap: failed \(33 EFABRIC\) at await-fabric:fabric: .*In Progress
# console: NODESTRAP verdict=tainted code=EFABRIC step=await-fabric
# console: nodestrap: failed \(33 EGPUMISSING\)
# The faults of a GPU machine, one after the other, each on a machine that was just powered on. Each has a code of its own and a sentence
# that names the part. kubelet starts only if the configuration says so.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

fabric() { spec "{accelerator: {nvidia: {fabric: {timeout: 2s${1:+, $1}}}}${2:+, $2}}"; }
pci() { echo "/sys/bus/pci/devices/$1"; }

# ---- the fabric, and what the configuration makes of it ----
power_on p5-48xlarge fabric-takes=100000; fabric
fails 33 EFABRIC 'GPU.*In Progress' "a fabric that never completes"
try "init waits between 1 s and 30 s for the fabric" python3 -c 'import json
a = next(a for a in json.load(open("/run/nodestrap/status.json"))["runs"]["devices,run"]["actions"] if a["id"] == "await-fabric:fabric")
assert 1.0 < (a["endUsec"] - a["beginUsec"]) / 1e6 < 30, a'
try "containerd is active without the fabric" active containerd

power_on p5-48xlarge fabric-takes=100000; fabric 'gate: warn'
try "gate warn: the node comes up" node_starts
try "kubelet starts although the fabric is incomplete" kubelet_saw fabric=in-progress
try "status.json has the warning about the fabric" grep -qE 'In Progress' /run/nodestrap/status.json

power_on p5-48xlarge fabric-takes=100000; fabric 'gate: off'
try "gate off: the node comes up" node_starts
try "kubelet starts without a wait for the fabric" kubelet_saw fabric=in-progress

power_on p5-48xlarge fabric-takes=100000; cp /vmtest/cluster.yaml /etc/eks/nodeadm.d/; fabric '' 'failurePolicy: join-tainted'
try "join-tainted: the run succeeds" node_starts
try "join-tainted: the verdict is tainted with EFABRIC" is "$(value verdict) $(value code) $(value step)" "tainted EFABRIC await-fabric:fabric"
try "kubelet starts with a taint" sh -c "tr '\0' '\n' </run/recording-kubelet/argv | grep -x -- '--register-with-taints=nodestrap/unhealthy=EFABRIC:NoSchedule'"
try "kubelet registers with a label for the failure" sh -c "tr '\0' '\n' </run/recording-kubelet/argv | grep -x -- '--node-labels=nodestrap/unhealthy=EFABRIC'"
rm /etc/fakes/fabric-takes; nvml_changed
systemctl restart nodestrap-run
try "the next run succeeds when the fabric is complete" is "$(value verdict)" ok
try "kubelet loses the taint when the fabric is complete" sh -c "! tr '\0' '\n' </run/recording-kubelet/argv | grep unhealthy"

power_on p5-48xlarge; echo 'fabric 3 completed 10' >/etc/fakes/nvml; fabric
fails 33 EFABRIC 'GPU.*0000:86:00.0' "one GPU of eight that did not join"

power_on p6e-gb200 fabric-takes=100000; spec '{kubelet: {config: {maxPods: 110}}, accelerator: {nvidia: {fabric: {timeout: 2s}}}}'
fails 33 EFABRIC 'rack' "a tray whose rack never completes the fabric"

# ---- fabric manager ----
power_on p5-48xlarge fm-fails-once=yes; fabric
try "the node starts if fabric manager fails once" node_starts
try "kubelet starts with a complete fabric" kubelet_saw fabric=completed
power_on p5-48xlarge fm-leaves=yes fabric-takes=100000; fabric
fails 33 EFABRIC 'nvidia-fabricmanager|fabric manager|In Progress' "a fabric manager that dies after its start"
power_on p5-48xlarge fm-version=570.86.15
fails 33 EVERSION '570.86.15.*580.159.04|580.159.04.*570.86.15' "a fabric manager of another version than the driver"
try "nodestrap does not start a fabric manager of another version" never fm-
power_on p6-b200; mv /usr/sbin/ibstat /root/
fails 33 EFABRICMANAGER 'ibstat' "an image without ibstat, which the NVIDIA script needs"
mv /root/ibstat /usr/sbin/
power_on p6-b200 module-ib_umad-missing=yes
fails 33 EMODULE 'ib_umad' "a kernel without ib_umad"
try "nodestrap does not start fabric manager without ib_umad" never fm-

# ---- the driver and its library ----
power_on p5-48xlarge driver-fails="no tree for this kernel"; systemctl start --no-block nvidia-kmod-load
try "the node starts if the loader of the image failed but the driver can be loaded" node_starts
try "status.json has the warning about nvidia-kmod-load.service" grep -qE 'nvidia-kmod-load.service' /run/nodestrap/status.json
power_on p5-48xlarge driver-fails="no tree for this kernel" module-nvidia-missing=yes; systemctl start --no-block nvidia-kmod-load
fails 33 EDRIVER 'nvidia' "an image whose loader fails, and no module"
power_on p5-48xlarge unbound=0000:86:00.0
fails 33 EDRIVER '0000:86:00.0' "a GPU that the driver does not bind"
library=/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
power_on p5-48xlarge; fabric; mv $library $library.away
fails 33 'ENVML|ENVIDIASMI' 'libnvidia-ml.so.1' "no management library"
mv $library.away $library
power_on p5-48xlarge; fabric; echo 'error nvmlInit 18' >/etc/fakes/nvml
fails 33 'ENVML|ENVIDIASMI' 'Driver/library version mismatch|nvmlInit.*18' "a management library of another version"
power_on p5-48xlarge; fabric; echo 'error nvmlDeviceGetGpuFabricInfoV 15 2' >/etc/fakes/nvml
fails 33 ENVML 'lost.*15' "a GPU that is lost"

# ---- persistenced, without which a node works ----
persistenced_is() {
        mkdir -p /run/systemd/system/nvidia-persistenced.service.d
        echo "$1" >/run/systemd/system/nvidia-persistenced.service.d/test.conf; systemctl daemon-reload
}
power_on p5-48xlarge; persistenced_is $'[Service]\nExecStart=\nExecStart=/bin/false'
try "the node starts if persistenced fails" node_starts
try "kubelet starts with a complete fabric if persistenced fails" kubelet_saw 'gpus=8 fabric=completed'
try "the warning has the exit status of persistenced" grep -qE 'nvidia-persistenced.service did not stay up: .*status 1' /run/nodestrap/status.json
power_on p5-48xlarge; persistenced_is $'[Unit]\nStopWhenUnneeded=true'
try "the node starts if persistenced stops for lack of work" node_starts
try "persistenced was started" happened persistenced-started
try "persistenced has stopped without a failure" is "$(property nvidia-persistenced ActiveState) $(property nvidia-persistenced Result)" "inactive success"
try "kubelet starts with a complete fabric if persistenced stops" kubelet_saw 'gpus=8 fabric=completed'
try "status.json has no warning about persistenced" no grep -q 'nvidia-persistenced.service did not' /run/nodestrap/status.json

# ---- programs ----
power_on p5-48xlarge smi-sees=7
fails 33 ENVIDIASMI '7.*8' "nvidia-smi sees seven of eight GPUs"
power_on p5-48xlarge smi-fails="Unable to determine the device handle for GPU2: Unknown Error"
fails 33 ENVIDIASMI 'Unable to determine the device handle' "nvidia-smi fails"
power_on p5-48xlarge; mv /usr/bin/nvidia-ctk /root/
try "the node comes up without nvidia-ctk" node_starts
try "kubelet starts without CDI" kubelet_saw cdi=none
try "status.json names the missing package" grep -q 'nvidia-container-toolkit' /run/nodestrap/status.json
mv /root/nvidia-ctk /usr/bin/

# ---- MIG ----
power_on p5-48xlarge; spec '{accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}]}}}'
fails 33 EMIG '1g.5gb is not a profile.*1g.10gb' "a profile that these GPUs do not have"
power_on p5-48xlarge; spec '{accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.10gb: 7}}]}}}'; echo 'mig in-use' >/etc/fakes/nvml
fails 33 EMIG 'in use|In use' "GPUs that are in use"

# ---- devices that are not there ----
power_on p5-48xlarge; rm -r "$(pci 0000:86:00.0)"
fails 33 EGPUMISSING '1 of 8 GPUs is missing.*0000:86:00.0' "seven GPUs of eight"
power_on p5-48xlarge; rm -r "$(pci 0000:df:00.0)"
fails 33 ENVSWITCH '1 of 4 NVSwitches is missing' "three NVSwitches of four"
power_on p5-48xlarge; rm -r /sys/bus/pci/devices/0000:df:0*
fails 33 EGPUCLASS 'NVSwitch' "a p5.48xlarge without NVSwitches"
power_on p5-48xlarge; rm -r "$(pci 0000:4f:00.0)"; spec '{instance: {network: {efa: {mode: require, expectedDevices: 32}}}}'
fails 32 EEFA '1 of 32 EFA devices is missing.*0000:4f:00.0' "one EFA device of 32 is missing"
power_on p5-48xlarge unbound=0000:4f:00.0; spec '{instance: {network: {efa: {mode: require, expectedDevices: 32}}}}'
fails 32 EEFA '0000:4f:00.0' "an EFA device that its driver does not bind"

finish
