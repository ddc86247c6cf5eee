#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -d 2 -e -t 600
# imds: imds-m5 storage-raid0
# spec: {instance: {localStorage: {expectedDisks: 2}}}
# tree: storage storage_stubs enabled endurance disturbed
# A machine with two instance stores, which are blank before most boots. Each boot is disturbed: a clock that jumps, a reboot in the middle
# of a phase, endless events of udev. Or disks go and come back during a wait, and the kernel kills children when memory runs out. The next
# boot, or the next run, is right each time. out/figures has the counts.
# DISTURBED="oom;unplug" are the boots, one after the other; tests/vm/endurance.sh is a short form.
[ -d /vmtest ] || exec "$(dirname "$0")/../../run/boot.sh" "$0"
. /vmtest/guest.sh
figure() { echo "$*" >>out/figures; }
until_is() { local _; for _ in {1..1200}; do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "never: $*"; return 1; }
says() { grep -qE -- "$2" "$1" || { cat "$1"; return 1; }; }
no_jobs() { is "$(systemctl list-jobs --no-legend | grep -v vmtest)" ''; }
no_lock() { flock -n /run/nodestrap/lock true && flock -n /run/nodestrap/devices.lock true; }
on_array() { findmnt -n -o SOURCE -T "$1" | grep /dev/md; }
well() { # WHAT
        local unit
        for unit in config devices run; do try "$1: nodestrap-$unit is active" until_is active nodestrap-$unit; done
        try "$1: kubelet is active" until_is active kubelet
        for unit in kubelet containerd; do try "$1: /var/lib/$unit is on the array" on_array /var/lib/$unit; done
        try "$1: the machine has one array, of both disks" is "$(cat /proc/mdstat | grep -c ^md) $(cat /sys/block/md*/md/raid_disks)" "1 2"
        try "$1: the verdict is ok" grep -qE '"verdict": *"ok"' /run/nodestrap/status.json
        try "$1: both locks are free" no_lock
        try "$1: systemd has no job left" until_is no_jobs
        try "$1: no temporary file is left" is "$(find /etc /var/lib/kubelet /var/lib/nodestrap /run/nodestrap -name '.*.tmp')" ''
}
# /vmtest/next has a line for each boot that is left, from this one on, with its disturbance (disturb). Prints the results so far for the
# waiter outside.
next() {
        sed -i 1d next; [ -s next ] || finish
        [ "$(head -n 1 next)" != oom ] || small_run
        cat out/stdout >/dev/ttyS0; sync; echo 'VMTEST blank-drives' >/dev/ttyS0; systemctl reboot; exit
}
now=$(cat /vmtest/now)

# Signals to init in the phase of the devices, and to its unit
signals_in_devices() {
        local signal p rc signals=0
        exec 9>/run/nodestrap/devices.lock; flock 9
        for signal in TERM INT HUP KILL; do
                setsid nodestrap init --skip config --skip run --config-source imds://user-data 2>/run/err & p=$!
                until_is grep -q 'Another nodestrap' /run/err; kill -$signal $p; wait $p; rc=$?; signals=$((signals + 1))
                if [ $signal = KILL ]; then try "SIGKILL in the devices phase: init ends with exit status 137" is $rc 137
                else try "SIG$signal in the devices phase: stderr names the signal" says /run/err "\\(1 EINTERRUPTED\\) at .*SIG$signal"; fi
        done
        systemctl stop nodestrap-devices; systemctl start --no-block nodestrap-devices
        until_is in_journal 'Another nodestrap process holds'; systemctl stop nodestrap-devices; signals=$((signals + 1))
        try "systemctl stop ends nodestrap-devices without SIGKILL" no is "$(property nodestrap-devices ExecMainStatus)" 9
        exec 9>&-; systemctl start nodestrap-devices; figure "$signals signals in the devices phase"
        well "after signals in the devices phase"
}
small=/etc/systemd/system/nodestrap-run.service.d/small.conf
small_run() {           # a mkfs that wants more than its unit may have
        printf '#!/bin/sh\nexec python3 -c "x = bytearray(1 << 28)"\n' >/usr/local/sbin/mkfs.xfs; chmod 755 /usr/local/sbin/mkfs.xfs
        mkdir -p "${small%/*}"; printf '[Service]\nEnvironment=PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin\nMemoryMax=64M\nMemorySwapMax=0\n' >$small
}
read -r what moment <next
case $what in
storm)  systemctl stop disturb; date -s "@$now" >/dev/null
        well "a clock that jumps and endless events of udev"
        figure "$(cat out/jumps) clock jumps in a machine"; figure "$(cat out/triggers) events of udev for each disk";;
oom)    try "nodestrap-run fails if the kernel kills a child for want of memory" failed nodestrap-run
        try "the kernel log has the process that it killed for want of memory" sh -c 'journalctl -k -b -o cat --no-pager | grep -E "Memory cgroup out of memory: Killed process"'
        try "the last line of nodestrap says that signal 9 killed mkfs.xfs" in_journal 'nodestrap: failed \([0-9]+ E[A-Z]+\) at make-filesystem.*mkfs.xfs was killed by signal 9.*memory'
        try "systemd does not start kubelet after the failed run phase" no active kubelet
        rm $small /usr/local/sbin/mkfs.xfs; systemctl daemon-reload; systemctl reset-failed; systemctl start nodestrap-run kubelet
        well "after a child that was killed for want of memory"
        figure "1 children killed by the kernel for want of memory"
        signals_in_devices;;
unplug) try "an instance store goes and comes back during the boot" test -s out/gone
        well "instance stores that go and come back"
        figure "$(cat out/gone) instance stores that went and came";;
reboot) try "a reboot ends boot $((VMTEST_BOOT - 1))" test -s rebooted
        ! grep -q activating rebooted || figure "1 reboots in a phase"        # a very short phase ends before the reboot begins
        rm rebooted; well "after a reboot in $moment";;
esac
next
