#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p4d-24xlarge gen1 monitor
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}]}}}
# tree: enabled gpu
# console: at set-mig-mode:mig: MIG mode of all 8 GPUs takes effect after a reboot \(resetting: In use by another client; nv-hostengine \([0-9]+\) has a GPU open\)[,;] (the run phase reboots|this machine reboots now, once)
# console: set-mig-mode:mig: MIG mode of all 8 GPUs .*nv-hostengine \([0-9]+\) has a GPU open\); this machine reboots now, once
# console: NODESTRAP verdict=ok
# An unknown program holds the A100 of a p4d.24xlarge, so that a reset fails. nodestrap names it, their MIG mode stays pending, and one
# reboot sets it, with that program there again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the machine was started twice" is "$(grep -c ^power-on /var/lib/power-on)" 2
check_gpu_node dcgm-started fm-active 'nvidia-smi -L' 'cdi-generated devices=56' 'kubelet gpus=8 fabric=not-supported instances=56 cdi=yes'
try "nodestrap resets no GPU and unloads no module" never 'nvidia-smi.*reset|unload'
try "the program that holds the GPUs runs" active monitor

finish
