#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# vpc: --cards 2 --count 2
# tree: enabled hook_enabled vpc never_listed
# The metadata service never lists two interfaces, and systemd retries their units in turns. The boot hook ends anyway, names both, and the
# node comes up.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

of_hook() { property nodestrap-boot-hook "$1"; }
try "the boot hook fails with exit status 32" is "$(of_hook Result) $(of_hook ExecMainStatus)" "exit-code 32"
for name in eth8 eth9; do
        try "the boot hook names $name as not ready" in_journal "$name \(0a:00:00:00:00:0.\) is not ready: its unit has left no decision; see journalctl -u nodestrap-udev-net-manager@$name"
        try "systemd has retried the unit of $name since the boot hook began" before "$(of_hook ExecMainStartTimestampMonotonic)" "$(property nodestrap-udev-net-manager@$name ExecMainStartTimestampMonotonic)"
done
for name in eth0 eth1; do try "$name is configured" is "$(setup_of $name)" configured; done
try "the configuration phase begins after the boot hook ends" before "$(of_hook ExecMainExitTimestampMonotonic)" "$(property nodestrap-config ExecMainStartTimestampMonotonic)"
try "the configuration phase succeeds" exited nodestrap-config 0
try "kubelet is active" active kubelet

finish
