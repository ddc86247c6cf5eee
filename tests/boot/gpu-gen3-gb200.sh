#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p6e-gb200 gen3 imex
# spec: {kubelet: {config: {maxPods: 110}}, accelerator: {nvidia: {memoryMode: numa}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A tray of a GB200 rack with an image of autumn 2026, in whose /etc/systemd/system both units lie that must not run here.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' persistenced-started 'nvidia-smi -L' 'cdi-generated devices=4' 'kubelet gpus=4 fabric=completed instances=0 cdi=yes'
try "fabric manager never ran" never 'fm-|nvlsm'
try "IMEX never ran" never imex
for unit in nvidia-fabricmanager nvidia-imex; do
        try "the file of $unit hides a mask" test -f /etc/systemd/system/$unit.service
        try "$unit stays masked until the next boot" is "$(property $unit LoadState) $(property $unit UnitFileState)" "masked masked-runtime"
        try "systemctl cannot start $unit" no systemctl start $unit
done
try "the driver option of nodestrap overrides that of the image" grep -qx 'CoherentGPUMemoryMode: "numa"' /proc/driver/nvidia/params

finish
