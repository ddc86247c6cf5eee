#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2 dcgm
# spec: {accelerator: {nvidia: {mig: [{devices: [0], profiles: {1g.10gb: 7}}]}}}
# tree: enabled gpu modprobe_edited
# console: NODESTRAP verdict=ok
# The user script of a p5.48xlarge writes a file of modprobe.d when the devices phase has loaded the driver. nodestrap loads it again before
# kubelet starts, and repeats all steps that need it.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the driver loads with the options of the image, and then with those of the script" in_order 'module nvidia$' fm-active 'nvidia-smi -L' 'unload nvidia$' 'module nvidia$' fm-active 'nvidia-smi -L' kubelet
try "the driver loads again only once" is "$(grep -c '^unload nvidia$' $E)" 1
try "the driver has the option of the user script" grep -x 'ImexChannelCount: 512' /proc/driver/nvidia/params
check_gpu_node 'unload nvidia$' 'module nvidia$' persistenced-started fm-active 'cdi-generated devices=14' 'kubelet gpus=8 fabric=completed instances=7 cdi=yes'
try "nvidia_drm and nvidia_uvm are loaded again" ls -d /sys/module/nvidia_drm /sys/module/nvidia_uvm
try "DCGM runs again" active nvidia-dcgm
try "status has no warning about other driver options" sh -c "! nodestrap status --long | grep driver-options"

finish
