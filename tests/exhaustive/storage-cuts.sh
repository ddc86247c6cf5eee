#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 3 -e -t 600 -K CUT-HERE
# imds: imds-m5 storage-raid0
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled
# The power goes at every place that tests/vm/lib/cuts.py knows: inside mdadm, mkfs and the copy, between them, and where nodestrap itself
# writes.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/cuts.py RAID0
