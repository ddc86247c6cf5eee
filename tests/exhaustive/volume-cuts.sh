#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 3600
# tree: storage storage_stubs
# The same as tests/vm/volume-cuts.sh at many more moments.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/vmtest/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /vmtest/volumes.sh
. /vmtest/volume-cuts.sh 60 0.01 xfs ext4
