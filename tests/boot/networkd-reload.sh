#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: networkd apply_tool
# Files of thirty-two processes, and a systemd-networkd that reads them once.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

dir=/run/systemd/network lock=/run/nodestrap/networkd-reload.lock
mkdir -p $dir /run/nodestrap
for i in {1..32}; do ip link add "x$i" type veth peer name "y$i"; done
busctl monitor --match "type='method_call',interface='org.freedesktop.network1.Manager',member='Reload'" --match "type='signal',interface='of.test'" >/run/calls 2>/run/monitor &
eventually grep -q Monitoring /run/monitor
called() { # NUMBER: so many in all. A bus shows its messages in their order: with the mark all calls before it are there
        busctl emit /of/test of.test "Mark$BASHPID" && eventually grep -q "Member=Mark$BASHPID\$" /run/calls && is "$(grep -c Member=Reload /run/calls)" "$1"
}
file() { echo "$dir/70-eks-x$1.network"; }
plan() { # NUMBER METRIC
        echo "write-file $(file "$1") mode=0644 content=[Match]\\nName=x$1\\n[Network]\\nAddress=10.9.$1.1/24\\n[Link]\\nMTUBytes=$2"
        echo "reload-networkd systemd-networkd after=write-file:$(file "$1") deadline=5m"
}
apply() { plan "$@" | /opt/apply-tool; }
waiting() { find /proc/[0-9]*/fd -lname $lock 2>/dev/null | sed 's,/fd/.*,/exe,' | xargs -r readlink | grep -c apply-tool; }
all_wait() { is "$(waiting)" "$1"; }
at_once() { # MTU
        local i rc=0 pids=()
        for i in {1..32}; do apply "$i" "$1" >"/run/out.$i" 2>&1 & pids+=($!); done
        [ -e /run/go ] || eventually all_wait 32
        touch /run/go
        for i in "${pids[@]}"; do wait "$i" || rc=1; done
        [ $rc = 0 ] || { cat /run/out.*; false; }
}
has() { is "$(networkctl status "x$1" | sed -n 's/^ *Network File: //p')" "$(file "$1")"; }
has_read() { local i; for i in {1..32}; do eventually has "$i" || return; done; }

flock $lock sh -c ': >/run/held; until [ -e /run/go ]; do sleep 0.1; done' &    # until all of them have written theirs
eventually test -e /run/held
try "thirty-two files are written and read" at_once 1400
try "in one reload" called 1
try "networkd has each of them" has_read
try "all once more" at_once 1400
try "is nothing to read" called 1
try "which each of them says" is "$(grep -l '^unchanged reload-networkd' /run/out.* | wc -l)" 32
try "what was written is read" apply 7 1300
try "once more" called 2
plan 8 1300 | head -1 | /opt/apply-tool >/dev/null
try "and what a process wrote that was ended before" apply 8 1300
try "once, too" called 3
printf 'remove-file %s\nreload-networkd systemd-networkd after=remove-file:%s deadline=5m\n' "$(file 9)" "$(file 9)" >/run/plan
is_left_alone() { local status; status=$(networkctl status "$1"); grep -q unmanaged <<<"$status" || { echo "$status"; return 1; }; }
try "so is what is gone" /opt/apply-tool </run/plan
try "one reload more" called 4
try "its interface is left alone" eventually is_left_alone x9
try "what is gone already is no reason" /opt/apply-tool </run/plan
try "for another" called 4
printf 'link-file %s.d/a.conf with=/etc/a.conf\nreload-networkd systemd-networkd after=link-file:%s.d/a.conf deadline=5m\n' "$(file 7)" "$(file 7)" >/run/plan
try "a drop-in is linked" /opt/apply-tool </run/plan
try "to where it is" is "$(readlink "$(file 7).d/a.conf")" /etc/a.conf
try "and read" called 5
try "once" /opt/apply-tool </run/plan
try "for all" called 5

# spec.instance.network.mtu is a drop-in
mtu_is() { is "$(cat "/sys/class/net/x$1/mtu")" "$2"; }
try "a link has the MTU of its file" eventually mtu_is 10 1400
drop_in=$(file 10).d/nodestrap-mtu.conf
printf 'write-file %s mode=0644 content=[Link]\\nMTUBytes=1280\nreload-networkd systemd-networkd after=write-file:%s deadline=5m\n' "$drop_in" "$drop_in" >/run/plan
echo 'prune-files /run/manifest' >>/run/plan
try "a drop-in with another one is written" /opt/apply-tool </run/plan
try "and the link gets it" eventually mtu_is 10 1280
printf 'prune-files /run/manifest\nreload-networkd systemd-networkd after=prune-files:/run/manifest deadline=5m\n' >/run/plan
try "a plan without the drop-in removes it" /opt/apply-tool </run/plan
try "and the link gets that of its file again" eventually mtu_is 10 1400

# A reload before there is a bus becomes a restart some seconds later. A process that writes a file meanwhile needs no reload of its own.
# The first one stands still from the moment that it first looks for a bus until the second one has written its file.
restarts() { journalctl --sync; journalctl -b -u systemd-networkd -o cat --no-pager | grep -c '^Started '; }
had=$(restarts); touch -d '1 hour ago' $dir; stamp=$(cat /run/nodestrap/networkd-reload)
try "a clock that was set back does not hide a change" apply 7 1300
try "which is read" no is "$(cat /run/nodestrap/networkd-reload)" "$stamp"
systemctl stop dbus.socket dbus; rm -f /run/dbus/system_bus_socket
plan 7 1350 | strace -D -I 2 -f -o /run/trace -e trace=connect -e inject=connect:signal=STOP:when=1 /opt/apply-tool >/run/out.7 2>&1 & first=$!
try "without a bus: one looks for it and stands still" eventually grep -q 'stopped by SIGSTOP' /run/trace
try "it has the lock" no flock -n $lock true
try "and has asked for the bus alone" is "$(grep -c 'connect(.*/dbus/' /run/trace)/$(grep -c 'connect(' /run/trace)" 1/1
apply 8 1350 >/run/out.8 2>&1 & second=$!
try "another one has written its file and waits" eventually all_wait 2
pkill -x strace; eventually no pgrep -x strace >/dev/null; kill -CONT $first
wait $first; try "the first one goes on and ends well" sh -c "cat /run/out.7; exit $?"
wait $second; try "as does the other one" sh -c "cat /run/out.8; exit $?"
try "networkd was started again once" is "$(restarts)" $((had + 1))
mtus() { is "$(cat /sys/class/net/x7/mtu) $(cat /sys/class/net/x8/mtu)" "1350 1350"; }
try "it has read both" eventually mtus

systemctl stop systemd-networkd.socket systemd-networkd.service 2>/dev/null
try "where networkd does not run there is nothing to reload" apply 7 1200
try "and it is not started" is "$(property systemd-networkd ActiveState)" inactive

finish
