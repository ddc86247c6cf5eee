#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p4d-24xlarge gen2 dcgm smi-hangs=--gpu-reset
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}]}}}
# script: until grep -q gpu-reset /run/fakes/events; do sleep 0.2; done; rm /etc/fakes/smi-hangs; kill -9 $(systemctl show -P MainPID nodestrap-devices)
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A devices process is killed while it resets the A100 of a p4d.24xlarge, after it has stopped the units that hold them. The next process
# does the rest and starts those units again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

may_fail nodestrap-devices
check_gpu_node 'reset all' fm-active 'nvidia-smi -L' 'cdi-generated devices=56' 'kubelet gpus=8 fabric=not-supported instances=56 cdi=yes'
try "persistenced runs again" active nvidia-persistenced
try "DCGM runs again" active nvidia-dcgm
try "nvidia_drm is loaded again" test -d /sys/module/nvidia_drm
try "nodestrap has started every unit that it had stopped" test ! -e /run/nodestrap/stopped

finish
