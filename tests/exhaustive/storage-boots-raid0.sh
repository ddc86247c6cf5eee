#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -n 2 -d 3 -e -t 600
# imds: imds-m5 storage-raid0
# tree: storage storage_units enabled containerd_enabled kubelet_enabled
# console: NODESTRAP verdict=ok
# console: NODESTRAP verdict=failed code=EDISKUSED
# From power-on, with real reboots and a real containerd: first boot, reboot, stop and start, a disk that is not ours.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/boots.py RAID0 3 xfs
