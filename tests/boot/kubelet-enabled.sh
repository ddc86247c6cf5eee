#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/plain-ipv6.userdata
# metadata: network/interfaces/macs/0e:f4:9a:2b:6c:11/ipv6s 2001:db8::10
# tree: enabled kubelet_enabled
# A kubelet that the image enables waits for the run phase anyway.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "kubelet is active" active kubelet
try "kubelet was started once" starts 1
try "kubelet was started by the run phase" before "$(property nodestrap-run ExecMainStartTimestampMonotonic)" "$(property kubelet ExecMainStartTimestampMonotonic)"
try "no ordering cycle was broken" no_cycle

finish
