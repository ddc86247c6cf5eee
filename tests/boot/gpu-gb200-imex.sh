#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/p6e-gb200-imex-host.userdata
# gpu: p6e-gb200 gen2
# spec: {accelerator: {nvidia: {imex: {mode: host, nodes: [10.11.12.13, 10.11.12.14]}}}}
# spec: {instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A tray of a GB200 rack with IMEX on the host: node list, channel, daemon, and READY before kubelet.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' 'imex-started enabled=1 nodes=2' imex-ready 'kubelet gpus=4 fabric=completed instances=0 cdi=yes'
try "the CDI file came before kubelet" in_order 'cdi-generated devices=4' kubelet
try "fabric manager never ran" never 'fm-|nvlsm'
try "IMEX runs" active nvidia-imex
try "channel 0 is a device that every container may open" is "$(stat -c %F:%a:%T /dev/nvidia-caps-imex-channels/channel0)" "character special file:666:0"

# Without the device node containerd cannot create the container (NVIDIA/nvidia-container-toolkit:pkg/nvcdi/lib-imex.go).
container() { ctr --namespace k8s.io containers create --rootfs --device /dev/nvidia-caps-imex-channels/channel0 / "$1"; }
try "containerd creates a container that requests channel 0" container with
rm /dev/nvidia-caps-imex-channels/channel0
try "containerd cannot create that container if channel 0 is missing" no container without

finish
