#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: trn2 gen1
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A trn2.48xlarge with the GPU image: nodestrap touches no part of NVIDIA, whatever the units of the image do. The loader of the first
# generation fails without a GPU (awslabs/amazon-eks-ami#2727).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

may_fail nvidia-kmod-load nvidia-persistenced nvidia-fabricmanager set-nvidia-clocks
check_gpu_node 'kubelet gpus=0'
try "nodestrap loads no driver, calls no nvidia-smi and writes no CDI" never 'module nvidia|nvidia-smi|cdi-'

finish
