#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: p5en-48xlarge gen1 driver-takes=90 fabric-takes=90
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5en.48xlarge from power-on, whose driver and fabric take long; with the systemd that Amazon Linux 2023 has (252).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "fabric manager was started once, so never before the driver was there" once fm-

finish
