#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -t 600
# interfaces: 3 --type trn1.32xlarge --count 4 --subnets 2 --addresses 2
# tree: interfaces interfaces_named interfaces_alone enabled storage_stubs
# No metadata for the first 30 s of a boot; interfaces that go too soon, come late, or get several events at once.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/interfaces_bad.py
