#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g6-xlarge gen2 smi-hangs=-L
# tree: enabled gpu
# console: nodestrap: failed \(33 ENVIDIASMI\) at list-gpus:nvidia-smi: .*nvidia-smi
# An nvidia-smi that never ends, as behind a GPU that has fallen off the bus: two minutes, and not for ever. In a guest of its own, for it
# is only waited for.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the run phase exits with 33" exited nodestrap-run 33
try "the verdict has the code of nvidia-smi" is "$(value verdict) $(value code) $(value step)" "failed ENVIDIASMI list-gpus:nvidia-smi"
try "nodestrap has ended nvidia-smi" no pgrep -f ^nvidia-smi
try "containerd is active" active containerd
try "kubelet was not started" never_started

finish
