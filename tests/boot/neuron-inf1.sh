#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: inf1 neuron
# tree: enabled gpu containerd_version
# console: NODESTRAP verdict=ok
# An inf1.6xlarge with the same image. A unit removes the driver and builds an older one, which the devices want
# (awslabs/amazon-eks-ami#2579). A driver that is loaded before then is the wrong one.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node neuron-removed neuron-2.21-installed 'module neuron$' 'kubelet gpus=0 neuron=4'
try "the driver is loaded once" once 'module neuron'

finish
