#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5 conf/examples/plain-proxy.userdata
# spec: {featureGates: {InstanceIdNodeName: true}}
# tree: enabled
# console: NODESTRAP verdict=ok
# containerd and kubelet are in runtime.slice; a slice in a drop-in of the user wins. A drop-in that comes while the daemons run, as with an
# upgrade, restarts nothing: they change their slice at their next start.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

D=/etc/systemd/system/containerd.service.d
masked() { install -d $D && ln -s /dev/null $D/00-nodestrap-slice.conf && systemctl daemon-reload; }
own() { printf '[Service]\nSlice=own.slice\n' >$D/05-own.conf && systemctl daemon-reload; }

check_node
try "without the drop-in" masked
check_second_run
try "containerd stays where it is" runs_in /runtime.slice/containerd.service containerd
try "until it is restarted" systemctl restart containerd
try "in the slice of every other service" runs_in /system.slice/containerd.service containerd
try "the drop-in comes, as with an upgrade" sh -c "rm $D/00-nodestrap-slice.conf && systemctl daemon-reload"
check_second_run
try "containerd runs on where it is" runs_in /system.slice/containerd.service containerd
try "and is to go to kubelet's" is "$(property containerd Slice)" runtime.slice
try "a drop-in of one's own" own
try "is heeded" systemctl restart containerd
try "it wins" runs_in /own.slice/containerd.service containerd
check_second_run

finish
