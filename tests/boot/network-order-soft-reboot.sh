#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# vpc: --cards 2 --count 2
# tree: enabled hook_enabled vpc kept_results
# console: NODESTRAP verdict=ok
# shellcheck disable=SC2154,SC2011  # bad is guest.sh's; names of interfaces
# nodestrap sets up an interface once for as long as it is there. A change of target does not take it down, nor does a soft reboot, which
# keeps /run and lets udev report it again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

units() { systemctl is-active nodestrap-udev-net-manager@eth0 nodestrap-udev-net-manager@eth1 | xargs; }
# Directories too: what is taken away and written again has another time, and so has its directory.
stamp() { find /run/systemd/network -name 99-default.link.d -prune -o -printf '%p %i %T@ %s\n' | sort; }
if [ ! -e out/report ]; then
        try "the unit of each interface is active" is "$(units)" "active active"
        try "systemd isolates another target" systemctl isolate multi-user.target
        try "coldplug runs to its end after the change of target" systemctl start coldplug
        try "the unit of each interface is active after the change of target" is "$(units)" "active active"
        stamp >out/stamp
        try "eth1 has a .network file" grep -q 70-eks-eth1.network out/stamp
        for name in eth0 eth1; do
                try "systemd stops the unit of $name" systemctl stop nodestrap-udev-net-manager@$name
                try "the unit of $name stays inactive after a stop" is "$(property nodestrap-udev-net-manager@$name ActiveState)" inactive
                try "a stop of the unit of $name removes no file" is "$(stamp)" "$(cat out/stamp)"
                try "systemd starts the unit of $name again" systemctl start nodestrap-udev-net-manager@$name
                try "another start of the unit of $name changes no file" is "$(stamp)" "$(cat out/stamp)"
        done
        [ "$bad" = 0 ] || finish
        cp out/stdout out/report; systemctl soft-reboot; exec tail -f /dev/null
fi
cat out/report
try "after a soft reboot the .network files are those from before it" is "$(stamp)" "$(cat out/stamp)"
check_interfaces_first
try "after a soft reboot the unit of each interface is active" is "$(units)" "active active"
try "no ordering cycle was broken" no_cycle

finish
