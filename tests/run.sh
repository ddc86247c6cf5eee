#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run.sh TEST...
# Runs each test program (its output is TAP), shows what failed and what was skipped and why, and ends with one line of counts.
# A program that dies, or prints no plan, or fewer results than planned, counts as a failure. -v as first argument shows all.
verbose=; [ "${1-}" != -v ] || { verbose=1; shift; }
passed=0 failed=0 skipped=0
for t; do
        out=$("$t" 2>&1); rc=$?
        [ -z "$verbose" ] || printf '%s\n' "$out"
        read -r p f s n <<<"$(awk '
                /^1\.\.[0-9]+/ { plan = substr($1, 4); if (/# *[Ss][Kk][Ii][Pp]/) whole = 1 }
                /^ok / { if (/# *SKIP/) s++; else p++ }
                /^not ok / { f++ }
                END { if (whole) s++; else if (plan == "" || p + s + f != plan || plan == 0) f++; print p + 0, f + 0, s + 0, plan + 0 }' <<<"$out")"
        [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        if [ "$f" -gt 0 ]; then
                echo "FAIL ${t#"$PWD"/} (exit $rc, $n planned)"; grep -v '^ok ' <<<"$out" | tail -60 | sed 's/^/    /'
        elif [ "$s" -gt 0 ]; then
                echo "ok   ${t#"$PWD"/} ($p)"; grep -iE '# *skip' <<<"$out" | sed 's/^/    /'
        else echo "ok   ${t#"$PWD"/} ($p)"; fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
