#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p6e-gb300 gen2 fabric-takes=120
# spec: {kubelet: {config: {maxPods: 110}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A tray of a GB300 rack from power-on. The fabric of the rack takes long.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' 'cdi-generated devices=4' 'kubelet gpus=4 fabric=completed instances=0 cdi=yes'
try "neither fabric manager nor IMEX ran" never 'fm-|nvlsm|imex'

finish
