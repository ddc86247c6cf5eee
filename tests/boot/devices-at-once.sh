#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# Several processes run the devices phase at once, as units and by hand. Each ends well, one at a time has the devices, and the status loses
# nothing.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

# shellcheck disable=SC2046 # sources are words
init() { nodestrap init "$@" $(sources) --config-cache /run/eks/nodeadm/config.json 2>>"out/at-once-$BASHPID"; }
at_once() {
        local bad=0 pids=(); init & pids+=($!); init --skip config --skip run & pids+=($!); init --skip config & pids+=($!)
        systemctl restart nodestrap-devices & pids+=($!); init --skip config --skip run & pids+=($!); init --skip run & pids+=($!)
        for pid in "${pids[@]}"; do wait "$pid" || bad=$?; done
        return $bad
}
locked() { flock -n /run/nodestrap/devices.lock true && flock -n /run/nodestrap/lock true; }
waits() { # : a run process that cannot lock the devices starts containerd meanwhile; then the lock is free
        systemctl stop kubelet containerd; rm -f /run/nodestrap/started/*
        exec 8<>/run/nodestrap/devices.lock; flock 8
        init --skip config 8>&- & local pid=$!
        until systemctl is-active --quiet containerd; do kill -0 $pid || return; done
        is "$(property kubelet ActiveState)" inactive && kill -0 $pid || return
        exec 8>&-
        wait $pid && active kubelet
}

check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' kubelet
before=$(pids)
try "all parallel runs of init succeed" at_once
try "parallel runs of init restart nothing" is "$(pids)" "$before"
try "the verdict is ok after parallel runs" is "$(value verdict)" ok
try "no process holds a lock" locked
try "the run phase starts containerd while the devices are locked, and kubelet afterwards" waits

finish
