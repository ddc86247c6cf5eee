#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: networkd apply_tool
# Thirty-two processes write files in parallel, and systemd-networkd reads them in one reload.
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

flock $lock sh -c ': >/run/held; until [ -e /run/go ]; do sleep 0.1; done' &    # until each process has written its file
eventually test -e /run/held
try "thirty-two processes write files in parallel and succeed" at_once 1400
try "networkd reloads once for thirty-two files" called 1
try "networkd has read each of the thirty-two files" has_read
try "thirty-two processes write the same files again and succeed" at_once 1400
try "networkd does not reload for files that are unchanged" called 1
try "each of thirty-two processes reports that the reload is unchanged" is "$(grep -l '^unchanged reload-networkd' /run/out.* | wc -l)" 32
try "a process writes a changed file and succeeds" apply 7 1300
try "networkd reloads once for a changed file" called 2
plan 8 1300 | head -1 | /opt/apply-tool >/dev/null
try "a process succeeds after an earlier one wrote the file but ended before its reload" apply 8 1300
try "networkd reloads once for a file of a process that ended before its reload" called 3
printf 'remove-file %s\nreload-networkd systemd-networkd after=remove-file:%s deadline=5m\n' "$(file 9)" "$(file 9)" >/run/plan
is_left_alone() { local status; status=$(networkctl status "$1"); grep -q unmanaged <<<"$status" || { echo "$status"; return 1; }; }
try "a process removes a file and succeeds" /opt/apply-tool </run/plan
try "networkd reloads once for a removed file" called 4
try "networkd leaves the interface of a removed file alone" eventually is_left_alone x9
try "a process that finds its file already removed succeeds" /opt/apply-tool </run/plan
try "networkd does not reload for a file that was already removed" called 4
printf 'link-file %s.d/a.conf with=/etc/a.conf\nreload-networkd systemd-networkd after=link-file:%s.d/a.conf deadline=5m\n' "$(file 7)" "$(file 7)" >/run/plan
try "a process links a drop-in and succeeds" /opt/apply-tool </run/plan
try "the drop-in is a link to its file" is "$(readlink "$(file 7).d/a.conf")" /etc/a.conf
try "networkd reloads once for a new drop-in" called 5
try "a process that finds its drop-in already linked succeeds" /opt/apply-tool </run/plan
try "networkd does not reload for a drop-in that was already linked" called 5

# spec.instance.network.mtu is a drop-in
mtu_is() { is "$(cat "/sys/class/net/x$1/mtu")" "$2"; }
try "a link has the MTU of its file" eventually mtu_is 10 1400
drop_in=$(file 10).d/nodestrap-mtu.conf
printf 'write-file %s mode=0644 content=[Link]\\nMTUBytes=1280\nreload-networkd systemd-networkd after=write-file:%s deadline=5m\n' "$drop_in" "$drop_in" >/run/plan
echo 'prune-files /run/manifest' >>/run/plan
try "a process writes a drop-in with another MTU and succeeds" /opt/apply-tool </run/plan
try "the link gets the MTU of the drop-in" eventually mtu_is 10 1280
printf 'prune-files /run/manifest\nreload-networkd systemd-networkd after=prune-files:/run/manifest deadline=5m\n' >/run/plan
try "a plan without the drop-in removes it" /opt/apply-tool </run/plan
try "without the drop-in the link gets the MTU of its file again" eventually mtu_is 10 1400

# A reload before there is a bus becomes a restart some seconds later. A process that writes a file meanwhile needs no reload of its own.
# The first one stands still from the moment that it first looks for a bus until the second one has written its file.
restarts() { journalctl --sync; journalctl -b -u systemd-networkd -o cat --no-pager | grep -c '^Started '; }
had=$(restarts); touch -d '1 hour ago' $dir; stamp=$(cat /run/nodestrap/networkd-reload)
try "a process writes a changed file and succeeds after the clock was set back" apply 7 1300
try "the reload is recorded again after the clock was set back" no is "$(cat /run/nodestrap/networkd-reload)" "$stamp"
systemctl stop dbus.socket dbus; rm -f /run/dbus/system_bus_socket
plan 7 1350 | strace -D -I 2 -f -o /run/trace -e trace=connect -e inject=connect:signal=STOP:when=1 /opt/apply-tool >/run/out.7 2>&1 & first=$!
try "without a bus the first process stands still when it looks for the bus" eventually grep -q 'stopped by SIGSTOP' /run/trace
try "the first process holds the lock while it stands still" no flock -n $lock true
try "the first process has tried one connection, to the bus" is "$(grep -c 'connect(.*/dbus/' /run/trace)/$(grep -c 'connect(' /run/trace)" 1/1
apply 8 1350 >/run/out.8 2>&1 & second=$!
try "a second process has written its file and waits" eventually all_wait 2
pkill -x strace; eventually no pgrep -x strace >/dev/null; kill -CONT $first
wait $first; try "the first process goes on and succeeds" sh -c "cat /run/out.7; exit $?"
wait $second; try "the second process succeeds" sh -c "cat /run/out.8; exit $?"
try "networkd restarts once for both processes" is "$(restarts)" $((had + 1))
mtus() { is "$(cat /sys/class/net/x7/mtu) $(cat /sys/class/net/x8/mtu)" "1350 1350"; }
try "networkd has read the files of both processes" eventually mtus

systemctl stop systemd-networkd.socket systemd-networkd.service 2>/dev/null
try "a process succeeds where networkd does not run" apply 7 1200
try "the process does not start networkd" is "$(property systemd-networkd ActiveState)" inactive

finish
