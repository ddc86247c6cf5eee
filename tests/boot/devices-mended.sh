#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p5-48xlarge gen1 fm-version=570.86.15
# script: read -r _ </run/go
# script: rm /etc/fakes/fm-version
# tree: enabled gpu watcher
# watcher: { systemctl show -P ActiveState nodestrap-devices; ls /run/nodestrap/devices.json; nodestrap status | head -n 1; } >/run/watched 2>&1
# watcher: nodestrap wait --timeout 2s 2>/run/watched-wait
# watcher: echo >/run/go
# console: NODESTRAP verdict=failed code=EVERSION step=check-versions:nvidia .* phases=devices$
# console: NODESTRAP verdict=ok .* phases=devices,run$
# Fabric manager has another version than the driver until a user script installs the right one. The boot succeeds, and in the end no unit
# has failed.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the devices phase failed, and status said so" grep -qx 'waiting: failed so far (33 EVERSION) at check-versions:nvidia in the devices phase:' /run/watched
try "so did its unit, which left how long it had waited for what" is "$(head -n 2 /run/watched | paste -sd' ')" "failed /run/nodestrap/devices.json"
try "a wait knew that the run phase was still to come" sh -c 'tail -n 1 /run/watched-wait | grep "failed (60 E" && ! grep EINIT /run/watched-wait'
try "the run phase took that" no test -e /run/nodestrap/devices.json
try "init has reset the failed unit" is "$(property nodestrap-devices ActiveState)" inactive
check_gpu_node 'module nvidia$' fm-active 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'

finish
