#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: g6f gen3 gridd
# tree: enabled gpu containerd_version
# console: NODESTRAP verdict=ok
# A g6f.xlarge with an image of autumn 2026. It brings the licence daemon with the driver, and enables fabric manager, persistenced and
# clocks, but not this daemon.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'usr-copy bin' 'module nvidia$' gridd-started licensed 'kubelet gpus=1 fabric=not-supported instances=0 cdi=yes licensed'
try "the licence daemon runs" active nvidia-gridd
try "the setup of the image succeeds" is "$(property nvidia-setup Result)" success

finish
