#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/p6e-gb200.userdata
# gpu: p6e-gb200 gen2 imex
# spec: {instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}, environment: {default: {HTTPS_PROXY: ""}}}}
# tree: enabled containerd2 gpu
# console: NODESTRAP verdict=ok
# A tray of a GB200 rack from power-on. The rack manages the fabric, and nodestrap leaves IMEX to DRA although the image enables it.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' persistenced-started 'nvidia-smi -L' 'cdi-generated devices=4' 'kubelet gpus=4 fabric=completed instances=0 cdi=yes'
try "fabric manager never ran" never 'fm-|nvlsm'
try "IMEX never ran" never imex
try "systemd cannot start nvidia-imex by mistake" is "$(property nvidia-imex LoadState)" masked
try "the driver keeps the GPU memory to itself" grep -x 'CoherentGPUMemoryMode: "driver"' /proc/driver/nvidia/params
try "EFA may map GPU memory" grep -x 'GrdmaPciTopoCheckOverride: 1' /proc/driver/nvidia/params
try "GPUDirect works by dma-buf" is "$(value accelerator health gpudirect)" 'yes, by dma-buf'
try "nodestrap does not create channel 0, which DRA creates" no test -e /dev/nvidia-caps-imex-channels/channel0
try "status.json has the cluster UUID and the clique" is "$(value accelerator clusterUuid).$(value accelerator cliqueId)" 7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1

# The devices phase masks nvidia-imex, which had not started before.
systemctl unmask --runtime nvidia-imex && systemctl start nvidia-imex
try "nvidia-imex does not start without the mask, either" is "$(property nvidia-imex ConditionResult)" no
try "nvidia-imex does not run" no active nvidia-imex

finish
