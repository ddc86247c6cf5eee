#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 0 -t 600
# interfaces: 5 --type trn1.32xlarge --count 7 --subnets 3 --addresses 2
# tree: interfaces enabled storage_stubs
# Boot after boot with other names for the same interfaces, and metadata that lags in another way (tests/vm/lib/interfaces_names.py).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/interfaces_names.py 8
