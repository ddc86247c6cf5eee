#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -S bookworm -d 2 -e -t 1200
# tree: storage storage_stubs
# Two disks mounted alone, with ext4, in the situations that they meet in another way than RAID0 (tests/vm/lib/matrix.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py Mount 2 ext4 own
