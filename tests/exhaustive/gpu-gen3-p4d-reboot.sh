#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: p4d-24xlarge gen3 reset-fails=no query-takes=30
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}]}}}
# tree: enabled gpu containerd_version
# console: set-mig-mode:mig: MIG mode of all 8 GPUs takes effect .*this machine reboots now, once
# console: NODESTRAP verdict=ok
# The A100 of a p4d.24xlarge with an image of autumn 2026 take MIG mode at a reboot. In the second boot all units are enabled from the
# start. The mode is on without instances, and the CDI writer of the toolkit would fail with that.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the machine was started twice" is "$(grep -c ^power-on /var/lib/power-on)" 2
check_gpu_node 'module nvidia$' fm-active 'nvidia-smi -L' 'cdi-generated devices=56' 'kubelet gpus=8 fabric=not-supported instances=56 cdi=yes'
try "the CDI writer of the toolkit neither ran nor failed" never 'cdi-(refreshed|failed)'
try "nvidia-smi resets no GPU" never 'nvidia-smi.*reset'
try "no GPU was in use when its MIG mode was set" is "$(awk '$2 == "nvmlDeviceSetMigMode" && $4 > 1' /var/lib/fake-nvml.state)" ""

finish
