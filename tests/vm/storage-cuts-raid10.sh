#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 4 -e -t 600 -K CUT-HERE
# imds: imds-m5 storage-raid10
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled
# The power goes where a RAID10 takes it in another way than a RAID0: while it is made of members that can do without each other, and while
# it is written to, which its bitmap notes (tests/vm/lib/cuts.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/cuts.py RAID10
