#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0 -t 120
# imds: imds-m5
# tree: networkd apply_tool
# Files of thirty-two processes, and a systemd-networkd that reads them once.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

dir=/run/systemd/network lock=/run/nodestrap/networkd-reload.lock
mkdir -p $dir /run/nodestrap
for i in {1..32}; do ip link add "x$i" type veth peer name "y$i"; done
busctl monitor --match "type='method_call',interface='org.freedesktop.network1.Manager',member='Reload'" >/run/calls 2>/run/monitor &
until grep -q Monitoring /run/monitor; do sleep 0.1; done
calls() { grep -c Member=Reload /run/calls; }
called() { # NUMBER: so many in all; what was asked for was answered, so only the monitor is waited for
        for _ in {1..50}; do [ "$(calls)" -ge "$1" ] && break; sleep 0.1; done
        is "$(calls)" "$1"
}
file() { echo "$dir/70-eks-x$1.network"; }
plan() { # NUMBER METRIC
        echo "write-file $(file "$1") mode=0644 content=[Match]\\nName=x$1\\n[Network]\\nAddress=10.9.$1.1/24\\n[Link]\\nMTUBytes=$2"
        echo "reload-networkd systemd-networkd after=write-file:$(file "$1") deadline=60s"
}
apply() { plan "$@" | /opt/apply-tool; }
waiting() { find /proc/[0-9]*/fd -lname $lock 2>/dev/null | sed 's,/fd/.*,/exe,' | xargs -r readlink | grep -c apply-tool; }
at_once() { # MTU
        local i rc=0 pids=()
        for i in {1..32}; do apply "$i" "$1" >"/run/out.$i" 2>&1 & pids+=($!); done
        until [ -e /run/go ] || [ "$(waiting)" -ge 32 ]; do sleep 0.1; done
        touch /run/go
        for i in "${pids[@]}"; do wait "$i" || rc=1; done
        [ $rc = 0 ] || { cat /run/out.*; false; }
}
has_read() { local i file; for i in {1..32}; do
        for _ in {1..100}; do file=$(networkctl status "x$i" | sed -n 's/^ *Network File: //p'); [ "$file" = "$(file "$i")" ] && break; sleep 0.1; done
        is "$file" "$(file "$i")" || return; done; }

flock $lock sh -c 'until [ -e /run/go ]; do sleep 0.1; done' &  # until all of them have written theirs
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
printf 'remove-file %s\nreload-networkd systemd-networkd after=remove-file:%s deadline=60s\n' "$(file 9)" "$(file 9)" >/run/plan
try "so is what is gone" /opt/apply-tool </run/plan
try "one reload more" called 4
try "its interface is left alone" sh -c 'for i in $(seq 50); do networkctl status x9 | grep -q unmanaged && exit; sleep 0.1; done; networkctl status x9; false'
try "what is gone already is no reason" /opt/apply-tool </run/plan
try "for another" called 4
printf 'link-file %s.d/a.conf with=/etc/a.conf\nreload-networkd systemd-networkd after=link-file:%s.d/a.conf deadline=60s\n' "$(file 7)" "$(file 7)" >/run/plan
try "a drop-in is linked" /opt/apply-tool </run/plan
try "to where it is" is "$(readlink "$(file 7).d/a.conf")" /etc/a.conf
try "and read" called 5
try "once" /opt/apply-tool </run/plan
try "for all" called 5

# A reload that was wanted before there was a bus, which is a restart some seconds later: who writes a file meanwhile needs none of its own.
restarts() { journalctl -b -u systemd-networkd -o cat --no-pager | grep -c '^Started '; }
had=$(restarts); touch -d '1 hour ago' $dir; stamp=$(cat /run/nodestrap/networkd-reload)
try "a clock that was set back does not hide a change" apply 7 1300
try "which is read" no is "$(cat /run/nodestrap/networkd-reload)" "$stamp"
systemctl stop dbus.socket dbus; rm -f /run/dbus/system_bus_socket
apply 7 1350 >/run/out.7 2>&1 & first=$!
until ! flock -n $lock true; do kill -0 $first && sleep 0.01 || break; done
try "without a bus: another one's file" apply 8 1350
try "that of the first one" wait $first
try "networkd was started again once" is "$(restarts)" $((had + 1))
try "it has read both" is "$(cat /sys/class/net/x7/mtu) $(cat /sys/class/net/x8/mtu)" "1350 1350"

systemctl stop systemd-networkd.socket systemd-networkd.service 2>/dev/null
try "where networkd does not run there is nothing to reload" apply 7 1200
try "and it is not started" is "$(property systemd-networkd ActiveState)" inactive

finish
