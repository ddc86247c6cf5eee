#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# tree: kubelet_enabled kubelet_environment
# The package is installed and not enabled: containerd and kubelet start as if it were not there.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "containerd is active" active containerd
try "kubelet is active" active kubelet
try "nodestrap did nothing" is "$(property nodestrap-config ActiveState) $(property nodestrap-run ActiveState)" "inactive inactive"
try "nodestrap left nothing behind" is "$(ls -A /run/nodestrap)" ""

finish
