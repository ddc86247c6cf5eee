#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5 conf/examples/plain-outpost.userdata
# spec: {cluster: {apiServerEndpoint: "https://localhost"}, featureGates: {InstanceIdNodeName: true}}
# tree: enabled
# systemd is about to restart kubelet when another run comes, as after a mistake that you have mended. It is up, and that is a success.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

init() { sh -c "nodestrap init $1 $(sources) --config-cache /run/eks/nodeadm/config.json"; }
state() { is "$(property kubelet SubState)" "$1"; }
crash() { systemctl kill -s KILL kubelet && eventually state auto-restart; }
# A restart is due when the test says so: systemd looks at RestartSec= again when it reads its units.
restarted_after() { printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=%s\n' "$1" >/run/systemd/system/kubelet.service.d/restart.conf; systemctl daemon-reload; }
init_is_queued() { systemctl list-jobs --no-legend kubelet.service | grep -F kubelet.service; }
restarts() { is "$(property kubelet NRestarts)" "$1"; }
mkdir -p /run/systemd/system/kubelet.service.d
try "systemd restarts kubelet, some time" restarted_after 1h
try "kubelet crashes" crash
try "now" restarted_after 0
try "systemd has restarted it" eventually state running
try "systemd waits an hour for the next restart" restarted_after 1h
try "kubelet crashes again" crash
try "systemd counts one restart" restarts 1
init "--skip config" >out/init 2>&1 & init=$!
try "the run phase finds it so, and waits" eventually init_is_queued
try "systemd restarts kubelet at once" restarted_after 0
wait $init; try "the run phase ends well" sh -c "cat out/init; exit $?"
try "kubelet runs" active kubelet
try "the next run leaves kubelet alone" init "--skip config"
try "kubelet has started three times" starts 3
try "systemd waits an hour again" restarted_after 1h
try "kubelet crashes once more" crash
try "the environment file of kubelet changes" touch /etc/eks/kubelet/environment
try "the run phase restarts it, and ends well" init "--skip config"
try "kubelet is up" active kubelet
try "once" starts 4

finish
