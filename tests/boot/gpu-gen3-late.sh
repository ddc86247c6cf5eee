#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: g5 gen3 setup-fails-times=2 modules-take=180 reloads=40
# tree: enabled gpu containerd_version
# console: NODESTRAP verdict=ok
# A g5.12xlarge with an image of autumn 2026 whose set-up is late: it fails twice and starts again. Our devices phase has long been waiting
# when it brings, enables and starts the units of its daemons. Meanwhile a script reloads systemd again and again. The set-up would
# fail for good if nodestrap masked fabric manager, which must not run here, before the set-up enables it.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node setup-failed setup-failed depmod 'module nvidia$' 'daemons-installed' persistenced-started 'nvidia-smi -L' 'cdi-generated devices=4' \
        'kubelet gpus=4 fabric=not-supported instances=0 cdi=yes'
try "the setup of the image succeeds at the third attempt" is "$(property nvidia-setup Result) $(property nvidia-setup NRestarts)" "success 2"
try "the setup enables its units before nodestrap masks any" never enable-refused
try "fabric manager never ran" never 'fm-|nvlsm'
try "fabric manager is masked until the next boot" is "$(property nvidia-fabricmanager LoadState) $(property nvidia-fabricmanager UnitFileState)" "masked masked-runtime"
try "systemd was reloaded meanwhile" happened 'reloaded 40 times'
try "no warning says that a unit is missing" no grep -q 'unit-missing: nvidia' out/status.json
try "no warning says that the setup failed before its last attempt" no grep -q 'await-unit:nvidia-setup.service: unit-failed' out/status.json

finish
