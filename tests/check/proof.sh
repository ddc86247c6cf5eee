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
ok "each file is there" none "$("$proof" --files all | while read -r f; do [ -x "$f" ] || echo "$f"; done)"
ok "each suite is one of proof.sh" none "$(rows | awk '$3 !~ "/" { print $3 }' | while read -r s; do grep -q "^suite_$s()" "$proof" || echo "$s"; done)"
ok "no suite of proof.sh is run by nothing" none "$(sed -n 's/^suite_\([a-z0-9-]*\)().*/\1/p' "$proof" | while read -r s; do
        rows | grep -q " $s\$" || [[ " files $(sed -n 's/^everyday).*SUITES:-\([^}]*\)}.*/\1/p' "$proof") " = *" $s "* ]] || echo "$s"; done)"
ok "each test of tests/exhaustive has a row" none "$(comm -23 <(printf '%s\n' tests/exhaustive/*.sh | sort) <("$proof" --files all | sort))"
ok "the parts count from 1" [ "$("$proof" --parts | xargs)" = "$(seq "$("$proof" --parts | wc -l)" | xargs)" ]
# Three files at a time take about half of their sum; a suite has both CPUs.
too_long() { rows | awk '{ s[$1] += $3 ~ "/" ? $2 / 2 : $2 } END { for (p in s) if (s[p] > 25 * 60) printf "part %d: %d s\n", p, s[p] }'; }
ok "each part takes 25 minutes at most" none "$(too_long)"
ok "CI runs one of them next" [ "$("$proof" --parts | grep -cx "$(cat .ci/part)")" = 1 ]

# In a copy, for it writes.
mkdir -p "$tmp/tree/.ci" "$tmp/tree/tests/run" && cp "$proof" "$rest" "$tmp/tree/tests/run/"
moved() { echo "$1" >"$tmp/tree/.ci/part"; "$tmp/tree/$proof" --move; [ "$(cat "$tmp/tree/.ci/part")" = "$2" ] || { cat "$tmp/tree/.ci/part"; false; }; }
last=$("$proof" --parts | tail -n 1)
ok "the part after the first is the second" moved 1 2
ok "the part after the last is the first" moved "$last" 1
ok "a number that is not a part any more is followed by the first" moved 99 1
ok "a file that says nothing, too" moved '' 1
refused() { ! "$tmp/tree/$proof" rest "$1" >"$tmp/said" 2>&1 && grep -q "^proof.sh: part $1: tests/run/rest has no such part; it has 1 " "$tmp/said" || { cat "$tmp/said"; false; }; }
ok "a part that is not there is told" refused 99
# One suite of a part that a stub of make runs: its line of counts is what counts.
stub() {        # OUTPUT STATUS
        mkdir -p "$tmp/bin" "$tmp/tree/src"; printf '#!/bin/sh\necho "%s"\nexit %s\n' "$1" "$2" >"$tmp/bin/make"; chmod +x "$tmp/bin/make"
        printf '#!/bin/sh\n' | tee "$tmp/tree/tests/run/images.sh" >/dev/null; chmod +x "$tmp/tree/tests/run/images.sh"
        SUITES="valgrind lint" PATH=$tmp/bin:$PATH "$tmp/tree/$proof" everyday >"$tmp/said" 2>&1
}
ends() { [ "$(tail -n 1 "$tmp/said")" = "$1" ] || { cat "$tmp/said"; false; }; }
stub "3 passed, 0 failed, 1 skipped" 0; rc=$?
ok "the last line is the sum of all suites" ends "6 passed, 0 failed, 2 skipped"
ok "and all is well" [ $rc = 0 ]
stub "3 passed, 0 failed, 1 skipped" 2; rc=$?
ok "a suite that fails behind its counts is a failure" ends "6 passed, 2 failed, 2 skipped"
ok "and so ends the proof" [ $rc != 0 ]
stub "it dies" 0; rc=$?
ok "a suite without counts is a failure" ends "0 passed, 2 failed, 0 skipped"
ok "whatever its status" [ $rc != 0 ]
done_testing
