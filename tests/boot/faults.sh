#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -d 1 -t 9000
# tree: storage storage_stubs faults
# Faults at calls of the configuration phase that change something, a sample of them (tests/vm/lib/faults.py, as tests/vm/faults.sh).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
read -ra words </vmtest/faults-words
[ ${#words[@]} -gt 0 ] || words=(seed=1 sample=5)
exec python3 /vmtest/faults.py container=1 "${words[@]}"
