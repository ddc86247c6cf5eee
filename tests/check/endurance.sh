#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The short form of tests/torture/endurance.sh: a hundred inits, two hundred retries in one process, services that
# flap for ten seconds, clocks that jump. With a systemd or a kernel of its own: tests/boot/endurance.sh, tests/vm/endurance.sh.
cd "$(dirname "$0")/../.." || exit 1
if [ -n "${NODESTRAP_TRANSLATED-}" ] || ldd "${NODESTRAP:-build/nodestrap}" 2>/dev/null | grep -qE 'lib(a|ub)san'; then
        echo '1..0 # SKIP nothing is preloaded beside a sanitizer or below a translator'; exit 0
fi
INITS=100 RETRIES=200 FLAPPING=10 ENDURANCE='inits retries flapping clocks' FIGURES=/dev/null exec tests/torture/endurance.sh
