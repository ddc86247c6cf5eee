#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# spec: {kubelet: {config: {cpuManagerPolicy: static}}}
# tree: enabled containerd_enabled kubelet_enabled stores_if_any kept_results state_left
# A soft reboot keeps /run and its record of the disks. Daemons that the image enables wait for the disks anyway.
# A state file that kubelet refuses goes before it starts for the first time in a userspace, and never once it may have run.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

STATE=/var/lib/kubelet/cpu_manager_state
LEFT='{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
# shellcheck disable=SC2046 # sources are words
init() { nodestrap init $(sources) --config-cache /run/eks/nodeadm/config.json 2>out/init || { cat out/init; false; }; }
stays() { printf %s "$LEFT" >$STATE; "$@" && init && is "$(cat $STATE)" "$LEFT"; }
stops() { systemctl stop kubelet; }
takes_its_turn_away() { rm /run/nodestrap/kubelet-may-start; }
skipped() { is "$(journalctl -b -o cat -u "$1" | grep -c 'skipped, no trigger condition')" "$2"; }
check() { # WORDS SKIPPED
        try "$1the run phase is active" active nodestrap-run
        try "$1containerd is active" active containerd
        try "$1kubelet is active" active kubelet
        for unit in containerd kubelet; do
                try "$1systemd skips the first start of $unit, which is too early" skipped $unit "$2"
        done
        try "$1the run phase has left mounts-ready and kubelet-may-start" test -e /run/nodestrap/mounts-ready -a -e /run/nodestrap/kubelet-may-start
        try "$1no ordering cycle was broken" no_cycle
        try "$1init has removed the state that kubelet refuses" test ! -e $STATE
        try "$1the journal has the removal of that state $2 times" is "$(journalctl -b -o cat -u nodestrap-run | grep -c "removed $STATE of an earlier boot: it has a different policy")" "$2"
}

if [ ! -e out/first ]; then
        check '' 1 >out/first
        touch -d '1 hour ago' /run/nodeadm/init
        printf %s "$LEFT" >$STATE
        systemctl soft-reboot
        exec tail -f /dev/null          # until it ends this userspace
fi
cat out/first
check 'after a soft reboot: ' 2
try "the run phase has renewed its marker in this userspace" is "$(find /run/nodeadm/init -mmin -30)" /run/nodeadm/init
printf %s "$LEFT" >$STATE
try "a second init succeeds" sh -c "nodestrap init $(sources) --config-cache /run/eks/nodeadm/config.json 2>out/second-init"
try "the second init changes nothing" python3 compare.py unchanged /run/nodestrap/status.json
try "the second init keeps the state beside a kubelet that runs" is "$(cat $STATE)" "$LEFT"
try "a plan shows that the state stays" sh -c "nodestrap plan $(sources) | grep -E 'forget-state +/var/lib/kubelet +[[]keep[]]'"
try "init keeps the state beside a kubelet that runs before its turn" stays takes_its_turn_away
try "init keeps the state beside a kubelet that has stopped" stays stops

finish
