#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 2 -m 3G -t 900
# kube: 1.33.13
# tree: enabled joined_enabled kube pods_network_later
# spec: {instance: {localStorage: {strategy: RAID0}, hugePages: {mode: explicit, pages: [{size: 2Mi, count: 64}]}}}
# spec: {kubelet: {config: {maxPods: 40, podLogsDir: /srv/logs, systemReserved: {cpu: 50m, memory: 64Mi, ephemeral-storage: 20Mi}, evictionHard: {memory.available: 3%}, imageMinimumGCAge: 1s, evictionPressureTransitionPeriod: 10s}}}
# spec: {kubelet: {config: {registerWithTaints: [{key: team, value: blue, effect: NoSchedule}]}, flags: [--node-labels=team=blue, --root-dir=/srv/kubelet]}}
# spec: {containerd: {config: "root = '/srv/containerd'\n[plugins.'io.containerd.grpc.v1.cri'.registry.mirrors.'docker.io']\nendpoint = ['https://mirror.example']\n"}}
# console: NODESTRAP verdict=ok code=OK step=join t=[0-9.]+s plan=sha256:[0-9a-f]+ registered=[0-9.]+s ready=[0-9.]+s
# From power-on to a Ready Node as planned, whose pods run; over a reboot, and a stop and start with blank disks. kubelet 1.33.13,
# containerd 1.7, the slices of the EKS image. Both daemons keep their data where the NodeConfig says, and containerd has a mirror.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck disable=SC2034 # for it
KUBELET_ROOT=/srv/kubelet CONTAINERD_ROOT=/srv/containerd POD_LOGS=/srv/logs
# shellcheck source=tests/cluster/lib/ready.sh
. /vmtest/ready.sh

check_boots
