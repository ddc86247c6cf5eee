#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 shell-only
# tree: enabled kubelet_enabled
# console: NODESTRAP verdict=failed code=ENOCONFIG
# User data without a NodeConfig.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the configuration phase exits with 10" exited nodestrap-config 10
try "kubelet was not started, although it is enabled" never_started
try "containerd was not started, although it is enabled" is "$(property containerd ActiveState)" inactive
try "nodestrap writes no kubelet configuration" no test -e /etc/kubernetes/kubelet/config.json
try "nodestrap wait fails at once with ENOCONFIG" wait_is_told "10 ENOCONFIG at "

finish
