#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each call of an init that changes something fails in each way, or is the last before a kill. All phases run in a container with one
# disk. Steps of arrays, huge pages and udev run again in virtual machines, two at a time (tests/vm/lib/faults.py). FAULTS_SHARDS=3: this many
# machines share the calls of a scene. FAULTS_SECONDS: each ends after that time; the order of the calls is random.
set -u; here=$(realpath "$(dirname "$0")/.."); W=$(mktemp -d) || exit 1; trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
shards=${FAULTS_SHARDS:-2} seconds=${FAULTS_SECONDS:-8500} scenes=(devices run reboot again) i=0 jobs=() count=0 bad=0
one() { FAULTS="$2 seconds=$seconds" "$here/run/boot.sh" "$here/$1" >"$W/$3" 2>&1; }
one boot/faults.sh order=random "$i" & jobs+=($!)
for scene in "${scenes[@]}"; do
        for ((shard = 1; shard <= shards; shard++)); do
                [ ${#jobs[@]} -lt 2 ] || { wait "${jobs[0]}"; jobs=("${jobs[@]:1}"); }
                i=$((i + 1)); one vm/faults.sh "order=random scenes=$scene shard=$shard/$shards" $i & jobs+=($!)
        done
done
wait
for ((n = 0; n <= i; n++)); do          # one report of all
        while IFS= read -r line; do
                case $line in
                'ok '*) count=$((count + 1)); echo "ok $count - ${line#* - }";;
                'not ok '*) count=$((count + 1)) bad=1; echo "not ok $count - ${line#* - }";;
                '# figure: '*) echo "${line#\# figure: }" >>"${FIGURES:-/dev/null}"; echo "$line";;
                '1..0'*) count=$((count + 1)); echo "ok $count - # SKIP ${line#*SKIP }";;
                '#'*) echo "$line";;
                esac
        done <"$W/$n"
done
echo "1..$count"; exit $bad
