#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled containerd2
# console: NODESTRAP verdict=ok
# containerd 2.x with user TOML for 1.x: its translation loses no setting.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the guest has containerd 2.x" sh -c "containerd --version | grep -E ' v?2\\.[0-9]'"
check_node
check_second_run

finish
