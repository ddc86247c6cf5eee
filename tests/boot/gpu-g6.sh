#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/g6-xlarge.userdata
# gpu: g6-xlarge gen2
# spec: {instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A g6.xlarge from power-on: one GPU, no EFA; the image starts fabric manager by itself when it has installed it.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' persistenced-started 'nvidia-smi -L' 'cdi-generated devices=1' 'kubelet gpus=1 fabric=not-supported instances=0 cdi=yes'
try "fabric manager never ran" never 'fm-|nvlsm'
try "the setup of the image succeeds" is "$(property nvidia-setup Result)" success

finish
