#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu
# console: nodestrap: failed \(33 ECDI\) at generate-cdi:/var/run/cdi/nvidia.yaml: .*/dev/nvidia-uvm
# CDI: only nodestrap makes the device nodes. The generator leaves out missing ones and ends well. After a change of the GPUs or of the file
# nodestrap writes it again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

has() { grep -qE -- "$1" /run/cdi/nvidia.yaml; }
again() { systemctl restart nodestrap-run; }
asked() { programs_asked; }
number() { stat -c '%t:%T %a' "$1"; }

# ---- nodes ----
power_on p5-48xlarge
mknod -m 600 /dev/nvidia-uvm c 1 3; ln -s ../null /dev/char/195:255
try "the node starts if /dev has a device node of another driver" node_starts
try "/dev/nvidia-uvm has the number of this boot" is "$(number /dev/nvidia-uvm)" "$(printf %x "$(major_of nvidia-uvm)"):0 666"
try "nvidia-uvm-tools has the numbers of this driver" is "$(number /dev/nvidia-uvm-tools)" "$(printf %x "$(major_of nvidia-uvm)"):1 666"
try "nvidiactl and each GPU have their device nodes" is "$(number /dev/nvidiactl) $(number /dev/nvidia7)" "c3:ff 666 c3:7 666"
try "runc finds the device nodes in /dev/char" is "$(readlink /dev/char/195:255) $(readlink /dev/char/195:7)" "../nvidiactl ../nvidia7"
try "a module that is not loaded has no device node" no test -e /dev/nvidia-modeset
try "the CDI file has nvidia-uvm-tools" has 'path: /dev/nvidia-uvm-tools$'
try "kubelet starts with 8 GPUs and the CDI file" kubelet_saw 'gpus=8 .*cdi=yes'

# ---- again ----
before=$(asked); again
try "a second run calls neither nvidia-smi nor nvidia-ctk" is "$(asked)" "$before"
try "status.json has the number of listed GPUs" is "$(value accelerator listed)" 8
echo "# mine" >>/run/cdi/nvidia.yaml; again
try "nodestrap writes a CDI file again that another program has changed" no has mine
rm /dev/nvidia-uvm; again
try "nodestrap makes a removed device node again" is "$(number /dev/nvidia-uvm)" "$(printf %x "$(major_of nvidia-uvm)"):0 666"
nvidia-smi -mig 1; nvidia-smi mig -cgi 1g.10gb,1g.10gb; again
try "nodestrap lists GPUs again after their division has changed" in_order 'nvidia-smi mig' 'nvidia-smi -L' 'cdi-generated devices=16'
try "the MIG instances have device nodes" test -c /dev/nvidia-caps/nvidia-cap12
try "the CDI file has the parts of GPUs" has 'name: "7:1"'
try "the CDI file has no divided GPU as a whole" no has 'name: "7"'

# ---- names ----
power_on p5-48xlarge ctk-names=uuid
try "the node starts if nvidia-ctk names devices by UUID" node_starts
try "kubelet starts with CDI if nvidia-ctk names devices by UUID" kubelet_saw 'cdi=yes'
power_on p5-48xlarge ctk-names=type-index
try "the node starts if nvidia-ctk names devices by type and index" node_starts

# ---- what is left out ----
power_on p5-48xlarge ctk-skips=/dev/nvidia-uvm
fails 33 ECDI 'the output of nvidia-ctk lacks /dev/nvidia-uvm; nvidia-ctk said .Could not locate /dev/nvidia-uvm: pattern' "a CDI file without nvidia-uvm"
try "nodestrap publishes no CDI file without nvidia-uvm" no test -e /run/cdi/nvidia.yaml
power_on p5-48xlarge ctk-skips="3 /dev/nvidia5"
fails 33 ECDI 'lacks device 3 and /dev/nvidia5 in device 5; ' "a CDI file without one GPU and without the device node of another"
power_on p5-48xlarge ctk-skips="2:6 /dev/nvidia-caps/nvidia-cap12"; spec '{accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.10gb: 7}}]}}}'
fails 33 ECDI 'lacks /dev/nvidia-caps/… in device 0:0 and device 2:6' "a CDI file without a MIG device"
power_on p5-48xlarge ctk-writes='kind: [nvidia.com/gpu'
fails 33 ECDI 'nvidia-cdi.yaml, written by nvidia-ctk, cannot be used: ' "a CDI file that is not valid YAML"
power_on p5-48xlarge ctk-writes='{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": []}'
fails 33 ECDI 'lacks /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia-uvm-tools, device 0 and 7 more' "a CDI file without devices"
power_on p5-48xlarge module-nvidia_uvm-missing=yes
fails 33 'EMODULE|EDRIVER' 'nvidia_uvm' "a driver without nvidia_uvm"

finish
