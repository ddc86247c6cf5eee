#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The runner of the tests (tests/run/tap.sh): verdicts and counts, second tries and refused ones, output for machines and for a terminal. It
# leaves no process running.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
tap=$(realpath "$here/../run/tap.sh") cache=$tmp/cache status=''
unset JSON NODESTRAP_TEST_{TRIES,LIMIT,PROOF,SUITE,PROGRESS,REQUIRE} "${!GIT_@}"
export NODESTRAP_TEST_CACHE=$cache TMPDIR=$tmp/temporary GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 TERM=dumb
mkdir "$TMPDIR"

# Each group of tests has a directory: file NAME writes a test from stdin, and tap runs tests.
place() { mkdir -p "$tmp/$1/tests" && cd "$tmp/$1" || exit 1; }
file() { { echo '#!/bin/bash'; cat; } >"$1"; chmod 755 "$1"; }
good() { file "$1" <<<'echo 1..1; echo ok 1 - good'; }
bad() { file "$1" <<<'echo 1..1; echo not ok 1 - bad; exit 1'; }
# flaky NAME [LINE]: fails once, after that line
flaky() {
        file "$1" <<<'echo 1..2; echo "ok 1 - begins"; echo run >>"$0.runs"
if [ "$(wc -l <"$0.runs")" = 1 ]; then echo "not ok 2 - ends"; echo "# the door is shut"; '"${2-exit 1}"'; else echo "ok 2 - ends"; fi'
}
tap() { "$tap" "$@" >"$tmp/out" 2>&1; status=$?; }
# After it: exits STATUS, with COUNTS; said LINE…, ran TIMES NAME.
exits() { [ "$status" = "$1" ] && [ "$(tail -n 1 "$tmp/out")" = "$2" ] || { echo "exit $status"; cat "$tmp/out"; false; }; }
said() { local line; for line; do grep -qaE -- "^$line\$" "$tmp/out" || { echo "not said: $line"; cat "$tmp/out"; return 1; }; done; }
ran() { [ "$(wc -l <"$2.runs")" = "$1" ] || { cat "$2.runs" "$tmp/out"; false; }; }
took='[0-9]+\.[0-9] s'
until_true() { local end=$((SECONDS + 120)); until "$@"; do [ "$SECONDS" -lt "$end" ] || return 1; sleep .05; done; }
gone() { local pid; for pid in $(cat "$@"); do [ ! -e "/proc/$pid" ] || grep -qs '^State:.*Z' "/proc/$pid/status" || ! grep -qs . "/proc/$pid/status" || return 1; done; }

# Verdicts
place verdicts
good tests/good.sh; bad tests/bad.sh
file tests/short.sh <<<'echo 1..3; echo ok 1; echo ok 2'
file tests/planless.sh <<<'echo ok 1'
file tests/skip.sh <<<'echo 1..2; echo ok 1; echo "ok 2 - more # SKIP no disk here"'
file tests/skips.sh <<<'echo "1..0 # SKIP nothing here"'
tap tests/good.sh tests/skip.sh tests/skips.sh
ok 'the runner counts passed, failed and skipped tests' exits 0 '2 passed, 0 failed, 2 skipped'
ok 'the runner prints the time of each file and the reason of each skip' said "ok   tests/good.sh \(1, $took\)" "    ok 2 - more # SKIP no disk here" "    1\.\.0 # SKIP nothing here"
NODESTRAP_TEST_REQUIRE=1 tap tests/skips.sh
ok 'with NODESTRAP_TEST_REQUIRE=1, a file that skips everything is a failure' exits 1 '0 passed, 0 failed, 1 skipped'
tap tests/good.sh tests/bad.sh tests/short.sh
ok 'a file that fails twice is a failure, and a file short of its plan is one, too' exits 1 '3 passed, 2 failed, 0 skipped'
ok 'the runner prints both tries of a file that fails twice' said "AGAIN tests/bad.sh \(exit 1, 1 planned, $took; .*\)" "FAIL tests/bad.sh \(exit 1, 1 planned, $took; second try\)" "FAIL tests/short.sh \(exit 0, 3 planned, .*" '    not ok 1 - bad'
NODESTRAP_TEST_TRIES=1 tap tests/planless.sh
ok 'a file without a plan is a failure' exits 1 '1 passed, 1 failed, 0 skipped'
good 'tests/two words.sh'
tap -j 2 'tests/two words.sh' "$PWD/tests/good.sh"
ok 'a file name may have a space' exits 0 '2 passed, 0 failed, 0 skipped'
ok 'the path of a file may be absolute' said "ok   tests/two words.sh \(1, $took\)" "ok   tests/good.sh \(1, $took\)"

# Second tries
place tries
good tests/good.sh; flaky tests/flaky.sh
tap -j 2 tests/flaky.sh tests/good.sh
ok 'a file that fails once passes at its second try' exits 0 '3 passed, 0 failed, 0 skipped'
ok 'the runner says which file passed at the second try, and how it failed first' eval '[ "$(tail -n 2 "$tmp/out" | head -n 1)" = "passed at the second try: tests/flaky.sh (not ok 2 - ends, the door is shut)" ] || { cat "$tmp/out"; false; }'
ok 'second tries run after all other files' eval 'grep -n "^ok " "$tmp/out" | tail -n 1 | grep tests/flaky.sh'
read -r first second < <(sed -n 's/^    both outputs: //p' "$tmp/out")
ok 'the runner keeps the outputs of both tries' eval 'grep -x "# the door is shut" "$first" && grep -x "ok 2 - ends" "$second"'
ok 'both outputs are in the cache' eval '[[ $first = "$cache"/tries.??????/tests_flaky.sh.1 && $second = "${first%1}2" ]]'
old=${first%/*}; touch -d '8 days ago' "$old"
refused() { local name=$1 why=$2; ran 1 "tests/$name.sh" && exits 1 '1 passed, 1 failed, 0 skipped' && said "FAIL tests/$name.sh \(exit [0-9]+, 2 planned, $took${why:+; no second try: $why}\)"; }
report='it shows a report of a sanitizer or valgrind'
once() {        # NAME LINE WHY
        flaky "tests/$1.sh" "$2"; tap "tests/$1.sh"
        ok "a failure of the kind $1 gets no second try" refused "$1" "$3"
}
once address-sanitizer 'echo "# ==7==ERROR: AddressSanitizer: heap-use-after-free"; exit 1' "$report"
once undefined 'echo "src/a.c:1:2: runtime error: signed integer overflow"; exit 1' "$report"
once leak 'echo "==7==ERROR: LeakSanitizer: detected memory leaks"; exit 1' "$report"
once valgrind 'echo "# ==71== Invalid read of size 4"; exit 1' "$report"
once valgrind-exit 'exit 99' "$report"
once signal 'kill -SEGV $$' 'a signal ended it'
once killed-with-all 'kill -KILL 0' 'a signal ended it'
export NODESTRAP_TEST_LIMIT=1
once hangs 'sleep 600; exit 1' 'it may take 1 s'
unset NODESTRAP_TEST_LIMIT
flaky tests/by-hand.sh; tap -v tests/by-hand.sh
ok 'a file that a person runs with -v gets no second try' refused by-hand ''
flaky tests/counted.sh; NODESTRAP_TEST_TRIES=1 tap tests/counted.sh
ok 'no file gets a second try with NODESTRAP_TEST_TRIES=1' refused counted ''
for i in 1 2 3; do flaky "tests/flaky-$i.sh"; done
tap tests/flaky-{1,2,3}.sh
ok 'a third file that fails once is a failure' exits 1 '5 passed, 1 failed, 0 skipped'
ok 'the runner says that more than two files want a second try' said 'FAIL tests/flaky-3.sh \(not ok 2 - ends, the door is shut\): more than two files want a second try; .*' 'passed at the second try: tests/flaky-1.sh .*' 'passed at the second try: tests/flaky-2.sh .*'
ok 'the third file does not run again' ran 1 tests/flaky-3.sh
ok 'kept outputs are deleted after a week' [ ! -e "$old" ]
rm tests/*.runs; mkdir proof; export NODESTRAP_TEST_PROOF=$PWD/proof
tap tests/flaky-{1,2}.sh
ok 'two files of the first run of a proof pass at their second try' exits 0 '4 passed, 0 failed, 0 skipped'
tap tests/flaky-3.sh
ok 'the next run of the same proof has no second try left' exits 1 '1 passed, 1 failed, 0 skipped'
ok 'the proof records the files that passed at the second try' eval '[ "$(grep -c "^passed at the second try: tests/flaky-[12].sh " proof/late)" = 2 ] && [ "$(wc -l <proof/late)" = 2 ]'
unset NODESTRAP_TEST_PROOF
if unshare -m true 2>/dev/null; then
        mkdir full; flaky tests/flaky-4.sh
        NODESTRAP_TEST_TRIES=1 TMPDIR=$PWD/full unshare -m sh -c 'mount -t tmpfs -o size=1m none full && exec "$@"' sh "$tap" tests/flaky-4.sh >"$tmp/out" 2>&1; status=$?
        ok 'a test that fails on a full disk is a failure' exits 1 '1 passed, 1 failed, 0 skipped'
        ok 'the runner says that the disk is full' said "FAIL tests/flaky-4.sh \(exit 1, 2 planned, $took; the disk of $PWD/full/tmp\.[A-Za-z0-9]+ is full\)"
        rm tests/flaky-4.sh.runs
        NODESTRAP_TEST_TRIES=1 NODESTRAP_TEST_CACHE=/proc/none "$tap" tests/flaky-4.sh >"$tmp/out" 2>&1; status=$?
        ok 'a test that fails without a writable cache is a failure' exits 1 '1 passed, 1 failed, 0 skipped'
        ok 'the runner says that the cache cannot be written' said "FAIL tests/flaky-4.sh \(exit 1, 2 planned, $took; /proc/none cannot be written\)"
else ok 'the runner says that the disk is full # SKIP no mount namespaces here' true; fi

# A file that changed since the last submission has no second try.
commit() { git add -A && git -c user.name=t -c user.email=t@nodestrap.example -c commit.gpgsign=false commit -qm "$1"; }
submit() { mkdir -p .ci; echo "$1" >.ci/part; commit "$1"; }
again() {       # NAME…: all of them at their first try
        local name; for name; do rm -f "$name.runs"; NODESTRAP_TEST_PROOF='' tap "$name"; [ "$status" = 0 ] || { cat "$tmp/out"; return 1; }; done
}
not_again() { local name; for name; do rm -f "$name.runs"; tap "$name"; [ "$status" = 1 ] && said "FAIL ${name#"$PWD"/} .*no second try: it has changed since the last submission\)" || return; done; }
if command -v git >/dev/null; then
        place changes; git init -q; printf '*.runs\nbuild/\n' >.gitignore
        for name in old committed edited; do flaky tests/$name.sh; done
        mkdir -p tests/unit build/tests/unit; echo 1 | tee tests/unit/test-{old,new}.c >/dev/null; flaky build/tests/unit/test-old; flaky build/tests/unit/test-new
        commit 'before'
        ok 'each file gets a second try if there is no submission' again tests/{old,committed}.sh
        submit 1
        ok 'unchanged files get a second try after the first submission' again tests/{old,committed}.sh
        echo '# more' | tee -a tests/committed.sh >>tests/unit/test-new.c; commit 'work'
        echo '# more' >>tests/edited.sh; flaky 'tests/made now.sh'
        ok 'a file that a commit has changed since the submission gets no second try' not_again tests/committed.sh
        ok 'a file with uncommitted changes gets no second try' not_again tests/edited.sh 'tests/made now.sh'
        ok 'a program whose source has changed gets no second try' not_again build/tests/unit/test-new
        ok 'unchanged files and programs get a second try beside changed ones' again tests/old.sh build/tests/unit/test-old
        commit 'more work'; submit 2
        ok 'on a submitted tree, files changed since the submission before get no second try' not_again tests/committed.sh 'tests/made now.sh' "$PWD/build/tests/unit/test-new"
        ok 'on a submitted tree, unchanged files get a second try' again tests/old.sh build/tests/unit/test-old
        echo '# more' >>tests/old.sh
        ok 'after new work, files unchanged since the second submission get a second try' again tests/committed.sh build/tests/unit/test-new
        ok 'after new work, a file changed since the second submission gets no second try' not_again tests/old.sh
        submit 3; git checkout -q -B other HEAD~1
        ok 'on another branch, the last submission of that branch counts' again tests/old.sh
else
        ok 'a changed file gets no second try # SKIP no git here' true
fi

# For machines
place json
good 'tests/"two" words\and.sh'; file tests/skip.sh <<<'echo 1..2; echo ok 1; echo "ok 2 - more # SKIP no disk here"'; flaky tests/flaky.sh; bad $'tests/tab\tand \xff.sh'
valid() { local line; while IFS= read -r line; do python3 -m json.tool <<<"$line" >/dev/null || { echo "$line"; return 1; }; done <"$1"; }
export JSON=$PWD/json
tap -j 2 'tests/"two" words\and.sh' tests/skip.sh tests/flaky.sh $'tests/tab\tand \xff.sh'
ok 'the runner prints the counts with JSON=, too' exits 1 '4 passed, 1 failed, 1 skipped'
ok 'each line of the JSON file is JSON' valid json
facts() {       # each line, sorted, as "NAME SUITE PASSED FAILED SKIPPED TRY"
        python3 -c 'import json, sys
for line in sys.stdin:
    o = json.loads(line); assert o["seconds"] >= 0
    print(*[o.get(k) for k in ("name", "suite", "passed", "failed", "skipped", "try")], sep="|")' <"$1" | sort
}
ok 'the JSON file has a line for each file, and the sums' eval 'facts json | diff - <(printf "%s\n" "None|None|4|1|1|None" "tests/\"two\" words\\and.sh|None|1|0|0|1" "tests/flaky.sh|None|2|0|0|2" "tests/skip.sh|None|1|0|1|1" "tests/tab	and .sh|None|0|1|0|2" | sort)'
tap tests/skip.sh
ok 'the next run replaces the JSON file' eval '[ "$(facts json)" = "$(printf "%s\n" "None|None|1|0|1|None" "tests/skip.sh|None|1|0|1|1" | sort)" ]'
mkdir proof
for suite in one two; do NODESTRAP_TEST_PROOF=$PWD/proof NODESTRAP_TEST_SUITE=$suite tap tests/skip.sh; done
ok 'all suites of a proof write to one JSON file' eval '[ "$(facts proof/json)" = "$(printf "%s\n" "None|"{one,two}"|1|0|1|None" "tests/skip.sh|"{one,two}"|1|0|1|1" | sort)" ] || { facts proof/json; false; }'
unset JSON

# The long ones begin first, and a terminal shows how far it is. The new and the long one wait for each other: short could begin meanwhile.
place order
for name in short long new; do file tests/$name.sh <<'X'; done
echo "$0" >>began; case $0 in *new*) wants=long;; *long*) wants=new;; *) wants=;; esac
for i in {1..1200}; do ! grep -qs "$wants" began || break; sleep .05; done; echo 1..1; echo ok 1
X
printf '%s\t%s\n' 1.0 tests/short.sh 50.0 tests/long.sh rubbish tests/x 0.1 '' >"$cache/seconds"; head -c 1000 /dev/urandom >>"$cache/seconds"
tap -j 2 tests/short.sh tests/long.sh tests/new.sh
ok 'new files and files that took long begin first' eval '[ "$(wc -l <began)" = 3 ] && [ "$(tail -n 1 began)" = tests/short.sh ] || { cat began; false; }'
ok 'the cache has the time of each file' eval '[ "$(grep -caE "^[0-9]+\.[0-9]	tests/(short|long|new)\.sh$" "$cache/seconds")" = 3 ] && ! grep -a "^50\.0" "$cache/seconds"'
rm began; tap tests/short.sh tests/new.sh tests/long.sh & while ! grep -qs new began; do sleep .05; done; echo tests/long.sh >>began; wait
ok 'without -j, files run in the given order' eval '[ "$(head -n 2 began | xargs)" = "tests/short.sh tests/new.sh" ]'
ok 'without a terminal, the runner prints no line of progress' eval '! grep -aE "files|$(printf "\033")" "$tmp/out"'
if command -v script >/dev/null; then
        TERM=xterm script -qec "'$tap' -j 2 tests/short.sh tests/long.sh" /dev/null </dev/null >"$tmp/out" 2>&1; status=$?
        ok 'on a terminal, the runner prints a line of progress' eval 'grep -aE "0 of 2 files, about 0:[0-9]+ left, until [0-9]+:[0-9]+: " "$tmp/out" && grep -aF "1 of 2 files" "$tmp/out"'
        sed -E 's/\r$//; s/.*\r\x1b\[K//' "$tmp/out" >"$tmp/seen"; mv "$tmp/seen" "$tmp/out"
        ok 'on a terminal, the line of progress disappears before the counts' exits 0 '2 passed, 0 failed, 0 skipped'
        ok 'on a terminal, the result lines stay' said "ok   tests/short.sh \(1, $took\)"
else
        ok 'on a terminal, the runner prints a line of progress # SKIP no script(1) here' true
fi

# Processes that a test leaves running, and ^C
place left
file tests/leaves.sh <<<'sleep 1000 & echo $! >pid; echo 1..1; echo ok 1'
tap tests/leaves.sh
ok 'a test that leaves a process running passes' exits 0 '1 passed, 0 failed, 0 skipped'
ok 'the runner ends a process that a test has left' until_true gone pid
file tests/waits.sh <<<'trap "echo cleared >cleared; exit 130" TERM; echo $$ >pid-$1; sleep 1000 & echo $! >>pid-$1; (trap "" TERM; echo $BASHPID >pid-deaf-$1; while :; do sleep 1; done) & : >ready; wait'
sed 's/pid-/pid-2-/g; s/ready/ready-2/' tests/waits.sh >tests/waits-2.sh; chmod 755 tests/waits-2.sh
env --default-signal=INT "$tap" -j 2 tests/waits.sh tests/waits-2.sh >"$tmp/out" 2>&1 & runner=$!
ok 'two tests run in parallel' until_true eval '[ -e ready ] && [ -e ready-2 ] && [ -s pid-deaf- ] && [ -s pid-2-deaf- ]'
kill -INT $runner; until_true [ -e cleared ]; kill -INT $runner 2>/dev/null; wait $runner; status=$?
ok '^C ends the runner with exit status 130' [ "$status" = 130 ]
ok '^C lets the tests clean up' [ -e cleared ]
ok 'the next ^C leaves no process of a test running' until_true gone pid-*
ok '^C leaves no temporary directory' eval '! ls "$TMPDIR"/tmp.* 2>/dev/null'

# Rubbish, and no room
place rubbish
file tests/much.sh <<<'head -c 100000000 /dev/zero | tr "\0" x; head -c 100000 /dev/urandom; printf "\n1..2\nok 1\nnot ok 2 - \377\033[2J\001 much\n"; yes "ok 3 - rubbish" | head -n 300000 >/dev/null; exit 1'
limited() { (export LC_ALL=C.UTF-8; ulimit -v 130000; tap "$@"; echo "$status" >"$tmp/status"); status=$(cat "$tmp/status"); }
NODESTRAP_TEST_TRIES=1 limited tests/much.sh
ok 'a line of 100 MB does not exceed the memory limit' exits 1 '1 passed, 1 failed, 0 skipped'
ok 'the runner shortens long output and removes control characters' eval '[ "$(wc -c <"$tmp/out")" -lt 200000 ] && LC_ALL=C grep -ax "    not ok 2 - $(printf "\377")\[2J much" "$tmp/out" && ! grep -aF "$(printf "\033")" "$tmp/out"'
file tests/lines.sh <<<'echo 1..2000000; yes "ok - line" | head -n 2000000'
limited tests/lines.sh
ok 'two million lines do not exceed the memory limit' exits 0 '2000000 passed, 0 failed, 0 skipped'
: >"$tmp/file"; flaky tests/flaky.sh
NODESTRAP_TEST_CACHE=$tmp/file/cache tap tests/flaky.sh
ok 'a file gets a second try without a cache' exits 0 '2 passed, 0 failed, 0 skipped'
kept() { local first second; read -r first second < <(sed -n 's/^    both outputs: //p' "$tmp/out"); grep -qx '# the door is shut' "$first" && grep -qx 'ok 2 - ends' "$second" && [[ $second = "$TMPDIR"/* ]] || { cat "$tmp/out"; false; }; }
ok 'without a cache, both outputs are below the temporary directory' kept
mkdir full; rm tests/*.runs
if unshare -rm mount -t tmpfs full full 2>/dev/null; then
        unshare -rm bash -c 'mount -t tmpfs -o size=8k full full && ! head -c 100000 /dev/zero >full/x && cd tests/.. && NODESTRAP_TEST_CACHE=full "$0" tests/flaky.sh' "$tap" >"$tmp/out" 2>/dev/null; status=$?
        ok 'a file gets a second try if the cache is full' exits 0 '2 passed, 0 failed, 0 skipped'
        ok 'with a full cache, both outputs are below the temporary directory' kept
else
        ok 'a file gets a second try if the cache is full # SKIP no namespaces here' true
fi
cd / && done_testing
