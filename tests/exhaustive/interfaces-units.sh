#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 0 -t 600
# interfaces: 3 --type trn1.32xlarge --count 3 --subnets 2
# tree: interfaces interfaces_named enabled storage_stubs
# The units of interfaces that are stopped by hand, that get other names, and that get their own back at once.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/interfaces_units.py
