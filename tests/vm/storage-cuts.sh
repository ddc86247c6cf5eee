#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 3 -e -t 600 -K CUT-HERE
# imds: imds-m5 storage-raid0
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled
# The power goes at three places: inside mdadm, behind mkfs, and where nodestrap itself writes. tests/exhaustive/storage-cuts.sh has all of them
# (tests/vm/lib/cuts.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/cuts.py RAID0 few
