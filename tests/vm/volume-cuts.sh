#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 900
# tree: storage storage_stubs
# An EBS volume that is torn away at each step and at some moments between (tests/vm/lib/volume-cuts.sh).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/vmtest/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /vmtest/volumes.sh
. /vmtest/volume-cuts.sh 1 0.1 xfs
