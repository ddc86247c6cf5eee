#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge -nvidia-smi module-nvidia-missing=yes
# spec: {accelerator: {nvidia: {fabric: {gate: require}}}}
# tree: enabled gpu
# console: nodestrap: failed \(33 EDRIVER\)
# A p5.48xlarge with an image that brings no driver, and a configuration that requires the fabric: the node does not join.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the run has failed with EDRIVER" matches "$(value verdict) $(value code)" "^failed EDRIVER$"
try "a warning names the key" grep -q 'spec.accelerator.nvidia.fabric.gate.*is require, but this image has no NVIDIA driver' /run/nodestrap/status.json
try "kubelet does not run" no active kubelet
try "plan fails by hand, and the message says what to do" sh -c 'nodestrap plan 2>&1 >/dev/null | grep -q "failed (33 EDRIVER) at plan: .*install the driver in the image, or remove the key"'

finish
