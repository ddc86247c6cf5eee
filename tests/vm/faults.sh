#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 2 -e -t 9000
# tree: storage storage_stubs faults
# A sample of faults at calls that change something: then a clean run ends as on a machine without a fault (tests/vm/lib/faults.py).
# tests/torture/faults.sh has them all. FAULTS="seed=7 sample=20" are its words.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
read -ra words </vmtest/faults-words
[ ${#words[@]} -gt 0 ] || words=(seed=1 sample=5 "scenes=devices,run")
exec python3 /vmtest/faults.py "${words[@]}"
