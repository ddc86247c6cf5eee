#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -v /dev/sdb -t 600 -K CUT-HERE
# imds: imds-m5
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled
# The power goes at every place of tests/vm/lib/volumes_cuts.py: in mkfs, in the copy to the volume and its renames, and in the
# removal of the originals. Also while a volume with data grows.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_cuts.py
