#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/tap.sh [-v] [-j N] TEST...
# Runs each test program (its output is TAP), shows what failed and what was skipped and why, and ends with one line of counts.
# A program that dies, or prints no plan, or fewer results than planned, counts as a failure. -v shows all; -j runs N at a time and
# tells of each as it ends.
verbose='' jobs=1
while :; do case ${1-} in -v) verbose=1;; -j) jobs=$2; shift;; *) break;; esac; shift; done
passed=0 failed=0 skipped=0 running=0; declare -A names
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT

judge() {       # TEST EXIT, its output on stdin
        local t=$1 rc=$2 out p f s n; out=$(cat)
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
}
one_ends() { local pid=; wait -n -p pid; running=$((running - 1)); judge "${names[$pid]}" "$(cat "$W/$pid.rc")" <"$W/$pid"; rm "$W/$pid" "$W/$pid.rc"; }
for t; do
        [ "$running" -lt "$jobs" ] || one_ends
        (me=$BASHPID; exec >"$W/$me" 2>&1; "$t"; echo $? >"$W/$me.rc") &      # it never dies of a signal itself, so that wait knows it
        names[$!]=$t running=$((running + 1))
done
while [ "$running" -gt 0 ]; do one_ends; done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
