#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The unit tests and the replay of every fuzzer's corpus under valgrind: one TAP line each. Uninitialised reads and leaks that the
# sanitizers do not see are failures.
set -u; cd "$(dirname "$0")/../.." || exit 1; count=0 bad=0; O=${O:-build}
# Debian 12's valgrind does not know openat2(2), by which every file is opened; the next release's does and runs here as it is.
. tests/tools/lib.sh; new=$BASE/valgrind
[ -x "$new/usr/bin/valgrind" ] || why=$(tests/tools/peers.sh trixie "$new" valgrind 2>&1) || {
        [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && { echo "1..1"; echo "not ok 1 - no valgrind here: $why"; exit 1; }; echo "1..0 # SKIP no valgrind here: ${why##*skip: }"; exit 0; }
# It runs vfork() as fork() and so hides that a program could not be executed: tests of that look at this variable.
export NODESTRAP_VALGRIND=1 VALGRIND_LIB=$new/usr/libexec/valgrind
make -s -j"$(nproc)" O="$O" test-programs >&2 || { echo "1..1"; echo "not ok 1 - make"; exit 1; }
W=$(mktemp); trap 'rm -f "$W"' EXIT; export NODESTRAP=$PWD/$O/nodestrap
for t in "$O"/tests/unit/test-* "$O"/tests/fuzz/fuzz-*; do
        [ -x "$t" ] && [ -f "$t" ] || continue
        count=$((count + 1))
        if "$new/usr/bin/valgrind" -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --child-silent-after-fork=yes "$t" >"$W" 2>&1; then echo "ok $count - ${t#"$O"/}"
        else bad=1; echo "not ok $count - ${t#"$O"/}"; tail -30 "$W" | sed 's/^/# /'; fi
done
echo "1..$count"; exit $bad
