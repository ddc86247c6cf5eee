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
try "the test sets the restart delay of kubelet to an hour" restarted_after 1h
try "kubelet ends and waits for its restart" crash
try "the test sets the restart delay to zero" restarted_after 0
try "systemd restarts kubelet" eventually state running
try "the test sets the restart delay to an hour again" restarted_after 1h
try "kubelet ends a second time" crash
try "systemd counts one restart" restarts 1
init "--skip config" >out/init 2>&1 & init=$!
try "the run phase queues a start of kubelet and waits" eventually init_is_queued
try "the test sets the restart delay to zero while the run phase waits" restarted_after 0
wait $init; try "the run phase succeeds if systemd restarts kubelet" sh -c "cat out/init; exit $?"
try "kubelet runs" active kubelet
try "the next run leaves kubelet alone" init "--skip config"
try "kubelet was started three times" starts 3
try "the test sets the restart delay to an hour a third time" restarted_after 1h
try "kubelet ends a third time" crash
try "the test changes the environment file of kubelet" touch /etc/eks/kubelet/environment
try "the run phase succeeds while kubelet waits for its restart" init "--skip config"
try "kubelet is active" active kubelet
try "kubelet was started four times" starts 4

finish
