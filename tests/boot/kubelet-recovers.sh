#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5 conf/examples/plain-outpost.userdata
# spec: {cluster: {apiServerEndpoint: "https://localhost"}, featureGates: {InstanceIdNodeName: true}}
# tree: enabled
# A kubelet that systemd is about to restart when another run comes, as after a mistake that somebody has mended: it is up, and that is a success.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

init() { sh -c "nodestrap init $1 $(sources) --config-cache /run/eks/nodeadm/config.json"; }
is_soon() { for _ in $(seq 300); do [ "$(property kubelet SubState)" = "$1" ] && return; sleep 0.1; done; echo "is $(property kubelet SubState)"; return 1; }
crash() { systemctl kill -s KILL kubelet && is_soon auto-restart; }
restarted_after() { printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=%s\n' "$1" >/run/systemd/system/kubelet.service.d/restart.conf; systemctl daemon-reload; }
restarts() { is "$(property kubelet NRestarts)" "$1"; }
mkdir -p /run/systemd/system/kubelet.service.d
try "systemd restarts kubelet" restarted_after 2
try "it ends" crash
try "systemd has restarted it" is_soon running
try "later, from now on" restarted_after 20
try "it ends again" crash
try "systemd counts" restarts 1
try "the run phase finds it so, and ends well" init "--skip config"
try "kubelet runs" active kubelet
try "and the next run leaves it alone" init "--skip config"
try "after the restart that was due" starts 3
try "it ends once more" crash
try "what it reads has changed" touch /etc/eks/kubelet/environment
try "the run phase restarts it, and ends well" init "--skip config"
try "kubelet is up" active kubelet
try "once" starts 4

finish
