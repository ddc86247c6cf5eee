#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled
# console: NODESTRAP verdict=ok
# A node without cloud-init, with the containerd 1.7 of Debian 13.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the guest has containerd 1.x" sh -c "containerd --version | grep -E ' v?1\\.[0-9]'"
check_node
check_second_run

# daemon-reexec, as of an update of systemd in a user script, closes every connection to systemd. It comes while containerd starts, and
# again before init knows of the first one.
mkdir -p /etc/systemd/system/containerd.service.d
# containerd starts often within seconds. With its start limit systemd would refuse the last start.
printf '[Unit]\nStartLimitIntervalSec=0\n' >/etc/systemd/system/containerd.service.d/often.conf
printf '[Service]\nExecStartPre=/bin/sh -c ": >/run/begun; until [ -e /run/go ]; do sleep 0.1; done"\n' >/etc/systemd/system/containerd.service.d/waits.conf
systemctl daemon-reload; systemctl stop kubelet containerd
# shellcheck disable=SC2046 # sources are words
nodestrap init $(sources) 2>out/reexec & init=$!
until [ -e /run/begun ]; do sleep 0.1; done
systemctl daemon-reexec; touch /run/go; systemctl daemon-reexec; wait $init; rc=$?
try "init succeeds with a new connection after systemctl daemon-reexec" sh -c "cat out/reexec; exit $rc"
try "containerd and kubelet are active" is "$(property containerd ActiveState) $(property kubelet ActiveState)" "active active"
try "init prints nothing about the connection that it has lost" no grep -i 'connection' out/reexec

# init cannot reach systemd again, because systemd listens where this init does not look. init reports a signal meanwhile as a signal and
# not as a lost connection, even if it learns of both at once.
stopped_without_systemd() {     # FILE [COMMAND]: around the loss and the signal
        systemctl stop kubelet containerd; rm -f /run/begun /run/go
        # shellcheck disable=SC2046 # sources are words
        unshare -m sh -c "exec nodestrap init $(sources)" 2>"out/$1" & init=$!
        until [ -e /run/begun ]; do sleep 0.1; done
        nsenter -m -t $init sh -c 'mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && mount -t tmpfs tmpfs /run/dbus'
        [ -z "${2-}" ] || kill -STOP $init
        systemctl daemon-reexec; kill -TERM $init; kill -CONT $init; wait $init; rc=$?
        touch /run/go
        cat "out/$1"; [ $rc = 1 ] && tail -n 1 "out/$1" | grep -F '(1 EINTERRUPTED) at start-unit:containerd.service: stopped by SIGTERM'
}
try "SIGTERM stops an init that waits for a connection to systemd" stopped_without_systemd stopped
try "SIGTERM stops an init that loses the connection to systemd at the same moment" stopped_without_systemd stopped-at-once held

# init restarts a running daemon. A signal that stops init between the end of the daemon and its next start must not leave it down.
until [ "$(property containerd ActiveState)" = active ]; do sleep 0.1; done
printf '[Service]\nExecStop=/bin/sh -c ": >/run/ends; until [ -e /run/ended ]; do sleep 0.1; done"\n' >/etc/systemd/system/containerd.service.d/waits.conf
systemctl daemon-reload
# shellcheck disable=SC2046 # sources are words
nodestrap init $(sources) 2>out/restart & init=$!
until [ -e /run/ends ]; do sleep 0.1; done
kill -TERM $init; wait $init; before=$(property containerd MainPID); touch /run/ended
another_is_up() { active containerd && no is "$(property containerd MainPID)" "$before"; }
eventually another_is_up >/dev/null
try "SIGTERM stops an init that restarts containerd" grep -F '(1 EINTERRUPTED) at start-unit:containerd.service: stopped by SIGTERM' out/restart
try "containerd is active after SIGTERM has stopped init in its restart" is "$(property containerd ActiveState)" active

# Of the commands before the daemon, the message names the one that failed.
printf '[Service]\nExecStartPre=-/bin/false\nExecStartPre=/bin/sh -c "kill -KILL $$$$"\nRestart=no\n' >/etc/systemd/system/containerd.service.d/waits.conf
systemctl stop containerd; systemctl daemon-reload
# shellcheck disable=SC2046 # sources are words
nodestrap init $(sources) 2>out/command
try "the message names the ExecStartPre= command that failed, and not the one whose failure is ignored" sh -c "cat out/command; tail -n 1 out/command | grep -F 'its command /bin/sh (signal 9) failed'"

finish
