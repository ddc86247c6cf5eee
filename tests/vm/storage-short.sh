#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 3 -e -t 600
# tree: storage storage_stubs
# RAID0 over three disks: first boot, second run, reboot; all situations stand in storage-matrix-*.sh.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py RAID0 short
