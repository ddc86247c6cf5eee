#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: make valgrind (TESTS names the programs, WAITING those that mostly wait and run beside the others)
# The unit tests and the replay of every fuzzer's corpus under valgrind: one TAP line each. Uninitialised reads and leaks that the
# sanitizers do not see are failures.
set -u; cd "$(dirname "$0")/../.." || exit 1; read -ra tests <<<"${TESTS:?} ${WAITING-}"; n=0 bad=0
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
# Debian 12's valgrind does not know openat2(2), by which every file is opened; the next release's does and runs here as it is.
V=$(tests/tools/peers.sh --cached valgrind trixie valgrind 2>"$W/why") || {
        why=$(tail -1 "$W/why")
        [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] || { echo "1..1"; echo "not ok 1 - no valgrind here: $why"; exit 1; }
        echo "1..0 # SKIP no valgrind here: ${why##*skip: }"
        exit
}
# Tests of what it does otherwise than a CPU look at this variable.
export V W NODESTRAP_TRANSLATED=valgrind VALGRIND_LIB=$V/usr/libexec/valgrind
under() {       # TEST: its output and exit status below $W
        "$V/usr/bin/valgrind" -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --child-silent-after-fork=yes \
                "$1" >"$W/${1##*/}" 2>&1
        echo $? >"$W/${1##*/}.rc"
}
export -f under
all_of() { xargs -rn 1 -P "$(nproc)" bash -c 'under "$1"' under <<<"$1"; }
all_of "${WAITING-}" & all_of "$TESTS"; wait
for t in "${tests[@]}"; do
        n=$((n + 1))
        if [ "$(cat "$W/${t##*/}.rc")" = 0 ]; then echo "ok $n - $t"; continue; fi
        bad=1; echo "not ok $n - $t"; tail -30 "$W/${t##*/}" | sed 's/^/# /'
done
echo "1..$n"; exit $bad
