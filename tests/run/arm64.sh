#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/arm64.sh ARGUMENT...
# make with these arguments for arm64, in the root for cross builds (tests/tools/cross.sh), where programs for arm64 run, too. That root has
# no machines and containers. Tests that want them skip, and that is not a failure where all else is required: they run as x86-64.
set -u; cd "$(dirname "$0")/../.." || exit 1
why=$(tests/tools/cross.sh -x true 2>&1 >/dev/null) || {
        why="the programs for arm64 # SKIP $(sed -n 's/.*skip: //p' <<<"$why" | tail -1 | grep . || tail -1 <<<"$why")"
        if [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ]; then echo "    ok 1 - $why"; echo "0 passed, 0 failed, 1 skipped"; exit 0; fi
        echo "    not ok 1 - $why"; echo "0 passed, 1 failed, 0 skipped"; exit 1
}
# Make passes its variables on in the environment: this is another build.
unset NODESTRAP_LONG MAKEFLAGS MAKELEVEL MFLAGS SAN O CC AR NM CFLAGS CPPFLAGS LDFLAGS LDLIBS PKG_CONFIG
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}        # which looks for them by ptrace(2)
NODESTRAP_TEST_REQUIRE=0 exec tests/tools/cross.sh -x make --no-print-directory -j"$(nproc)" CC=aarch64-linux-gnu-gcc WERROR=1 "$@"
