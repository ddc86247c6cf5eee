#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -S bookworm -d 3 -b 4096 -e -t 1800
# tree: storage storage_stubs
# Mount over 3 disks of 4096-byte sectors with xfs in every situation that a machine can boot into (tests/vm/lib/matrix.py)
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py Mount 3 xfs
