#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g6-xlarge gen2 smi-hangs=-L
# tree: enabled gpu
# console: nodestrap: failed \(33 ENVIDIASMI\) at list-gpus:nvidia-smi: .*nvidia-smi
# An nvidia-smi that never ends, as with a GPU that has fallen off the bus. nodestrap waits two minutes, so this test has a guest of
# its own.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the run phase exits with 33" exited nodestrap-run 33
try "the verdict is ENVIDIASMI at list-gpus" is "$(value verdict) $(value code) $(value step)" "failed ENVIDIASMI list-gpus:nvidia-smi"
try "nvidia-smi no longer runs" no pgrep -f ^nvidia-smi
try "containerd is active" active containerd
try "kubelet was not started" never_started

finish
