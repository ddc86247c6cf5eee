#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled endurance
# The short form of tests/torture/endurance/container.sh: signals in a phase, several inits at once, processes killed as for lack of memory.
[ -d /vmtest ] || PARTS="${PARTS-signals together killed}" SIGNALS="${SIGNALS-TERM KILL}" exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/container.sh
