#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2
# tree: al2023 swapped gpu
# console: NODESTRAP verdict=ok
# The GPU image of EKS with our package, and our program under the nodeadm units, on a p5.48xlarge.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh
. /vmtest/al2023.sh

check_swapped_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "fabric manager was started once" once fm-

finish
