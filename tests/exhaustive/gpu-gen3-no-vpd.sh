#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p6-b200 gen3 no-vpd bridges-by-id=1
# tree: enabled gpu
# console: nodestrap: failed \(33 EFABRICMANAGER\) at start-unit:nvidia-fabricmanager.service: .*its ExecCondition= /etc/eks/nvidia-fabricmanager-condition.sh \(status 1\) failed
# A p6-b200.48xlarge without vital product data (NVIDIA/gpu-driver-container#606), with an image of autumn 2026. The image gives fabric manager
# a condition that finds no switch and skips it (awslabs/amazon-eks-ami, nvidia-fabricmanager-condition.sh). Without a fabric every CUDA call
# fails, so the node does not join, and the console names the script that failed.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the run fails with EFABRICMANAGER when it starts fabric manager" is "$(value verdict) $(value code) $(value step)" "failed EFABRICMANAGER start-unit:nvidia-fabricmanager.service"
try "fabric manager never ran" never fm-
try "kubelet does not run" no active kubelet
try "containerd runs" active containerd

finish
