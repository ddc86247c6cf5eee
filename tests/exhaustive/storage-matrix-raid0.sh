#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -S bookworm -d 8 -e -t 3600
# tree: storage storage_stubs
# strategy RAID0: {1, 3, 4, 8} disks × {xfs, ext4} × every situation that a machine can boot into (tests/vm/lib/matrix.py)
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py RAID0
