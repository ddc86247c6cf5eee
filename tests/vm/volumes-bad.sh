#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 2 -v /dev/sdb:400M -v /dev/sdc:400M -t 600
# tree: storage storage_stubs
# console: NODESTRAP verdict=failed code=EDISKUSED
# console: NODESTRAP verdict=failed code=EMOUNT
# Volumes that must not be used, targets that they must not be used at; and instance stores that want the same path
# (tests/vm/lib/volumes_bad.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_bad.py
