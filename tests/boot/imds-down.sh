#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# tree: enabled
# console: NODESTRAP verdict=failed code=EIMDS
# No metadata service: the whole budget of 60 s is spent, three times, then the boot fails with 12.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the configuration phase exits with 12" exited nodestrap-config 12
try "status.json has three tries" grep '"tries": 3' /run/nodestrap/status.json
try "the journal has a line for the second try" in_journal 'attempt 2 of 3 failed \(EIMDS\) at source: .*; the next attempt begins in'
try "kubelet was not started" never_started
try "the root cause names the address" in_journal 'failed \(12 EIMDS\).*169\.254\.169\.254'

finish
