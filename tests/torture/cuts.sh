#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cuts the power fifty times, at random moments of whole boots: up to nine times in each machine, two machines at a time
# (tests/vm/lib/any_cuts.py). CUTS_SEED=7 gives other moments.
set -u; here=$(realpath "$(dirname "$0")/.."); W=$(mktemp -d) || exit 1; trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
seed=${CUTS_SEED:-$RANDOM} cuts=0 count=0 bad=0
one() { CUTS="cuts=9 seed=$1" "$here/run/boot.sh" "$here/vm/any-cuts.sh" >"$W/$1" 2>&1; }
for ((round = 0; cuts < 50 && round < 24; round += 2)); do
        one $((seed + round)) & one $((seed + round + 1)) & wait
        for n in $((seed + round)) $((seed + round + 1)); do
                while IFS= read -r line; do
                        case $line in
                        'ok '*) count=$((count + 1)); echo "ok $count - ${line#* - }";;
                        'not ok '*) count=$((count + 1)) bad=1; echo "not ok $count - ${line#* - }";;
                        '# figure: '*) words=${line#\# figure: }; cuts=$((cuts + ${words%% *})); echo "$words" >>"${FIGURES:-/dev/null}"; echo "$line";;
                        '1..0'*) echo "1..0 # SKIP ${line#*SKIP }"; exit 0;;
                        '#'*) echo "$line";;
                        esac
                done <"$W/$n"
        done
done
count=$((count + 1))
if [ $cuts -ge 50 ]; then echo "ok $count - the campaign has $cuts power cuts"; else bad=1; echo "not ok $count - the campaign has $cuts power cuts, want 50"; fi
echo "1..$count"; exit $bad
