#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen3 fm-fails-once=yes query-takes=80
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.10gb: 7}}]}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5.48xlarge with an image of autumn 2026, whose GPUs nodestrap must divide. Fabric manager comes too early and systemd starts it again
# (awslabs/amazon-eks-ami#2871). The clocks unit of the image and the CDI writer of the toolkit hold the GPUs while they look at them.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'usr-copy lib64' depmod 'module nvidia$' persistenced-started clocks-of-the-ami 'nvidia-smi -L' 'cdi-generated devices=56' \
        'kubelet gpus=8 fabric=completed instances=56 cdi=yes'
try "fabric manager fails first, and is active before nvidia-smi lists the GPUs" in_order fm-failed fm-active 'nvidia-smi -L'
try "fabric manager became active once" once fm-active
try "systemd restarted fabric manager once" is "$(property nvidia-fabricmanager NRestarts)" 1
try "no GPU was in use when nodestrap divided it" is "$(awk '$2 == "nvmlDeviceSetMigMode" && $4 > 1' /var/lib/fake-nvml.state)" ""
try "the CDI writer of the toolkit did not run during the boot" never cdi-refreshed
depmod_runs
try "nvidia-cdi-refresh can start after the boot" systemctl start nvidia-cdi-refresh.service
try "nvidia-cdi-refresh writes the same devices" is "$(grep -c 'cdi-refreshed devices=56' $E) $(cdi_state)" "1 yes"

finish
