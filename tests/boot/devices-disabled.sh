#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2
# tree: enabled no_devices_unit gpu
# console: NODESTRAP verdict=ok
# If nodestrap-devices.service is not enabled, as in an image that knows two units, the run phase does all.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

runs() { python3 -c 'import json; print(*json.load(open("/run/nodestrap/status.json"))["runs"])'; }
try "status.json has two runs: config, and devices with run" is "$(runs)" "config devices,run"
try "nodestrap-devices.service did not run" is "$(property nodestrap-devices ExecMainStartTimestampMonotonic)" 0
check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'

finish
