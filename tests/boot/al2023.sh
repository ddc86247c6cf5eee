#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# vpc: --cards 1 --count 1
# tree: al2023 vpc package
# console: NODESTRAP verdict=ok
# The image of EKS and our package: beside a disabled nodeadm, in its place under the nodeadm units, and back each time.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

try "the guest has containerd 1.7" sh -c "containerd --version | grep -E ' v?1\\.7'"
check_ways
