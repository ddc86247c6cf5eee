#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -v xvdb -t 600
# imds: imds-m5
# spec: {instance: {storage: {volumes: [{device: vol-00000000000000001, mountTargets: [/var/lib/kubelet, /var/lib/containerd], fsType: ext4}]}}}
# tree: storage storage_units enabled containerd_enabled kubelet_enabled containerd_version
# console: NODESTRAP verdict=ok
# From power-on, with a reboot and a real containerd: the directories of containerd and kubelet share one volume
# (tests/vm/lib/volumes_boots.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_boots.py shared
