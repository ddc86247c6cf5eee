#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: proof.sh everyday           the everyday proof: what README calls the tests, and what CI runs first
#        proof.sh rest [PART]        what that leaves out: one part of tests/run/rest, or one part after the other
#        proof.sh --parts            the numbers of the parts
#        proof.sh --files PART       the test files of a part; PART "all" has those of each part
#        proof.sh --move             moves the number in .ci/part on, to the part that CI runs next
# Each runs suite after suite, prints a line for each as it ends, and ends with the sum: "N passed, N failed, N skipped". A suite that ends
# without a line of counts is one failure. SUITES="san lint" runs only those. Before the sums it names again the files that passed at a second
# try (tap.sh). JSON=FILE gets an object a line for each file, and one for all.
export NODESTRAP_LONG=1   # also what takes a minute to fail
set -u; cd "$(dirname "$0")/../.." || exit 1
rows() { awk -v part="$1" '!/^(#|$)/ && (part == "all" || $1 == part) { print $3 }' tests/run/rest; }     # PART: its files and suites
parts() { awk '!/^(#|$)/ { print $1 }' tests/run/rest | sort -nu; }
case ${1-} in
everyday)       WHAT=everyday SUITES=${SUITES:-san plain lint package guests} PART='';;
rest)           WHAT=rest PART=${2-};;
--parts)        parts; exit;;
--files)        rows "$2" | grep /; exit;;
--move)         now=$(cat .ci/part); { parts | awk -v now="$now" '$1 > now'; parts; } | head -1 >.ci/part.new && mv .ci/part.new .ci/part; exit;;
*)              sed -n 's/^# \(usage\|      \)/\1/p' "$0"; exit 2;;
esac
if [ $WHAT = rest ]; then
        if [ -z "$PART" ]; then         # each with suites of its own; the sum of all comes last
                W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; bad=0
                for PART in $(parts); do "$0" rest "$PART" 2>&1 | tee -a "$W/log"; [ "${PIPESTATUS[0]}" = 0 ] || bad=1; done
                awk '/^part [0-9]+: / { p += $3; f += $5; s += $7 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$W/log"
                exit $bad
        fi
        [ -n "$(rows "$PART")" ] || { echo "proof.sh: part $PART: tests/run/rest has no such part; it has $(parts | xargs)" >&2; exit 2; }
        SUITES=${SUITES:-$(rows "$PART" | awk '/\// { files = "files" } !/\// { print } END { print files }' | xargs)}
fi

make() { command make --no-print-directory -j"$(nproc)" "$@"; }
mapfile -t REST < <(rows all | grep /)
suite_san()             { make SAN=1 WERROR=1 check LEFT_OUT="${REST[*]}"; }
suite_plain()           { make WERROR=1 check-plain; }
suite_lint()            { make lint; }
suite_package()         { make package TWICE=; }
suite_guests()          { NODESTRAP_TEST_NO_BUILD=$unmade make check-guests LEFT_OUT="${REST[*]}"; }
suite_files()           { NODESTRAP_TEST_NO_BUILD=$unmade make check-files T="$(rows "$PART" | grep / | xargs)"; }
suite_gcc()             { make CC=gcc WERROR=1 check; }
suite_clang()           { make CC=clang WERROR=1 O=build-clang check; }
suite_valgrind()        { make valgrind; }
suite_whole-lint()      { make lint FULL=1; }
suite_package-twice()   { make package TWICE=1; }
suite_arm64()           { make check-arm64 ARM64="check-emulated ARM64_CHECKS=all"; }
suite_arm64-san()       { make check-arm64 ARM64="SAN=1 check-unit"; }
suite_arm64-types()     { make check-arm64 ARM64="check-files T=tests/arm64/plans.sh TYPES=all"; }

passed=0 failed=0 skipped=0 W=$(mktemp -d) images='' results='' json=${JSON-}
# The runs of tap.sh share this. It is in the cache, since the root where programs for arm64 run has that, too.
cache=${NODESTRAP_TEST_CACHE:-/var/cache/nodestrap-test}; mkdir -p "$cache" 2>/dev/null
NODESTRAP_TEST_PROOF=$(mktemp -d "$cache/proof.XXXXXX" 2>/dev/null || mktemp -d) || exit 1; export NODESTRAP_TEST_PROOF
[ -z "$json" ] || : >"$json" || exit 1
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then export NODESTRAP_TEST_PROGRESS=1; fi
trap '[ -z "$images" ] || kill -- "-$images" 2>/dev/null; rm -rf "$W" "$NODESTRAP_TEST_PROOF"' EXIT; trap 'exit 130' INT TERM
# Guests and Kubernetes are made beside the first suites, with what those leave of the processors. A test that wants one before it is there
# waits for it. Each test that wants what cannot be made here tells so; what takes minutes to fail, as Kubernetes does, is not tried again.
export NODESTRAP_TEST_NO_BUILD=0; unmade=0
export NODESTRAP_TEST_LIMIT=${NODESTRAP_TEST_LIMIT-1800}         # a file that hangs is a failure of that file, and not of the run
guests() {      # the scripts that a guest or a cluster is for
        case $WHAT in
        everyday)       printf '%s\n' tests/{boot,vm,cluster}/*.sh | grep -vxF "$(printf '%s\n' "${REST[@]}")";;
        rest)           rows "$PART" | grep /; case " $SUITES " in *" arm64"*|*" package-twice "*) echo arm64;; esac;;
        esac
}
: >"$W/images"; guests | setsid sh -c '{ echo 10 >/proc/self/autogroup; } 2>/dev/null; exec nice xargs tests/run/images.sh' >"$W/images" 2>&1 & images=$!

run_suite() {   # NAME
        local begin=$SECONDS rc counts p=0 f=1 s=0
        echo "== $1"
        NODESTRAP_TEST_SUITE=$1 "suite_$1" 2>&1 | tee "$W/log"; rc=${PIPESTATUS[0]}
        # after the counts of a suite make may say why it ends
        counts=$(sed 's/.*\r\x1b\[K//' "$W/log" | grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' | tail -1)
        if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
                p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
                [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
        fi
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        counts="$1: $p passed, $f failed, $s skipped, $((SECONDS - begin)) s"; results+=$counts$'\n'; echo "== $counts"
        [ -z "$json" ] || cat "$NODESTRAP_TEST_PROOF/json" >>"$json" 2>/dev/null; rm -f "$NODESTRAP_TEST_PROOF/json"
}
for suite in $SUITES; do
        case $suite in package*|guests|files|arm64*)
                [ -z "$images" ] || { wait "$images" || unmade=1; images=; }        # by the end its number may be another process's
                [ ! -s "$W/images" ] || { echo "== images"; cat "$W/images"; : >"$W/images"; };;
        esac
        run_suite "$suite"
done
printf '== all\n%s%s\n' "$results" "in all: $((SECONDS / 60)) min $((SECONDS % 60)) s"
[ -z "$json" ] || echo "{\"passed\": $passed, \"failed\": $failed, \"skipped\": $skipped, \"seconds\": $SECONDS}" >>"$json"
[ ! -e "$NODESTRAP_TEST_PROOF/late" ] || cat "$NODESTRAP_TEST_PROOF/late"
[ -z "$PART" ] || echo "part $PART: $passed passed, $failed failed, $skipped skipped"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
