#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled
# Rights of init in three units: the kernel shows them while init works, systemd those of the loaded units with all drop-ins. The lock
# of another init holds each phase. tests/check/protections.sh compares the files.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

waits() { journalctl -b -o cat --no-pager "_PID=$(property "$1" MainPID)" | grep 'Another nodestrap process holds'; }
status() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
# has UNIT CAPABILITY…: numbers of linux/capability.h; less what this container's own PID 1 lacks
has() {
        local unit=$1 want=0 n key pid; shift; pid=$(property "$unit" MainPID)
        for n; do want=$((want | 1 << n)); done; want=$(printf %016x $((want & 0x$(status 1 CapBnd))))
        [ "$pid" != 0 ] || { echo "it is not running"; return 1; }
        for key in CapBnd CapPrm CapEff; do is "$key $(status "$pid" $key)" "$key $want" || return; done
        is "CapAmb $(status "$pid" CapAmb)" "CapAmb 0000000000000000"
}
filtered() {    # UNIT: system calls by filters of its own, and no privileges from programs that it runs
        local pid; pid=$(property "$1" MainPID)
        is "$(status "$pid" NoNewPrivs) $(status "$pid" Seccomp)" "1 2" || return
        [ "$(status "$pid" Seccomp_filters)" -gt "$(status 1 Seccomp_filters)" ] || { echo "no more filters than PID 1"; return 1; }
}
exposed() { systemd-analyze security --no-pager --threshold="$2" "$1.service" | tail -1; return "${PIPESTATUS[0]}"; }   # not more than that, in tenths
held() { # UNIT EXPOSURE CAPABILITY…
        local unit=$1 exposure=$2; shift 2
        try "$unit waits for the lock" eventually waits "$unit"
        try "$unit: init has the capabilities that it needs, and no others" has "$unit" "$@"
        try "$unit: init can gain no privileges, and its system calls are filtered" filtered "$unit"
        try "$unit: the exposure of the loaded unit is $exposure at most" exposed "$unit" "$exposure"
}
locked() { exec 8>/run/nodestrap/lock 9>/run/nodestrap/devices.lock; flock 8; flock 9; }
unlocked() { exec 8>&- 9>&-; }

eventually active nodestrap-run
systemctl stop nodestrap-run nodestrap-devices nodestrap-config
locked; systemctl start --no-block nodestrap-config
held nodestrap-config 41 0 1 3 4
unlocked; eventually active nodestrap-config
locked; systemctl start --no-block nodestrap-devices nodestrap-run
held nodestrap-devices 56 0 1 3 4 12 16 19 21 24 27 34
held nodestrap-run 58 0 1 3 4 12 16 19 21 24 27 31 34
unlocked
for unit in config devices run; do try "nodestrap-$unit succeeds when the lock is free" eventually active nodestrap-$unit; done
finish
