#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p4de-24xlarge gen2
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p4de.24xlarge from power-on: as p4d, with larger GPUs, half of its EFA, and the second generation of image units.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=not-supported instances=0 cdi=yes'
try "fabric manager was started once" once fm-

finish
