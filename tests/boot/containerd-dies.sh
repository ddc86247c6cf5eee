#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled
# drop-in: containerd.service [Service]
# drop-in: containerd.service Type=simple
# drop-in: containerd.service ExecStart=
# drop-in: containerd.service ExecStart=/usr/bin/timeout 1 /usr/bin/containerd
# drop-in: containerd.service RestartSec=100ms
# drop-in: containerd.service Restart=always
# console: NODESTRAP verdict=failed code=EUNIT step=start-unit:containerd.service
# console-lacks: NODESTRAP verdict=ok code=OK .*phases=run
# A containerd of Type=simple counts as started when its process is. If it dies each second the boot fails, even if it has answered.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the run phase exits with 50" exited nodestrap-run 50
try "the last line has the exit status of containerd" in_journal '^nodestrap: failed \(50 EUNIT\) at start-unit:containerd.service: containerd.service did not stay up: .*status 124'

# This containerd stays up, and the run phase calls it as soon as it listens.
printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "sleep 0.3; exec /usr/bin/containerd"\n' >/etc/systemd/system/containerd.service.d/z.conf
systemctl daemon-reload; systemctl stop containerd
try "init succeeds if containerd stays up" sh -c "nodestrap init $(sources) 2>out/stays || { cat out/stays; false; }"
try "kubelet is active" active kubelet

finish
