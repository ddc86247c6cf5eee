#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 3 -v /dev/sdb -t 600
# imds: imds-m5 conf/examples/plain-volume.userdata
# spec: {featureGates: {InstanceIdNodeName: true}, instance: {localStorage: {strategy: RAID0, filesystem: xfs, expectedDisks: 3}}}
# tree: storage storage_units enabled containerd_enabled kubelet_enabled containerd_version
# console: NODESTRAP verdict=ok
# From power-on, with real reboots and a real containerd: first boot, stop and start (tests/vm/lib/volumes_boots.py). The directory of
# containerd is on a volume, the rest of the node on instance stores.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_boots.py stores
