#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g6-xlarge gen1
# tree: al2023 binary_alone gpu
# console: NODESTRAP verdict=ok
# The GPU image of EKS on a machine where fabric manager must not run. Of the package it has only our program, in place of nodeadm.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh
. /vmtest/al2023.sh

check_swapped_gpu_node 'module nvidia$' persistenced-started 'cdi-generated devices=1' 'kubelet gpus=1 fabric=not-supported instances=0 cdi=yes'

finish
