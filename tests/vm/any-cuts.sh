#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -d 3 -e -t 600 -K CUT-HERE
# imds: imds-m5 storage-raid0
# tree: storage storage_units storage_stubs enabled containerd_enabled kubelet_enabled faults any_cuts
# The power goes at random moments of whole boots, each followed by one that ends right (tests/vm/lib/any_cuts.py); tests/torture/cuts.sh
# has many more. CUTS="cuts=9 seed=7" are its words; without, it goes once at a call of the run phase, with blank disks, and once at a time.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
read -ra words </vmtest/cuts-words
[ ${#words[@]} -gt 0 ] || words=(cuts=2 seed=111 calls=1)
exec python3 /vmtest/any_cuts.py "${words[@]}"
