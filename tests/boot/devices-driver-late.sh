#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p5-48xlarge
# script: read -r _ </run/go
# script: mv /vmtest/nvidia-smi /usr/bin/; touch /run/installed
# tree: enabled gpu driver_later watcher
# watcher: cp /run/nodestrap/status.json /run/status-then; cp /run/fakes/events /run/events-then || :>/run/events-then
# watcher: echo >/run/go
# console: NODESTRAP verdict=ok
# A p5.48xlarge with an image without a driver, and a user script that installs one. Until then nodestrap leaves the GPUs alone. Then it
# does all of it, by a plan of its own.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

plan_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["runs"][sys.argv[2]]["planId"])' "$@"; }
try "nodestrap loads and starts nothing before the user script installs the driver" sh -c "! grep -E 'module nvidia|fm-|persistenced|cdi-' /run/events-then"
try "the user script has installed the driver" test -e /run/installed
try "the run phase had another plan than the devices phase" no is "$(plan_of /run/status-then devices)" "$(plan_of /run/nodestrap/status.json devices,run)"
# shellcheck disable=SC2046 # sources are words
try "an init of all phases by hand succeeds with the driver" nodestrap init $(sources) --config-cache /run/eks/nodeadm/config.json
check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'

finish
