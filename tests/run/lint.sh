#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy and cppcheck over the program and its tests, shellcheck over the scripts, forms of words counted. Prints TAP: one line a file
# for clang-tidy.
# A file that was found clean before is not checked again (tests/run/stamps.py), save with FULL=1. WARNINGS comes from the Makefile.
# Nine tenths of the time of clang-tidy are its analyzer. It goes through fewer states of a function than with FULL=1. Of unit tests and
# fuzzers only FULL=1 asks it: sanitizers see there what it would.
set -u; cd "$(dirname "$0")/../.." || exit 1; count=0 bad=0
result() { count=$((count + 1)); if [ "$1" = 0 ]; then echo "ok $count - $2"; else bad=1; echo "not ok $count - $2"; head -60 "$3" | sed 's/^/# /'; fi; }
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
STAMPS=${NODESTRAP_TEST_CACHE:-/var/cache/nodestrap-test}/tidy
DEFINES=(-D_GNU_SOURCE '-DVERSION="0"' -Isrc -Itests/include)
read -ra MORE <<<"$(${PKG_CONFIG:-pkg-config} --cflags jansson yaml-0.1 expat zlib libsystemd libcrypto libcurl blkid mount)"
read -ra WARN <<<"${WARNINGS:--Wall -Wextra}"; FLAGS=(-std=gnu17 "${DEFINES[@]}" "${MORE[@]}" "${WARN[@]}")
find src tests -name '*.c' | sort >"$W/all"
grep -E '^(src|tests/(fuzz|bench|helpers))/' "$W/all" >"$W/programs"
grep -E '^tests/(unit|fuzz)/' "$W/all" >"$W/tests"; grep -vxFf "$W/tests" "$W/all" >"$W/sources"
find tests .ci conf debian \( -path 'debian/nodestrap' -o -path 'debian/.debhelper' \) -prune -o -type f -print0 | xargs -0 awk 'FNR == 1 && (/^#!.*\/(ba)?sh/ || FILENAME ~ /\.sh$/) { print FILENAME } FNR > 1 { nextfile }' | sort -u >"$W/scripts"

for tool in "${CLANG_TIDY:=clang-tidy}" "${CPPCHECK:=cppcheck}" shellcheck; do
        command -v "$tool" >/dev/null && continue
        [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && { echo "1..1"; echo "not ok 1 - no $tool here"; exit 1; }
        echo "1..0 # SKIP no $tool here"; exit 0
done
# The hash of each system header that a file asks for by name, and of all that those bring, as this clang-tidy finds them.
system_headers() {
        grep -rhoE '^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*<[^>]+>' src tests --include='*.[ch]' | sed 's/.*</</' | sort -u |
                sed 's/.*/#if __has_include(&)\n#include &\n#endif/' >"$W/headers.c"
        "$CLANG_TIDY" --checks='-*,misc-static-assert' --quiet "$W/headers.c" -- "${FLAGS[@]}" -w -ferror-limit=0 -H 2>&1 >/dev/null |
                sed -n 's,^\.\.* /,/,p' | sort -u | xargs -r -d '\n' sha256sum
}
# NAME NUMBER FACTS COMMAND...: over the files $W/NAME, NUMBER of them at a time; what failed lies in $W/NAME.out
news=''
check() {
        local new
        mkdir "$W/$1.out"
        new=$(python3 tests/run/stamps.py ${FULL:+-f} -n "$2" -Isrc -Itests/include "$STAMPS" "$3" "$W/$1.out" "${@:4}" <"$W/$1") || { echo "$1: stamps.py failed" >"$W/$1.out/stamps"; new=0; }
        news+="${news:+, }$new of $(wc -l <"$W/$1") $1"
}
whole() { cat "$W/$1.out"/* >"$W/$1.all" 2>/dev/null; [ ! -s "$W/$1.all" ]; result $? "$2" "$W/$1.all"; }    # one line for all of them

facts=$(system_headers)
[ -z "$facts" ] || facts=$(sha256sum <<<"$facts"; "$CLANG_TIDY" --version; find .clang-tidy src tests -name .clang-tidy | sort | xargs tail -vn +1)
tidy() { # NAME [OPTION...]
        local f k
        # shellcheck disable=SC2016 # for that shell
        check "$1" 1 "$facts" sh -c 'exec "$@" 2>/dev/null' tidy "$CLANG_TIDY" --quiet "${@:2}" {} -- "${FLAGS[@]}"
        [ ! -e "$W/$1.out/stamps" ] || result 1 clang-tidy "$W/$1.out/stamps"
        while read -r f; do k=$W/$1.out/${f//\//_}; [ ! -e "$k" ]; result $? "clang-tidy $f" "$k"; done <"$W/$1"
}
if [ -n "${FULL-}" ]; then tidy sources; tidy tests; else
        tidy sources --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=30000     # of 225000
        tidy tests '--checks=-clang-analyzer-*'
fi
# With one job alone cppcheck would judge beyond a file, and by what it is given beside it.
jobs=$(nproc); [ "$jobs" -gt 1 ] || jobs=2
check programs 0 "$("$CPPCHECK" --version; cat tests/run/cppcheck.txt /usr/include/jansson.h)" \
        "$CPPCHECK" --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j "$jobs" "${DEFINES[@]}" \
        --suppressions-list=tests/run/cppcheck.txt --include=/usr/include/jansson.h {}; whole programs cppcheck
# A word that fills its place in a table of char[N] has no end. gcc 12 tells that with what else C++ would not take.
gcc_words() { xargs -a "$W/sources" -P "$(nproc)" -n 16 gcc -fsyntax-only -Wc++-compat "${FLAGS[@]}" 2>&1 | grep -F "initializer-string" >"$W/ends"; [ ! -s "$W/ends" ]; }
gcc_words; result $? "words of tables end" "$W/ends"
check scripts 16 "$(shellcheck --version)" shellcheck -x -S warning {}; whole scripts shellcheck
UPDATE='' python3 tests/oracles/words.py >"$W/words" 2>&1; r=$?; result $r "forms of words: tests/oracles/words.csv" "$W/words"; [ $r != 0 ] || sed 's/^/# /' "$W/words"
echo "# checked: $news; the others were found clean before (FULL=1 checks all)"
echo "1..$count"; exit $bad
