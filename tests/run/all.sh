#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that CI runs, one suite after the other; each ends with a line of counts, and the last line is their sum. A suite that
# ends without such a line counts as one failure. SUITES="gcc lint" runs only those.
export NODESTRAP_LONG=1   # also what takes a minute to fail
set -u; cd "$(dirname "$0")/../.." || exit 1; passed=0 failed=0 skipped=0
suite_gcc()      { make --no-print-directory -j"$(nproc)" CC=gcc WERROR=1 check; }
suite_clang()    { make --no-print-directory -j"$(nproc)" CC=clang WERROR=1 O=build-clang check; }
suite_san()      { make --no-print-directory -j"$(nproc)" SAN=1 check; }
suite_valgrind() { tests/run/tap.sh tests/run/valgrind.sh; }
suite_lint()     { tests/run/tap.sh tests/run/lint.sh; }
suite_package()  { make --no-print-directory package; }
suite_boot()     { make --no-print-directory check-boot; }
suite_vm()       { make --no-print-directory check-vm; }

# What several suites share is made before the first of them, or that one would have to do without. What cannot be made here is told
# by each test that wants it.
echo "== images"
for suite in bookworm trixie; do tests/tools/vmboot.sh --build -S $suite; done
tests/tools/vmboot.sh --build -S trixie -a "$(sed -n 's/^# run: .* -a \([^ ]*\).*/\1/p' tests/boot/token-equality.sh)"
(. tests/tools/lib.sh; [ -e "$BASE/containerd2/usr/bin/containerd" ] || tests/tools/peers.sh sid "$BASE/containerd2" containerd)

log=$(mktemp); trap 'rm -f "$log"' EXIT
for suite in ${SUITES:-gcc clang san valgrind lint package boot}; do   # vm: half an hour of machines, make check-vm
        echo "== $suite"; begin=$SECONDS
        "suite_$suite" 2>&1 | tee "$log"; rc=${PIPESTATUS[0]}
        if [[ $(tail -1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
                p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
                [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
        else
                p=0 f=1 s=0
                # make has said why after the counts of the suite, or there never were any
                c=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -1)
                [[ ! $c =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+) ]] || { p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}; [ "$f" -gt 0 ] || f=1; }
        fi
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)); results+="$suite: $p passed, $f failed, $s skipped, $((SECONDS - begin)) s"$'\n'
done
printf '== all\n%s' "${results-}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
