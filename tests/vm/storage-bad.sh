#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 4 -e -t 900
# tree: storage storage_stubs
# console: NODESTRAP verdict=failed code=EDISKUSED
# console: NODESTRAP verdict=failed code=EDISKERROR
# console: NODESTRAP verdict=failed code=EMOUNT
# Disks that must not be used, places that they must not be used at, programs that are missing (tests/vm/lib/bad.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/bad.py
