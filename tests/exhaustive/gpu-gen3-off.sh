#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen3
# spec: {accelerator: {nvidia: {mode: off}}}
# tree: enabled gpu containerd_version
# console: NODESTRAP verdict=ok
# A p5.48xlarge with an image of autumn 2026 and mode: off: all units of the image do as without nodestrap.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the verdict is ok, and both phases succeed" is "$(value verdict) $(property nodestrap-config ExecMainStatus) $(property nodestrap-run ExecMainStatus)" "ok 0 0"
try "systemctl start of fabric manager succeeds" systemctl start nvidia-fabricmanager
try "fabric manager becomes active once" once fm-active
try "systemctl start of nvidia-cdi-refresh succeeds" systemctl start nvidia-cdi-refresh
try "nvidia-cdi-refresh of the image finds 8 devices" happened 'cdi-refreshed devices=8'
try "nodestrap writes no CDI file" never cdi-generated

finish
