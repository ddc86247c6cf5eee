#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g6f gen1 gridd
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A g6f.xlarge from power-on: a part of an L4 with the GRID driver. The licence is there before kubelet starts (awslabs/amazon-eks-ami#2450:
# without it CUDA fails after a day). The host sets its clocks.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' gridd-started licensed 'kubelet gpus=1 fabric=not-supported instances=0 cdi=yes licensed'
try "the licence daemon runs" active nvidia-gridd
try "fabric manager never ran" never 'fm-|nvlsm'
try "no warning is about clocks that the host of the GPU sets" no grep -qE ': (clocks|no-license): ' out/status.json

finish
