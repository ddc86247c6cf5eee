#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -v /dev/sdb:400M:late -v /dev/sdc:400M -t 600
# tree: storage storage_stubs
# A volume that is attached while the node waits for it, and one that is detached between two boots (tests/vm/lib/volumes_late.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_late.py comes
