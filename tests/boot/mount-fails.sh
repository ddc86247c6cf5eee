#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled containerd_mount_fails
# console: NODESTRAP verdict=failed code=EUNIT
# containerd does not start on the root disk when the disk below its path does not come.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "containerd is not active" no active containerd
try "containerd never ran" is "$(property containerd ExecMainStartTimestampMonotonic)" 0
try "the run phase exits with 50" exited nodestrap-run 50
try "kubelet was not started" never_started

finish
