#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g6e gen2
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A g6e.24xlarge from power-on.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' persistenced-started 'nvidia-smi -L' 'cdi-generated devices=4' 'kubelet gpus=4 fabric=not-supported instances=0 cdi=yes'
try "fabric manager never ran" never 'fm-|nvlsm'

finish
