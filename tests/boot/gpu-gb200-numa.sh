#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p6e-gb200 gen2
# spec: {kubelet: {config: {maxPods: 110}}, accelerator: {nvidia: {memoryMode: numa}}}
# spec: {instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 15841}]}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# The kernel has the GPU memory of this tray as NUMA nodes without CPUs. nodestrap reserves huge pages on the other two, as many as the EFA
# installer takes.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'cdi-generated devices=4' 'kubelet gpus=4 fabric=completed'
try "the kernel manages the GPU memory" grep -x 'CoherentGPUMemoryMode: "numa"' /proc/driver/nvidia/params
pages() { local node; for node; do echo "$(cat /sys/devices/system/node/node$node/hugepages/hugepages-2048kB/nr_hugepages)"; done; }
try "the huge pages are on the two NUMA nodes with CPUs" is "$(pages 0 1 | xargs)" "7921 7920"
try "the nodes of GPU memory have no huge pages" is "$(pages 2 10 18 26 | sort -u)" 0

printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 10, numaNode: 10}]}}}\n' >/etc/eks/nodeadm.d/99-spec.yaml
# shellcheck disable=SC2046 # sources are words
try "the message names the NUMA node without CPUs that cannot have huge pages" matches "$(nodestrap plan $(sources) 2>&1)" 'names NUMA node 10, which has no CPUs'

finish
