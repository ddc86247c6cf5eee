#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled
# console: NODESTRAP verdict=ok
# A node without cloud-init, with the containerd 1.7 of Debian 13.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "this is containerd 1.x" sh -c "containerd --version | grep -E ' v?1\\.[0-9]'"
check_node
check_second_run

finish
