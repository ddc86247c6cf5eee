#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 0 -t 600
# interfaces: 4 --type trn1.32xlarge --count 6 --subnets 2 --addresses 2
# tree: interfaces interfaces_named enabled storage_stubs
# Four network cards from power-on, those that come later, and a reboot at which they have each other's names.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/interfaces_boots.py
