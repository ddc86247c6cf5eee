#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy and cppcheck over the program and its tests, shellcheck over the scripts. Prints TAP: one line a file for clang-tidy.
set -u; cd "$(dirname "$0")/../.." || exit 1; count=0 bad=0
result() { count=$((count + 1)); if [ "$1" = 0 ]; then echo "ok $count - $2"; else bad=1; echo "not ok $count - $2"; head -60 "$3" | sed 's/^/# /'; fi; }
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
FLAGS=(-std=gnu17 -D_GNU_SOURCE '-DVERSION="0"' -Isrc -Itests/include)
read -ra MORE <<<"$(${PKG_CONFIG:-pkg-config} --cflags jansson yaml-0.1 expat zlib libsystemd libcrypto libcurl blkid mount)"; FLAGS+=("${MORE[@]}")
mapfile -t sources < <(find src tests -name '*.c' | sort)
mapfile -t scripts < <(find tests .ci conf debian \( -path 'debian/nodestrap' -o -path 'debian/.debhelper' \) -prune -o -type f -print0 | xargs -0 awk 'FNR == 1 && (/^#!.*\/(ba)?sh/ || FILENAME ~ /\.sh$/) { print FILENAME } FNR > 1 { nextfile }' | sort -u)

for tool in "${CLANG_TIDY:=clang-tidy}" "${CPPCHECK:=cppcheck}" shellcheck; do
        command -v "$tool" >/dev/null && continue
        [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && { echo "1..1"; echo "not ok 1 - no $tool here"; exit 1; }
        echo "1..0 # SKIP no $tool here"; exit 0
done
export CLANG_TIDY; tidy() { local out=$1; shift; "$CLANG_TIDY" --quiet "$1" -- "${@:2}" >"$out/$(tr / _ <<<"$1")" 2>/dev/null; echo $? >"$out/$(tr / _ <<<"$1").rc"; }; export -f tidy
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'tidy "$@"' tidy "$W" {} "${FLAGS[@]}"
for f in "${sources[@]}"; do k=$W/$(tr / _ <<<"$f"); result "$(cat "$k.rc")" "clang-tidy $f" "$k"; done
"$CPPCHECK" --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j "$(nproc)" -D_GNU_SOURCE '-DVERSION="0"' -Isrc -Itests/include \
        --suppressions-list=tests/run/cppcheck.txt --include=/usr/include/jansson.h src tests/fuzz tests/bench tests/helpers >"$W/cppcheck" 2>&1; result $? cppcheck "$W/cppcheck"
shellcheck -x -S warning "${scripts[@]}" >"$W/shellcheck" 2>&1; result $? shellcheck "$W/shellcheck"
echo "1..$count"; exit $bad
