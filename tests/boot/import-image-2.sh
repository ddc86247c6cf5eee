#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# tree: apply_tool containerd2
# tests/boot/lib/sandbox.sh with the newest containerd that Debian has.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/sandbox.sh

try "the guest has containerd 2.x" sh -c "containerd --version | grep -E ' v?2\\.[0-9]'"
check_import
check_import_for_soci

finish
