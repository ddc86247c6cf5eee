#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled containerd_enabled read_only_etc
# console: NODESTRAP verdict=failed code=EFILE
# Files that cannot be written end the boot with 40; nothing is started.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the configuration phase exits with 40" exited nodestrap-config 40
try "nodestrap-config.service failed" failed nodestrap-config
try "the run phase did not run" is "$(property nodestrap-run ExecMainStartTimestampMonotonic)" 0
try "kubelet was not started" never_started
try "containerd was not started, although it is enabled" is "$(property containerd ActiveState)" inactive
try "the message names a file below /etc and the read-only file system" in_journal 'failed \(40 EFILE\).*/etc/.*[Rr]ead-only'

finish
