#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 schema-3
# vpc: --cards 1 --count 1
# tree: al2023 vpc package containerd2
# console: NODESTRAP verdict=ok
# The EKS image, our package, and the ways between nodeadm and nodestrap (boot/al2023.sh), with containerd 2.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

try "the version of containerd is 2" sh -c "containerd --version | grep -E ' v?2\\.'"
check_ways
