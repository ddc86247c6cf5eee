#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -S bookworm -d 3 -e -t 1200
# tree: storage storage_stubs
# RAID0 over three disks with ext4 in the situations that a machine can boot into (tests/vm/lib/matrix.py). tests/exhaustive
# has all strategies, all numbers of disks and both file systems.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py RAID0 3 ext4
