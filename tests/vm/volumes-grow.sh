#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -v /dev/sdb:400M -v /dev/sdc:300M -t 600
# tree: storage storage_stubs
# Volumes that are larger at the next boot, and one that grows while it is used (tests/vm/lib/volumes_grow.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_grow.py
