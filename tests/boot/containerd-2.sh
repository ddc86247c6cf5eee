#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 schema-3
# tree: enabled containerd2
# console: NODESTRAP verdict=ok
# A node without cloud-init, with a containerd 2.x, which reads another schema.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the guest has containerd 2.x" sh -c "containerd --version | grep -E ' v?2\\.[0-9]'"
check_node
check_second_run

finish
