#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-4xlarge gen2
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5.4xlarge from power-on: one H100 that no switch connects, so that nodestrap waits neither for fabric manager nor for the fabric.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' persistenced-started 'nvidia-smi -L' 'cdi-generated devices=1' 'kubelet gpus=1 fabric=not-supported instances=0 cdi=yes'
try "fabric manager never ran" never 'fm-|nvlsm'

finish
