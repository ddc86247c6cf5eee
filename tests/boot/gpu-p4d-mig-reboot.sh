#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p4d-24xlarge gen1 reset-fails=unsupported
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}]}}}
# tree: enabled gpu
# console: at set-mig-mode:mig: MIG mode of all 8 GPUs takes effect after a reboot .*; the run phase reboots after the user scripts
# console: set-mig-mode:mig: MIG mode of all 8 GPUs takes effect .*this machine reboots now, once
# console: NODESTRAP verdict=ok
# nodestrap must divide the A100 of a p4d.24xlarge and cannot reset them. MIG mode takes effect at a reboot
# (https://docs.nvidia.com/datacenter/tesla/mig-user-guide/), which nodestrap asks for. The second boot divides them.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the machine was started twice" is "$(grep -c ^power-on /var/lib/power-on)" 2
check_gpu_node fm-active 'nvidia-smi -L' 'cdi-generated devices=56' 'kubelet gpus=8 fabric=not-supported instances=56 cdi=yes'
try "the second boot does not reset GPUs" never 'nvidia-smi.*reset'

finish
