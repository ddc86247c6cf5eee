#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 2 -m 3G -t 900
# kube: 1.37.0
# tree: enabled joined_enabled kube pods_network_later no_slices containerd2
# spec: {instance: {localStorage: {strategy: RAID0}, hugePages: {mode: explicit, pages: [{size: 2Mi, count: 64}]}}}
# spec: {kubelet: {config: {maxPods: 40, evictionHard: {memory.available: 250Mi}, imageMinimumGCAge: 1s, evictionPressureTransitionPeriod: 10s}}}
# spec: {kubelet: {config: {registerWithTaints: [{key: team, value: blue, effect: NoSchedule}]}, flags: [--node-labels=team=blue]}}
# spec: {kubelet: {config: {cpuManagerPolicy: static, reservedSystemCPUs: "0", memoryManagerPolicy: Static, reservedMemory: [{numaNode: 0, limits: {memory: 945Mi}}]}}}
# console: NODESTRAP verdict=ok code=OK step=join t=[0-9.]+s plan=sha256:[0-9a-f]+ registered=[0-9.]+s ready=[0-9.]+s
# From power-on to a Ready Node as planned, whose pods run; over a reboot, and a stop and start with blank disks. kubelet 1.37.0, systemd
# 252, the newest containerd, in an image that names no slice. CPUs and memory are set apart, and their state outlives a boot.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/ready.sh
. /vmtest/ready.sh

check_boots
