#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/tap.sh [-v] [-j N] [-w "TEST..."] TEST...
# Runs each test program (its output is TAP). Shows failures, skips with their reasons, and the seconds of each. Ends with one line of counts.
# A program that dies, or prints no plan, or fewer results than planned, counts as a failure. -v shows all. -j runs N at a time, the
# slowest of the last time first, and reports each as it ends. Those of -w mostly wait, and run beside the others, twice as many at a time.
# A file that fails runs once more, alone, when the others are done. The second verdict counts, and the lines before the counts name each
# file that passes then. Two files may have that, and none with -v, nor where a second try would hide something (never_again).
# Environment: NODESTRAP_TEST_TRIES=1 (no second try), NODESTRAP_TEST_LIMIT=SECONDS (what takes longer fails). JSON=FILE (an object a line for each file, and one with the sums). From proof.sh:
# NODESTRAP_TEST_PROOF (a directory for what the suites of one proof share), NODESTRAP_TEST_SUITE, NODESTRAP_TEST_PROGRESS=1 (stdout
# leads to a terminal).
verbose='' jobs=1 waiting=()
while :; do case ${1-} in -v) verbose=1;; -j) jobs=$2; shift;; -w) read -ra waiting <<<"$2"; shift;; *) break;; esac; shift; done
W=$(mktemp -d) || exit 1; trap 'rm -rf "$W"' EXIT; trap stop HUP INT TERM
cache=${NODESTRAP_TEST_CACHE:-/var/cache/nodestrap-test} proof=${NODESTRAP_TEST_PROOF:-$W} suite=${NODESTRAP_TEST_SUITE-} json=${JSON-}
progress=${NODESTRAP_TEST_PROGRESS-}; [ -n "$progress" ] || { [ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && progress=1; }
[ -z "$verbose" ] || progress='' NODESTRAP_TEST_TRIES=1
export -n JSON NODESTRAP_TEST_PROOF NODESTRAP_TEST_SUITE NODESTRAP_TEST_PROGRESS     # a test that starts this script has its own
mkdir -p "$proof" && { [ -z "$json" ] || [ "$proof" != "$W" ] || : >"$json"; } || exit 1
[ -z "$json" ] || [ "$proof" = "$W" ] || json=$proof/json        # proof.sh hands it on: not all of a proof sees the same files
passed=0 failed=0 skipped=0 ended=0 try=1 again=() late=() tries=''
declare -A names lane begun running=([turn]=0 [beside]=0) queued=([turn]=0 [beside]=0) usual first said kept
# shellcheck source=tests/run/tap/progress.sh
. "${BASH_SOURCE[0]%/*}/tap/progress.sh"
# shellcheck source=tests/run/tap/tries.sh
. "${BASH_SOURCE[0]%/*}/tap/tries.sh"

json_string() {
        local s i c; s=$(iconv -c -f UTF-8 -t UTF-8 <<<"$1" 2>/dev/null) || [ -n "$s" ] || s=$1
        s=${s//\\/\\\\} s=${s//\"/\\\"}
        for i in {1..31} 127; do printf -v i %02x "$i"; printf -v c "\\x$i"; s=${s//"$c"/"\\u00$i"}; done; echo "\"$s\""
}
to_json() { [ -z "$json" ] || printf '{%s%s"passed": %d, "failed": %d, "skipped": %d, "seconds": %s%s}\n' "$1" "${suite:+\"suite\": $(json_string "$suite"), }" "${@:2}" >>"$json"; }
count() {       # TEST PASSED FAILED SKIPPED SECONDS
        passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4)) ended=$((ended + 1))
        [ "$3" -gt 0 ] || printf '%s\t%s\n' "$5" "$1" >>"$W/took"
        [ -z "$json" ] || to_json "\"name\": $(json_string "$1"), " "${@:2:4}" ", \"try\": $try"
}
failures() { plain "$1" | grep -av '^ok ' | tail -60 | sed 's/^/    /'; }
judge() {       # TEST EXIT SECONDS OUTPUT
        local t=${1#"$PWD"/} rc=$2 took=$3 p f s n never why=''
        [ -z "$verbose" ] || cat "$4"
        read -r p f s n <<<"$(plain "$4" | awk '
                /^1\.\.[0-9]+/ { plan = substr($1, 4); if (/# *[Ss][Kk][Ii][Pp]/) whole = 1 }
                /^ok / { if (/# *SKIP/) s++; else p++ }
                /^not ok / { f++ }
                END { if (whole) s++; else if (plan == "" || p + s + f != plan || plan == 0) f++; print p + 0, f + 0, s + 0, plan + 0 }')"
        [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
        [ "$f" = 0 ] || why=$(no_room)
        if [ "$try" = 2 ]; then keep "$4" "${t//\//_}.2"; kept["$t"]+=" $REPLY" why="; second try$why"
        elif [ "$f" = 0 ] || [ "${NODESTRAP_TEST_TRIES:-2}" = 1 ]; then :
        elif never=$(never_again "$@"); then why="; no second try: $never$why"
        else
                echo "AGAIN $t (exit $rc, $n planned, $took s; it runs once more when the others are done)"; failures "$4"
                keep "$4" "${t//\//_}.1"; kept["$t"]=$REPLY
                again+=("$1") said["$t"]=$(says_first "$rc" "$n" "$4") first["$t"]="$p $f $s $took"
                return
        fi
        count "$t" "$p" "$f" "$s" "$took"
        if [ "$f" -gt 0 ]; then
                echo "FAIL $t (exit $rc, $n planned, $took s$why)"; failures "$4"
        else
                echo "ok   $t ($p, $took s$why)"
                [ "$s" = 0 ] || plain "$4" | grep -aiE '# *skip' | sed 's/^/    /'
                [ "$try" = 1 ] || late+=("passed at the second try: $t (${said["$t"]})")
        fi
        [ "$try" = 1 ] || echo "    both outputs: ${kept["$t"]}"
}
one_ends() {
        local pid='' status rc took
        wait -n -p pid 2>/dev/null; status=$?
        [ -n "$pid" ] || read -r pid _ <<<"${!names[*]}"        # none is left to wait for
        [ -n "${names[$pid]-}" ] || return
        read -r rc took 2>/dev/null <"$W/$pid.end" || rc=$status took=$((SECONDS - begun[$pid])).0        # the shell around it died, too
        clear_status; judge "${names[$pid]}" "$rc" "$took" "$W/$pid"
        rm -f "$W/$pid" "$W/$pid.end"; running[${lane[$pid]}]=$((running[${lane[$pid]}] - 1)); unset "names[$pid]"
        show_status
}
# A shell around each test outlives it, whatever signal that dies of. It leads a session, because background processes ignore ^C. With the
# session a test ends with all that it has started, as it does when it ends by itself.
# shellcheck disable=SC2016 # for that shell
one='begin=${EPOCHREALTIME//[!0-9]/}
exec >"$1/$$" 2>&1
timeout --foreground -k 30 "${NODESTRAP_TEST_LIMIT:-0}" "$2"
rc=$? took=$(((${EPOCHREALTIME//[!0-9]/} - begin + 50000) / 100000))
echo "$rc $((took / 10)).$((took % 10))" >"$1/$$.end"
trap "" TERM; kill -TERM 0'
begin() {       # LANE TEST
        setsid bash -c "$one" "$0" "$W" "$2" &
        names[$!]=$2 lane[$!]=$1 begun[$!]=$SECONDS running[$1]=$((running[$1] + 1))
        expected "$2"; queued[$1]=$((queued[$1] - REPLY)); show_status
}
stop() {        # after ^C: tests may clear up, for half a minute, or until the next ^C
        local pid deadline=$((SECONDS + 30)); trap 'deadline=0' HUP INT TERM; clear_status
        for pid in "${!names[@]}"; do kill -TERM -- "-$pid"; done
        for pid in "${!names[@]}"; do while kill -0 -- "-$pid" && [ "$SECONDS" -lt "$deadline" ]; do sleep .1; done; kill -KILL -- "-$pid"; done
        exit 130
} 2>/dev/null

recall "${waiting[@]}" "$@"; total=$((${#waiting[@]} + $#)) queue=("$@")
if [ "$jobs" -gt 1 ]; then mapfile -t queue < <(longest_first "$@"); mapfile -t waiting < <(longest_first "${waiting[@]}"); fi
for t in "${queue[@]}"; do expected "$t"; queued[turn]=$((queued[turn] + REPLY)); done
for t in "${waiting[@]}"; do expected "$t"; queued[beside]=$((queued[beside] + REPLY)); done
while [ $((${#waiting[@]} + ${#queue[@]})) -gt 0 ]; do
        if [ "${#waiting[@]}" -gt 0 ] && [ "${running[beside]}" -lt $((2 * jobs)) ]; then begin beside "${waiting[0]}"; waiting=("${waiting[@]:1}")
        elif [ "${#queue[@]}" -gt 0 ] && [ "${running[turn]}" -lt "$jobs" ]; then begin turn "${queue[0]}"; queue=("${queue[@]:1}")
        else one_ends; fi
done
while [ "${#names[@]}" -gt 0 ]; do one_ends; done
for t in "${again[@]}"; do
        if may_try_again; then try=2; begin turn "$t"; while [ "${#names[@]}" -gt 0 ]; do one_ends; done
        else
                try=1 t=${t#"$PWD"/}; read -r p f s took <<<"${first["$t"]}"; count "$t" "$p" "$f" "$s" "$took"; clear_status
                echo "FAIL $t (${said["$t"]}): more than two files want a second try; its output: ${kept["$t"]}"
        fi
done
clear_status; remember
[ "${#late[@]}" = 0 ] || printf '%s\n' "${late[@]}" | tee -a "$proof/late"
to_json '' "$passed" "$failed" "$skipped" "$SECONDS"
echo "$passed passed, $failed failed, $skipped skipped"
# Skipping all is not a failure where parts may be missing.
[ "$failed" = 0 ] && { [ "$passed" -gt 0 ] || { [ "$skipped" -gt 0 ] && [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ]; }; }
