#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/trn2-48xlarge.userdata
# gpu: trn2 neuron
# spec: {featureGates: {InstanceIdNodeName: true}, instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A trn2.48xlarge with the image for Trainium: driver and nodes of all sixteen devices are there before kubelet starts. The device plugin
# counts them only once.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module neuron$' 'kubelet gpus=0 neuron=16'
try "the efa module is loaded before kubelet starts" in_order 'module efa' kubelet
try "the driver is loaded once" once 'module neuron'
try "no NVIDIA module is loaded, and no NVIDIA program runs" never 'module nvidia|nvidia-smi|cdi-'

finish
