#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/tap.sh [-v] [-j N] [-w "TEST..."] TEST...
# Runs each test program (its output is TAP), shows what failed and what was skipped and why, and how many seconds each took, and ends
# with one line of counts. A program that dies, or prints no plan, or fewer results than planned, counts as a failure. -v shows all;
# -j runs N at a time and tells of each as it ends; what -w names mostly waits, and is run beside those, twice as many at a time.
verbose='' jobs=1 waiting=()
while :; do case ${1-} in -v) verbose=1;; -j) jobs=$2; shift;; -w) read -ra waiting <<<"$2"; shift;; *) break;; esac; shift; done
passed=0 failed=0 skipped=0; declare -A names lane running=([turn]=0 [beside]=0)
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
trap 'for pid in "${!names[@]}"; do kill -- "-$pid"; done 2>/dev/null; exit 130' HUP INT TERM

judge() {       # TEST EXIT SECONDS, its output on stdin
        local t=${1#"$PWD"/} rc=$2 took=$3 out p f s n; out=$(cat)
        [ -z "$verbose" ] || printf '%s\n' "$out"
        read -r p f s n <<<"$(awk '
                /^1\.\.[0-9]+/ { plan = substr($1, 4); if (/# *[Ss][Kk][Ii][Pp]/) whole = 1 }
                /^ok / { if (/# *SKIP/) s++; else p++ }
                /^not ok / { f++ }
                END { if (whole) s++; else if (plan == "" || p + s + f != plan || plan == 0) f++; print p + 0, f + 0, s + 0, plan + 0 }' <<<"$out")"
        [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        if [ "$f" -gt 0 ]; then
                echo "FAIL $t (exit $rc, $n planned, $took s)"; grep -v '^ok ' <<<"$out" | tail -60 | sed 's/^/    /'
                return
        fi
        echo "ok   $t ($p, $took s)"
        [ "$s" = 0 ] || grep -iE '# *skip' <<<"$out" | sed 's/^/    /'
}
one_ends() {
        local pid='' rc took
        wait -n -p pid
        read -r rc took <"$W/$pid.end"
        judge "${names[$pid]}" "$rc" "$took" <"$W/$pid"
        rm "$W/$pid" "$W/$pid.end"; running[${lane[$pid]}]=$((running[${lane[$pid]}] - 1)); unset "names[$pid]"
}
# A shell around each test outlives it, whatever signal that dies of. It leads a session: what runs in the background ignores ^C, and
# with the session a test ends with all that it has started.
# shellcheck disable=SC2016 # for that shell
one='begin=$EPOCHREALTIME
exec >"$1/$$" 2>&1
"$2"
rc=$?
awk -v rc=$rc -v a="$begin" -v b="$EPOCHREALTIME" "BEGIN { printf \"%d %.1f\\n\", rc, b - a }" >"$1/$$.end"'
begin() {       # LANE TEST
        setsid bash -c "$one" "$0" "$W" "$2" &
        names[$!]=$2 lane[$!]=$1 running[$1]=$((running[$1] + 1))
}
while [ $((${#waiting[@]} + $#)) -gt 0 ]; do
        if [ "${#waiting[@]}" -gt 0 ] && [ "${running[beside]}" -lt $((2 * jobs)) ]; then begin beside "${waiting[0]}"; waiting=("${waiting[@]:1}")
        elif [ $# -gt 0 ] && [ "${running[turn]}" -lt "$jobs" ]; then begin turn "$1"; shift
        else one_ends; fi
done
while [ "${#names[@]}" -gt 0 ]; do one_ends; done
echo "$passed passed, $failed failed, $skipped skipped"
# That all was skipped is no failure where something may be missing.
[ "$failed" = 0 ] && { [ "$passed" -gt 0 ] || { [ "$skipped" -gt 0 ] && [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ]; }; }
