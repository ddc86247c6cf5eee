#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: g5 gen3 highest-clocks=6251,2040
# spec: {accelerator: {nvidia: {clocks: default}}}
# tree: enabled gpu containerd_version
# console: NODESTRAP verdict=ok
# A g5.12xlarge with an image of autumn 2026, on the systemd of Amazon Linux 2023 (252). Programs, libraries and units of the driver come at
# boot, into /etc/systemd/system. That hides a mask in /run/systemd/system (awslabs/amazon-eks-ami#2795).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'usr-copy lib64' depmod 'module nvidia$' persistenced-started 'nvidia-smi --applications-clocks' clocks-of-the-ami \
        'kubelet gpus=4 fabric=not-supported instances=0 cdi=yes'
try "the library cache is updated before CDI is written" in_order ldcache cdi-generated
try "the CDI writer of the toolkit did not run during the boot" never cdi-refreshed
try "fabric manager never ran" never 'fm-|nvlsm'
try "the unit file of fabric manager lies where it hides a mask" test -f /etc/systemd/system/nvidia-fabricmanager.service
try "fabric manager stays masked until the next boot" is "$(property nvidia-fabricmanager LoadState) $(property nvidia-fabricmanager UnitFileState)" "masked masked-runtime"
try "systemctl cannot start fabric manager" no systemctl start nvidia-fabricmanager
try "status.json has no warning about a missing mask" no grep -q unit-not-masked /run/nodestrap/status.json
try "clocks are those of the configuration and not those of the image" is "$(awk '$1 == "clocks" { print $3, $4 }' /var/lib/fake-nvml.state | sort -u)" "6251 1740"
try "GSP firmware is off" grep -x 'EnableGpuFirmware: 0' /proc/driver/nvidia/params

depmod_runs; depmod_runs
try "nvidia-cdi-refresh has a start limit of 30 starts in 5 minutes" is "$(property nvidia-cdi-refresh StartLimitIntervalUSec) $(property nvidia-cdi-refresh StartLimitBurst)" "5min 30"
try "nvidia-cdi-refresh can start after the boot" systemctl start nvidia-cdi-refresh.service
try "nvidia-cdi-refresh writes 4 devices" happened 'cdi-refreshed devices=4'
try "the CDI file still matches the GPUs" is "$(cdi_state)" yes

finish
