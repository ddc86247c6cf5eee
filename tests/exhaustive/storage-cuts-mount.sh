#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 2 -e -t 600 -K CUT-HERE
# imds: imds-m5 storage-mount
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled
# The power goes at every place of disks that are mounted alone that tests/vm/lib/cuts.py knows.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/cuts.py Mount
