#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -S bookworm -d 4 -b 4096 -e -t 1800
# tree: storage storage_stubs
# RAID10 over 4 disks of 4096-byte sectors with ext4 in every situation that a machine can boot into (tests/vm/lib/matrix.py)
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py RAID10 4 ext4
