#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled kubelet_enabled containerd_fails
# console: NODESTRAP verdict=failed code=EUNIT
# A containerd that does not start keeps kubelet from starting, even one that is enabled by itself.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the run phase exits with 50" exited nodestrap-run 50
try "nodestrap-run.service failed" failed nodestrap-run
try "kubelet was not started" never_started
try "the root cause names containerd" in_journal 'failed \(50 EUNIT\).*containerd'

finish
