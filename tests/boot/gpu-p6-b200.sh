#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/p6-b200-48xlarge.userdata
# gpu: p6-b200 gen2
# spec: {featureGates: {InstanceIdNodeName: true}, instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p6-b200.48xlarge from power-on: the switches lie behind ConnectX bridges, so that these come first, then NVLSM, then fabric manager.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module mlx5_core' 'module mlx5_ib' 'module ib_umad' nvlsm-started fm-active 'cdi-generated devices=8' \
        'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "NVLSM was started once" once nvlsm
try "fabric manager was started once" once fm-

finish
