#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 3 -e -t 600
# tree: storage storage_stubs
# Real disks in the everyday suite: RAID0 over three of them, first boot, second run, reboot. tests/vm has other contents of disks.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/matrix.py RAID0 3 xfs short
