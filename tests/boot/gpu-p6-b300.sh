#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5 conf/examples/p6-b300-48xlarge.userdata
# gpu: p6-b300 gen1
# spec: {accelerator: {nvidia: {clocks: max}}}
# spec: {instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p6-b300.48xlarge from power-on, with the units of the first generation: fabric manager is enabled, and the driver waits for the network.
# The configuration asks for application clocks, which drivers no longer set on such GPUs: that is not a failure.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module mlx5_core' 'module mlx5_ib' 'module ib_umad' nvlsm-started fm-active 'cdi-generated devices=8' \
        'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "NVLSM was started once" once nvlsm
try "fabric manager was started once" once fm-

finish
