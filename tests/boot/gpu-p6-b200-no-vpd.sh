#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p6-b200 gen1 no-vpd bridges-by-id=1
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p6-b200.48xlarge that shows no vital product data (NVIDIA/gpu-driver-container#606): type and number of its ConnectX functions decide, and
# the fabric proves it.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module mlx5_core' 'module mlx5_ib' 'module ib_umad' nvlsm-started fm-active 'cdi-generated devices=8' \
        'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
warned() { python3 -c 'import json; print(*(w for r in json.load(open("/run/nodestrap/status.json"))["runs"].values() for w in r["warnings"] if "switches-unread" in w))'; }
try "a warning names the product data that cannot be read" matches "$(warned)" "switches-unread: 0000:73:00.0/vpd cannot be read: No such file or directory; as p6-b200.48xlarge has 2 functions"

finish
