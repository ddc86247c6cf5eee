#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p4d-24xlarge gen1
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p4d.24xlarge from power-on: A100 behind NVSwitches; only an active fabric manager shows the fabric there.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=not-supported instances=0 cdi=yes'
try "fabric manager was started once" once fm-
try "NVLSM never ran" never nvlsm

finish
