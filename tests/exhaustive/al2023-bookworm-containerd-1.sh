#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# vpc: --cards 1 --count 1
# tree: al2023 vpc package containerd17
# console: NODESTRAP verdict=ok
# The EKS image, our package, and the ways between nodeadm and nodestrap (boot/al2023.sh), with systemd 252 and containerd 1.7.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

try "the version of containerd is 1.7" sh -c "containerd --version | grep -E ' v?1\\.7'"
check_ways
