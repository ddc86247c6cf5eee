#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# tree: apply_tool
# tests/boot/lib/sandbox.sh with containerd 1.7.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/sandbox.sh

try "the guest has containerd 1.7" sh -c "containerd --version | grep -E ' v?1\\.7\\.'"
check_import
check_import_for_soci

finish
