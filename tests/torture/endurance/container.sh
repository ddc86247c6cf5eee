#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 2400
# imds: imds-m5
# tree: enabled endurance
# Inits beside a systemd of their own: hundreds of them with their costs, signals in each phase, and two at once. Also restarts of D-Bus and
# systemd in the middle, and kills as by the kernel when memory runs out. KEEP/…/figures has the counts. PARTS="together killed" runs those
# parts alone, SIGNALS="TERM KILL" has these signals alone; tests/boot/endurance.sh is a short form.
[ -d /vmtest ] || exec "$(dirname "$0")/../../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/endurance.env
figure() { echo "$*" >>out/figures; }
U=/etc/systemd/system
# shellcheck disable=SC2046 # sources are words
init() { nodestrap init $(sources) "$@"; }
says() { tail -n 1 "$1" | grep -qE -- "$2" || { tail -n 3 "$1"; return 1; }; }
no_jobs() { is "$(systemctl list-jobs --no-legend | grep -v vmtest)" ''; }
no_lock() { flock -n /run/nodestrap/lock true && flock -n /run/nodestrap/devices.lock true; }
check_node
for unit in kubelet containerd nodestrap-config nodestrap-run; do mkdir -p $U/$unit.service.d; printf '[Unit]\nStartLimitIntervalSec=0\n' >$U/$unit.service.d/often.conf; done; systemctl daemon-reload

# ---- hundreds of inits, and their leftovers ----
preload=/vmtest/endurance.so
system_counts() {       # leftovers of ended programs in systemd, the bus, the kernel and the journal
        echo "jobs $(systemctl show -P NJobs)"; echo "failed $(systemctl show -P NFailedUnits)"
        echo "matches $(busctl --json=short call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus.Debug.Stats GetStats 2>/dev/null | python3 -c 'import json,sys; d=json.load(sys.stdin)["data"][0]; print(d.get("MatchRules",{}).get("data"), d.get("ActiveConnections",{}).get("data"))' 2>/dev/null)"
        echo "mounts $(wc -l </proc/self/mountinfo)"; echo "inotify $(find /proc/[0-9]*/fd -lname 'anon_inode:inotify' 2>/dev/null | wc -l)"
        echo "events $(find /run/nodestrap/events -type f 2>/dev/null | wc -l)"
        echo "journal-fields $(journalctl -b -N --no-pager 2>/dev/null | grep -c NODESTRAP)"
        find /run /tmp /var/tmp /var/lib/nodestrap /etc /var/lib/kubelet -xdev \( -path /run/log -o -path /run/systemd -o -path /run/udev -o -path /run/containerd -o -path '/tmp/*containerd*' -o -path '/tmp/systemd-private*' -o -path '/var/tmp/systemd-private*' \) -prune -o -print 2>/dev/null | sort
}
pid1_fds() { find /proc/1/fd -mindepth 1 | wc -l; }
part_inits() {
        local n file bad=0
        printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {flags: [--v=5]}}\n' >/run/b.yaml
        : >/run/account
        for ((n = 1; n <= INITS; n++)); do
                rm -f /etc/eks/nodeadm.d/90-b.yaml; [ $((n / 10 % 2)) = 0 ] || cp /run/b.yaml /etc/eks/nodeadm.d/90-b.yaml
                case $((n % 4)) in 0) file=;; 1) file="--skip devices --skip run";; 2) file="--skip config --skip run";; 3) file="--skip config";; esac
                # shellcheck disable=SC2086
                ENDURANCE_OF=nodestrap ENDURANCE_ACCOUNT=/run/account LD_PRELOAD=$preload init $file 2>/run/err || { bad=$((bad + 1)); sed "s/^/# $n: /" /run/err | tail -2; }
                if [ $n = 40 ] || [ "$n" = "$INITS" ]; then
                        for _ in {1..50}; do [ "$(systemctl show -P NJobs)" = 0 ] && break; sleep 0.1; done
                        system_counts >"out/counts.$n"; pid1_fds >"out/pid1.$n"
                fi
        done
        rm -f /etc/eks/nodeadm.d/90-b.yaml
        try "$INITS inits beside systemd succeed" is $bad 0
        try "no init has an open descriptor at its end but the journal socket of libsystemd" is "$(awk '{ for (i = 3; i <= NF; i++) if ($i !~ /^socket:/ || i > 3) print }' /run/account | head -3)" ''
        try "the memory peak of later inits is at most 1 MiB over that of the first forty" test "$(awk 'NR > 10 { print $1 }' /run/account | sort -n | tail -1)" -le $(($(awk 'NR <= 40 { print $1 }' /run/account | sort -n | tail -1) + 1024))
        try "systemd, D-Bus, the kernel and the journal keep the same as after the fortieth init" diff out/counts.40 "out/counts.$INITS"
        try "PID 1 has at most three descriptors more than after the fortieth init" test "$(cat "out/pid1.$INITS")" -le $(($(cat out/pid1.40) + 3))
        figure "$INITS inits beside systemd"
        init 2>/run/err
}

# ---- signals, in each phase ---- The lock of another init holds the configuration phase; a unit that starts for ever holds the others.
hold_start() { mkdir -p $U/containerd.service.d; printf '[Service]\nExecStartPre=/bin/sh -c ": >/run/begun; exec sleep 1000"\nTimeoutStartSec=infinity\n' >$U/containerd.service.d/holds.conf; systemctl daemon-reload; systemctl stop kubelet containerd; rm -f /run/begun; }
hold_end() { rm -f $U/containerd.service.d/holds.conf; systemctl daemon-reload; }
until_is() { local _; for _ in {1..600}; do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "never: $*"; return 1; }
state_is() { is "$(property "$1" ActiveState)" "$2"; }
signals=0
again() { # NAME: the checks after a phase that was ended
        try "$1: both locks are free" no_lock
        try "$1: systemd has no job left" until_is no_jobs
        try "$1: no temporary file is left" is "$(find /etc /var/lib/kubelet /var/lib/nodestrap /run/nodestrap -name '.*.tmp')" ''
        try "$1: the next init succeeds" sh -c "nodestrap init $(sources) 2>/run/err || { cat /run/err; false; }"
        try "$1: kubelet is active" until_is active kubelet
}
# Process PID has read all answers of systemd and waits for more. Before that it would not know its job, and would leave it.
idle() { busctl get-property org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager Version && [ "$(awk '{ print $3 }' "/proc/$1/stat")" = S ]; }
typed() { # SIGNAL NAME UNTIL… : sends the signal to an init that is held
        local signal=$1 name=$2 p rc; shift 2
        # shellcheck disable=SC2046
        setsid nodestrap init $(sources) "${skips[@]}" 2>/run/err & p=$!
        until_is "$@"; until_is idle $p; kill "-$signal" $p; wait $p; rc=$?; signals=$((signals + 1))
        if [ "$signal" = KILL ]; then try "$name: init ends with exit status 137" is $rc 137
        elif [ "$signal" = PIPE ]; then :
        else try "$name: init ends with exit status 1" is $rc 1 && try "$name: the last line of stderr names the signal" says /run/err "\\(1 EINTERRUPTED\\) at .*SIG$signal"; fi
}
part_signals() {
        local signal phase begin
        for signal in ${SIGNALS:-TERM INT HUP KILL}; do
                skips=(); hold_start; typed $signal "SIG$signal in the run phase" test -e /run/begun; hold_end
                [ $signal != KILL ] || systemctl stop containerd
                again "SIG$signal in the run phase"
                skips=(--skip devices --skip run); exec 9>/run/nodestrap/lock; flock 9; typed $signal "SIG$signal behind another init" grep -q 'Another nodestrap' /run/err; exec 9>&-
                again "SIG$signal behind another init"
        done
        # systemctl stop, as at a shutdown of the machine
        for phase in config run; do
                hold_start; [ $phase = run ] || { exec 9>/run/nodestrap/lock; flock 9; }
                systemctl stop nodestrap-run nodestrap-config; systemctl start --no-block nodestrap-$phase
                if [ $phase = run ]; then until_is test -e /run/begun; else until_is state_is nodestrap-config activating; fi
                begin=$SECONDS; systemctl stop nodestrap-run nodestrap-config; signals=$((signals + 1))
                try "systemctl stop ends nodestrap-$phase within ten seconds" test $((SECONDS - begin)) -le 10
                try "systemctl stop ends nodestrap-$phase without SIGKILL" no is "$(property nodestrap-$phase ExecMainStatus)" 9
                exec 9>&-; hold_end; systemctl stop containerd
                again "nodestrap-$phase stopped"
        done
        figure "$signals signals in a phase"
}

# ---- two at once ----
part_together() {
        local first second third a b c
        hold_start; sed -i 's/exec sleep 1000/until [ -e \/run\/go ]; do sleep 0.1; done/' $U/containerd.service.d/holds.conf; systemctl daemon-reload; rm -f /run/go
        init 2>/run/first & first=$!; until_is test -e /run/begun
        ln -sf "$(command -v nodestrap)" /vmtest/nodeadm
        init 2>/run/second & second=$!
        # shellcheck disable=SC2046 # sources are words
        /vmtest/nodeadm init $(sources) 2>/run/third & third=$!
        try "a second init says that it waits" until_is grep -q 'Another nodestrap process holds' /run/second
        try "nodeadm init says that it waits" until_is grep -q 'Another nodestrap process holds' /run/third
        touch /run/go; wait $first; a=$?; wait $second; b=$?; wait $third; c=$?
        try "three inits at once succeed" is "$a $b $c" "0 0 0"
        hold_end; figure "3 inits at once"
}

# ---- restarts of the bus and of systemd, in the middle ----
part_restarts() {
        local restarts what p rc _
        hold_start; sed -i 's/exec sleep 1000/until [ -e \/run\/go ]; do sleep 0.1; done/' $U/containerd.service.d/holds.conf; systemctl daemon-reload
        restarts=0
        for what in 'systemctl daemon-reload' 'systemctl daemon-reexec' 'systemctl restart dbus' 'systemctl kill -s KILL dbus' 'sh -c "systemctl stop dbus.socket dbus; rm -f /run/dbus/system_bus_socket; systemctl start dbus.socket dbus"' 'systemctl restart systemd-journald'; do
                systemctl stop kubelet containerd; rm -f /run/begun /run/go; systemctl reset-failed dbus 2>/dev/null
                init 2>/run/err & p=$!; until_is test -e /run/begun
                for _ in {1..5}; do eval "$what" >/dev/null 2>&1; restarts=$((restarts + 1)); done
                touch /run/go; wait $p; rc=$?
                try "init succeeds with this in the middle: $what" sh -c "cat /run/err; exit $rc"
        done
        hold_end; figure "$restarts restarts of systemd and D-Bus under an init"
}

# ---- kills as by the kernel for want of memory ----
part_killed() {
        printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "kill -KILL $$$$"\nRestart=no\nType=notify\n' >$U/containerd.service.d/killed.conf; systemctl daemon-reload; systemctl stop kubelet containerd
        init 2>/run/err; try "init ends with exit status 50 if a unit is killed" is $? 50
        try "the last line of init names the signal of the unit and its possible causes" says /run/err "containerd.service .*signal 9/KILL \(from a user, or from the kernel when memory ran out"
        rm $U/containerd.service.d/killed.conf; systemctl daemon-reload; systemctl reset-failed containerd
        again "a unit that was killed"
        hold_start; systemctl stop nodestrap-run; systemctl start --no-block nodestrap-run; until_is test -e /run/begun
        systemctl kill -s KILL nodestrap-run
        try "nodestrap-run fails if SIGKILL ends its init" until_is failed nodestrap-run
        try "systemd has signal 9 as the status of nodestrap-run" is "$(property nodestrap-run ExecMainStatus)" 9
        try "systemd does not start kubelet after a killed init" no active kubelet
        hold_end; systemctl stop containerd; again "an init that was killed"
        figure "3 processes killed by SIGKILL under systemd"
}

for part in ${PARTS:-inits signals together restarts killed}; do "part_$part"; done
finish
