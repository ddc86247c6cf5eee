#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Coverage-guided fuzzing (https://llvm.org/docs/LibFuzzer.html) of every parser, with the sanitizers for addresses and undefined behaviour.
# FUZZ_SECONDS of CPU (7200) go to all of tests/fuzz, in turns, two at a time. The short form is the replay of the corpora
# in `make check`. New inputs stay in build-fuzz/corpus, where the next run begins. An input that crashes, leaks, hangs or takes too much
# memory stays in build-fuzz/found. At the end it prints how much of each file of src/ the corpora reach.
# FUZZ_ONLY="fuzz-toml fuzz-yaml": those alone. FUZZ_MERGE=1 adds inputs that reach something new to the corpora of the tree, at most 20 a
# fuzzer and less than 2 kB each. Read them before you commit them.
set -u; cd "$(dirname "$0")/../.." || exit 1
TOTAL=${FUZZ_SECONDS:-7200} B=build-fuzz COVERAGE=build-coverage
export TMPDIR=/dev/shm UBSAN_OPTIONS=print_stacktrace=1
mapfile -t all < <(for f in ${FUZZ_ONLY:-tests/fuzz/fuzz-*.c}; do basename "$f" .c; done)
skip() { echo "1..0 # SKIP $*"; [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] || { echo "not ok 1 - $*"; exit 1; }; exit 0; }
W=$(mktemp -d) || exit 1; trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n); int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n > 9; }' >"$W/a.c"
clang -fsanitize=fuzzer,address -o "$W/a" "$W/a.c" 2>/dev/null || skip "clang has no libFuzzer here: make deps-test"
nice make -j"$(nproc)" CC=clang O=$B "${all[@]/#/$B/fuzzers/}" >"$W/log" 2>&1 || { tail -n 20 "$W/log"; echo 'Bail out! the fuzzers cannot be built'; exit 1; }
# Words that a mutation would not find: keys of the configuration, and words of sysfs, AWS and Kubernetes from the corpora.
grep -ohE '"[A-Za-z]{4,24}"' conf/nodeconfig.schema.json | sort -u >"$W/config.dict"
for f in "${all[@]}"; do
        case $f in fuzz-decode | fuzz-plan | fuzz-source) cp "$W/config.dict" "$W/$f.dict"; continue;; esac
        grep -aohE '[A-Za-z_][A-Za-z_0-9-]{3,47}' "tests/fuzz/corpus/$f"/* | sort | uniq -c | sort -rn | awk 'NR <= 400 { print "\"" $2 "\"" }' >"$W/$f.dict"
done
mkdir -p "$B/found"; echo "1..$((${#all[@]} + 1))"

# NAME SECONDS: one turn; a line "executions CPU-seconds exit" to $W/NAME.
turn() {
        local f=$1 log="$W/$1.log" rc n cpu
        mkdir -p "$B/corpus/$f"
        ( TIMEFORMAT='cpu %U %S'
          time nice "$B/fuzzers/$f" -max_total_time="$2" -timeout=25 -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 -dict="$W/$1.dict" \
              -use_value_profile=$((RANDOM % 4 == 0)) -artifact_prefix="$B/found/$f-" "$B/corpus/$f" "tests/fuzz/corpus/$f"
        ) >"$log" 2>&1; rc=$?
        n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log"); cpu=$(awk '/^cpu / { print $2 + $3 }' "$log")
        echo "${n:-0} ${cpu:-0} $rc" >>"$W/$f"
        [ $rc = 0 ] || cp "$log" "$W/$f.bad"
}
spent() { cat "$W"/fuzz-* 2>/dev/null | awk 'NF == 3 && $1 ~ /^[0-9]+$/ { s += $2; n += $1 } END { printf "%d %d\n", s, n }'; }

# Turns are short, so that each fuzzer has had one if you end the run early. A fuzzer that found something gets no more turns.
slice=$((TOTAL / ${#all[@]} / 4)); slice=$((slice < 2 ? 2 : slice > 60 ? 60 : slice))
while :; do
        running=0 any=''
        for f in "${all[@]}"; do
                [ ! -e "$W/$f.bad" ] || continue
                read -r s _ < <(spent); [ "$s" -lt "$TOTAL" ] || break 2
                any=1
                if [ "$running" -ge "$(nproc)" ]; then wait -n; running=$((running - 1)); fi
                turn "$f" "$slice" & running=$((running + 1))
        done
        wait
        [ -n "$any" ] || break
done
wait
i=0
for f in "${all[@]}"; do
        i=$((i + 1)); read -r s n < <(awk '{ s += $2; n += $1 } END { printf "%d %d\n", s, n }' "$W/$f" 2>/dev/null)
        if [ ! -e "$W/$f.bad" ]; then echo "ok $i - $f finds no failure in ${n:-0} executions, ${s:-0} s"; continue; fi
        echo "not ok $i - $f: $(grep -m 1 -E '^SUMMARY|ERROR: |runtime error' "$W/$f.bad" || echo 'it died')"
        grep -E 'Test unit written|^ *#[0-9]+ .* in |runtime error' "$W/$f.bad" | head -n 20 | sed 's/^/# /'
done
read -r s n < <(spent)
[ -z "${FIGURES-}" ] || printf '%s\n' "$n executions of fuzzers" "$s CPU seconds of fuzzing" >>"$FIGURES"

# ---- additions to the corpora of the tree ----
if [ "${FUZZ_MERGE:-0}" = 1 ]; then
        for f in "${all[@]}"; do
                rm -rf "$W/new"; mkdir "$W/new" "$W/new/in" "$W/new/out"; cp "tests/fuzz/corpus/$f"/* "$W/new/out/"
                find "$B/corpus/$f" -type f -size -2048c -exec cp -t "$W/new/in" {} +
                nice "$B/fuzzers/$f" -merge=1 "$W/new/out" "$W/new/in" >/dev/null 2>&1
                find "$W/new/out" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -printf '%f\n' | sort | head -n 20 | while read -r name; do
                        cp "$W/new/out/$name" "tests/fuzz/corpus/$f/found-${name:0:8}"
                done
        done
fi

# ---- coverage ----
i=$((i + 1))
if ! command -v llvm-cov >/dev/null || ! command -v llvm-profdata >/dev/null; then
        echo "ok $i - llvm-cov reports the coverage # SKIP llvm is not installed"; exit 0
fi
if ! nice make -j"$(nproc)" CC=clang O=$COVERAGE CFLAGS='-O1 -g -fprofile-instr-generate -fcoverage-mapping' \
        "${all[@]/#/$COVERAGE/tests/fuzz/}" >"$W/log" 2>&1; then tail -n 20 "$W/log"; echo "not ok $i - llvm-cov reports the coverage: it cannot be built"; exit 1; fi
objects=()
for f in "${all[@]}"; do
        LLVM_PROFILE_FILE="$W/$f.%p.profraw" nice "$COVERAGE/tests/fuzz/$f" "tests/fuzz/corpus/$f" "$B/corpus/$f" >"$W/log" 2>&1 || tail -n 3 "$W/log" | sed 's/^/# /'
        objects+=(-object "$COVERAGE/tests/fuzz/$f")
done
llvm-profdata merge -sparse -o "$W/all.profdata" "$W"/*.profraw
llvm-cov export -summary-only -instr-profile "$W/all.profdata" "${objects[@]}" >"$W/coverage.json" 2>/dev/null
python3 - "$W/coverage.json" <<'EOF'
import json, sys
rows, unreached = [], 0
for f in json.load(open(sys.argv[1]))['data'][0]['files']:
    at = f['filename'].find('src/')
    if at < 0 or not f['filename'].endswith('.c'): continue
    lines, regions = f['summary']['lines'], f['summary']['regions']
    if lines['covered'] == 0: unreached += 1; continue
    rows.append((lines['covered'] / lines['count'], f['filename'][at:], lines, regions))
for part, name, lines, regions in sorted(rows):
    print(f"# {100 * part:5.1f} %  {lines['covered']:4} of {lines['count']:4} lines  {regions['covered']:4} of {regions['count']:4} regions  {name}")
total = {k: [sum(r[i][w] for r in rows) for w in ('covered', 'count')] for i, k in ((2, 'lines'), (3, 'regions'))}
for k, (covered, count) in total.items(): print(f"# {100 * covered / max(count, 1):.1f} %: {covered} of {count} {k} of the {len(rows)} files that a fuzzer reaches")
EOF
echo "ok $i - llvm-cov reports the coverage"
[ -z "$(ls "$W"/*.bad 2>/dev/null)" ]
