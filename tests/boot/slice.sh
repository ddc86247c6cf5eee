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
try "systemd masks the drop-in of nodestrap" masked
check_second_run
try "containerd stays in runtime.slice after the drop-in is masked" runs_in /runtime.slice/containerd.service containerd
try "containerd restarts without the drop-in" systemctl restart containerd
try "containerd runs in system.slice without the drop-in" runs_in /system.slice/containerd.service containerd
try "the drop-in comes back, as in an upgrade" sh -c "rm $D/00-nodestrap-slice.conf && systemctl daemon-reload"
check_second_run
try "containerd stays in system.slice until its next start" runs_in /system.slice/containerd.service containerd
try "containerd is to go to runtime.slice at its next start" is "$(property containerd Slice)" runtime.slice
try "systemd loads a drop-in of the user" own
try "containerd restarts with the drop-in of the user" systemctl restart containerd
try "containerd runs in the slice of the user" runs_in /own.slice/containerd.service containerd
check_second_run

finish
