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

try "status reports the failed devices phase while the user script runs" grep -qx 'waiting: failed so far (33 EVERSION) at check-versions:nvidia in the devices phase:' /run/watched
try "nodestrap-devices has failed, and devices.json has how long it has waited" is "$(head -n 2 /run/watched | paste -sd' ')" "failed /run/nodestrap/devices.json"
try "wait does not report EINIT while the run phase is still to come" sh -c 'tail -n 1 /run/watched-wait | grep "failed (60 E" && ! grep EINIT /run/watched-wait'
try "the run phase removes devices.json" no test -e /run/nodestrap/devices.json
try "the run phase resets the failed unit of the devices phase" is "$(property nodestrap-devices ActiveState)" inactive
check_gpu_node 'module nvidia$' fm-active 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'

finish
