#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -S trixie -d 4 -e -t 1200
# tree: storage storage_stubs
# Four disks mounted alone, with ext4, in the situations that a machine can boot into (tests/vm/lib/matrix.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py Mount 4 ext4 own
