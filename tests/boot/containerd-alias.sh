#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled containerd_alias
# console: NODESTRAP verdict=ok
# An image has containerd.service as an alias: systemd speaks of the unit by its other name, and the boot goes well. The run phase also
# looks at containerd when kubelet starts.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

# shellcheck disable=SC2046 # sources are words
init() { nodestrap init $(sources) >"out/$1" 2>&1; }
fails() { ! init "$1" && tail -n 1 "out/$1" | grep -E "^nodestrap: failed \\(50 EUNIT\\) at start-unit:containerd.service: containerd.service did not stay up: $2" || { cat "out/$1"; return 1; }; }

try "containerd.service is an alias of containerd-eks.service" is "$(property containerd.service Id)" containerd-eks.service
try "the run phase succeeded" exited nodestrap-run 0
try "containerd is active" active containerd-eks
try "kubelet was started once" starts 1
try "a second init changes nothing" sh -c "nodestrap init $(sources) 2>out/second && python3 compare.py unchanged /run/nodestrap/status.json"
systemctl stop kubelet containerd
try "an init that starts containerd again succeeds" init again || cat out/again

mkdir -p /etc/systemd/system/kubelet.service.d; printf '[Unit]\nConflicts=containerd.service\n' >/etc/systemd/system/kubelet.service.d/conflicts.conf
systemctl stop kubelet; systemctl daemon-reload; systemctl reset-failed
try "init fails if kubelet stops containerd" fails conflicts 'systemctl stop, or Conflicts= of another unit, stopped it; '
printf '[Service]\nExecStartPre=/bin/systemctl restart containerd\n' >/etc/systemd/system/kubelet.service.d/conflicts.conf
systemctl stop kubelet; systemctl daemon-reload; systemctl reset-failed
try "init succeeds if kubelet restarts containerd" init restarts || cat out/restarts
rm /etc/systemd/system/kubelet.service.d/conflicts.conf; systemctl stop kubelet

mkdir -p /etc/systemd/system/containerd-eks.service.d
printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "echo its own words; exit 7"\n' >/etc/systemd/system/containerd-eks.service.d/ends.conf
systemctl daemon-reload; systemctl stop containerd; systemctl reset-failed
try "the message has the exit status of a unit that ended" fails ends '.*status 7'

finish
