#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 2 -e -t 600 -K CUT-HERE
# imds: imds-m5 storage-mount
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled
# The power goes while one of two disks gets its file system, and the other has held one all the time (tests/vm/lib/cuts.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/cuts.py Mount
