#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge -nvidia-smi
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5.48xlarge with an image that brings no driver. A pod (NVIDIA GPU Operator) will, so kubelet must run, and nodestrap touches nothing.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'kubelet gpus=\?'
try "the warning says that the image has no driver and the GPUs are not set up" grep -q 'this image has no NVIDIA driver .*: 8 NVIDIA GPUs are not set up' /run/nodestrap/status.json
try "nodestrap loads no driver and starts no NVIDIA daemon" never 'module nvidia|fm-|persistenced|cdi-'

finish
