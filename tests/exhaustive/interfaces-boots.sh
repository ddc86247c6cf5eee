#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -t 600
# interfaces: 4 --type trn1.32xlarge --count 6 --subnets 2 --addresses 2
# tree: interfaces interfaces_named enabled storage_stubs
# As tests/vm/interfaces-boots.sh, with systemd 257.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/interfaces_boots.py
