#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/run/rest names each test once and cuts them into parts that CI has the time for; .ci/part is one of these.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2317  # tmp and here are of lib.sh, which calls what is defined here
. "$(dirname "$0")/../mock/lib.sh"
cd "$here/../.." || exit 1
rest=tests/run/rest proof=tests/run/proof.sh
rows() { grep -vE '^(#|$)' "$rest"; }
none() { [ -z "$1" ] || { echo "$1"; false; }; }        # TEXT: nothing is wrong

not_rows() { rows | grep -vE '^[0-9]+ +[0-9]+ +[a-z0-9]([a-z0-9-]*|[a-z0-9./-]*\.sh)$'; }
ok "a row is a part, seconds, and a test file or a suite" none "$(not_rows)"
ok "no test has two rows" none "$(rows | awk '{ print $3 }' | sort | uniq -d)"
ok "each file of a row exists and is executable" none "$("$proof" --files all | while read -r f; do [ -x "$f" ] || echo "$f"; done)"
ok "proof.sh has each suite of a row" none "$(rows | awk '$3 !~ "/" { print $3 }' | while read -r s; do grep -q "^suite_$s()" "$proof" || echo "$s"; done)"
ok "each suite of proof.sh has a row or is an everyday suite" none "$(sed -n 's/^suite_\([a-z0-9-]*\)().*/\1/p' "$proof" | while read -r s; do
        rows | grep -q " $s\$" || [[ " files $(sed -n 's/^everyday).*SUITES:-\([^}]*\)}.*/\1/p' "$proof") " = *" $s "* ]] || echo "$s"; done)"
ok "each test of tests/exhaustive has a row" none "$(comm -23 <(printf '%s\n' tests/exhaustive/*.sh | sort) <("$proof" --files all | sort))"
ok "the parts are numbered from 1 without a gap" [ "$("$proof" --parts | xargs)" = "$(seq "$("$proof" --parts | wc -l)" | xargs)" ]
# Three files at a time take about half of their sum; a suite has both CPUs.
too_long() { rows | awk '{ s[$1] += $3 ~ "/" ? $2 / 2 : $2 } END { for (p in s) if (s[p] > 25 * 60) printf "part %d: %d s\n", p, s[p] }'; }
ok "each part takes 25 minutes at most" none "$(too_long)"
ok ".ci/part names one of the parts" [ "$("$proof" --parts | grep -cx "$(cat .ci/part)")" = 1 ]

# A copy of the tree, because proof.sh writes to it.
mkdir -p "$tmp/tree/.ci" "$tmp/tree/tests/run" && cp "$proof" "$rest" "$tmp/tree/tests/run/"
moved() { echo "$1" >"$tmp/tree/.ci/part"; "$tmp/tree/$proof" --move; [ "$(cat "$tmp/tree/.ci/part")" = "$2" ] || { cat "$tmp/tree/.ci/part"; false; }; }
last=$("$proof" --parts | tail -n 1)
ok "--move selects part 2 after part 1" moved 1 2
ok "--move selects part 1 after the last part" moved "$last" 1
ok "--move selects part 1 after a number that is not a part any more" moved 99 1
ok "--move selects part 1 if .ci/part is empty" moved '' 1
refused() { ! "$tmp/tree/$proof" rest "$1" >"$tmp/said" 2>&1 && grep -q "^proof.sh: part $1: tests/run/rest has no such part; it has 1 " "$tmp/said" || { cat "$tmp/said"; false; }; }
ok "the error for an unknown part names the part and the valid parts" refused 99
# A stub of make prints the line of counts of a suite; proof.sh adds these lines.
stub() {        # OUTPUT STATUS
        mkdir -p "$tmp/bin" "$tmp/tree/src"; printf '#!/bin/sh\necho "%s"\nexit %s\n' "$1" "$2" >"$tmp/bin/make"; chmod +x "$tmp/bin/make"
        printf '#!/bin/sh\n' | tee "$tmp/tree/tests/run/images.sh" >/dev/null; chmod +x "$tmp/tree/tests/run/images.sh"
        SUITES="valgrind lint" PATH=$tmp/bin:$PATH "$tmp/tree/$proof" everyday >"$tmp/said" 2>&1
}
ends() { [ "$(tail -n 1 "$tmp/said")" = "$1" ] || { cat "$tmp/said"; false; }; }
stub "3 passed, 0 failed, 1 skipped" 0; rc=$?
ok "the last line is the sum of all suites" ends "6 passed, 0 failed, 2 skipped"
ok "the proof succeeds if all suites pass" [ $rc = 0 ]
stub "3 passed, 0 failed, 1 skipped" 2; rc=$?
ok "a suite that exits with an error after its counts is a failure" ends "6 passed, 2 failed, 2 skipped"
ok "the proof fails if a suite exits with an error" [ $rc != 0 ]
stub "it dies" 0; rc=$?
ok "a suite without counts is a failure" ends "0 passed, 2 failed, 0 skipped"
ok "the proof fails if a suite has no counts, although its exit status is 0" [ $rc != 0 ]
done_testing
