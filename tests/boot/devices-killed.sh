#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p5-48xlarge gen1 fabric-waits=killed
# script: until grep -q fm-active /run/fakes/events; do sleep 0.1; done
# script: systemctl kill -s KILL nodestrap-devices; echo killed >>/run/fakes/events
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# The process of the devices phase is killed while it waits for the fabric, and leaves no record. The run phase does all of it, and in the
# end no unit has failed.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the devices phase was killed" in_journal 'nodestrap-devices.service: Main process exited, code=killed, status=9/KILL'
try "the run phase resets the failed unit of the devices phase" is "$(property nodestrap-devices ActiveState)" inactive
check_gpu_node 'module nvidia$' fm-active killed 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'

finish
