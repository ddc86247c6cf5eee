#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled kubelet_enabled containerd_fails
# console: NODESTRAP verdict=failed code=EUNIT
# console-lacks: step=join
# A containerd that does not start keeps kubelet from starting, even one that is enabled by itself.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the run phase exits with 50" exited nodestrap-run 50
try "nodestrap-run.service failed" failed nodestrap-run
try "kubelet was not started" never_started
try "the root cause names containerd" in_journal 'failed \(50 EUNIT\).*containerd'
try "wait fails at once with the error of init" wait_is_told "50 EUNIT at start-unit:containerd.service): "
try "wait prints no log lines of the failed unit" no grep '  | ' out/wait
# The console shows the output of a unit (joined.sh), but no typed command, and no script of a unit.
try "wait in a script of another unit fails, too" no systemd-run --quiet --wait sh -c 'nodestrap wait; exit $?'

# The kernel kills a child only in a machine (tests/torture/endurance/machine.sh). systemd would stop the phase before it reports why.
try "systemd does not stop a phase if the kernel kills a child for lack of memory" is "$(property nodestrap-config OOMPolicy) $(property nodestrap-devices OOMPolicy) $(property nodestrap-run OOMPolicy)" "continue continue continue"

finish
