#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen3 setup-fails-times=2 modules-take=180 reloads=40
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5.48xlarge with an image of autumn 2026 whose set-up is late: it fails twice and starts again. Our devices phase has long been waiting
# when it brings, enables and starts the units of its daemons. Meanwhile a script reloads systemd again and again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node setup-failed setup-failed depmod 'module nvidia$' 'daemons-installed' persistenced-started fm-active 'cdi-generated devices=8' \
        'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "the setup of the image succeeds at the third attempt" is "$(property nvidia-setup Result) $(property nvidia-setup NRestarts)" "success 2"
try "the setup enables its units before nodestrap masks any" never enable-refused
try "systemd was reloaded meanwhile" happened 'reloaded 40 times'
try "fabric manager was started once" once fm-active
try "no warning says that a unit is missing" no grep -q 'unit-missing: nvidia' out/status.json
try "no warning says that the setup failed before its last attempt" no grep -q 'await-unit:nvidia-setup.service: unit-failed' out/status.json

finish
