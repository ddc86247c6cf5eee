#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g7e gen3 no-drop-ins refresh-takes=240
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.24gb: 4}}]}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# The program alone in place of nodeadm, without our drop-ins, on an image of autumn 2026. The CDI writer of the toolkit starts when the
# driver is loaded, and holds the GPUs that nodestrap must divide.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'usr-copy lib64' 'module nvidia$' 'cdi-refreshed devices=4' 'nvidia-smi -L' 'cdi-generated devices=16' \
        'kubelet gpus=4 fabric=not-supported instances=16 cdi=yes'
try "fabric manager never ran" never 'fm-|nvlsm'
try "no GPU was in use when nodestrap divided it" is "$(awk '$2 == "nvmlDeviceSetMigMode" && $4 > 1' /var/lib/fake-nvml.state)" ""

finish
