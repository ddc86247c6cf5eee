#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/p4d-24xlarge-mig.userdata
# gpu: p4d-24xlarge gen2 dcgm
# spec: {featureGates: {InstanceIdNodeName: true}, instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p4d.24xlarge whose A100 are to be divided, with an image whose own units hold them before we come: persistenced, DCGM, nvidia_drm.
# MIG mode stays pending then (NVIDIA/gpu-operator#118, #1845) and nvidia-smi resets nothing; so nodestrap stops them, and starts
# them again after the reset. Fabric manager waits for that.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the machine was not rebooted" is "$(grep -c ^power-on /var/lib/power-on)" 1
try "units of the image hold the GPUs, and nodestrap unloads modules before the reset" in_order dcgm-started 'module nvidia_drm' persistenced-started clocks-of-the-ami 'unload nvidia_drm' 'unload nvidia_modeset' 'reset all'
try "one reset is enough, and the driver does not refuse it" sh -c "! grep reset-refused $E; [ \$(grep -c '^reset' $E) = 1 ]"
try "fabric manager became active once" sh -c "[ \$(grep -c '^fm-active' $E) = 1 ]"
check_gpu_node 'reset all' fm-active 'nvidia-smi -L' 'cdi-generated devices=56' 'kubelet gpus=8 fabric=not-supported instances=56 cdi=yes'
try "persistenced runs again" active nvidia-persistenced
try "DCGM runs again" active nvidia-dcgm
try "nvidia_drm is loaded again" test -d /sys/module/nvidia_drm

finish
