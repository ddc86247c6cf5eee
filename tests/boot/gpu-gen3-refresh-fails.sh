#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: g6e gen3 no-drop-ins refresh-gives-up=yes
# tree: enabled gpu containerd_version
# console: NODESTRAP verdict=ok
# Without our drop-ins the CDI writer of the toolkit starts before the driver is loaded, and reaches its start limit (Azure/aks-gpu#175).
# The node comes up anyway, with a CDI file of nodestrap and a warning.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

may_fail nvidia-cdi-refresh.service nvidia-cdi-refresh.path
try "the CDI writer of the toolkit has reached its start limit" failed nvidia-cdi-refresh.service
try "nvidia-cdi-refresh writes nothing" never cdi-refreshed
check_gpu_node 'nvidia-smi -L' 'module nvidia$' 'nvidia-smi -L' 'cdi-generated devices=4' 'kubelet gpus=4 fabric=not-supported instances=0 cdi=yes'
try "the warning says that nvidia-cdi-refresh.service failed" grep -E 'nvidia-cdi-refresh.service failed: ' out/status.json

finish
