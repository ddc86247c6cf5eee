#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -v /dev/sdb:400M:late -v /dev/sdc:400M -t 600
# tree: storage storage_stubs
# console: NODESTRAP verdict=failed code=EVOLUME
# A volume that is not attached before the patience of the node, two minutes, has ended (tests/vm/lib/volumes_late.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_late.py never
