#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# torture.sh SCRIPT…: campaigns of hours, one after the other, as tap.sh runs tests. Each appends facts to the file $FIGURES, a line
# "NUMBER WHAT" each, such as "118 calls killed". This script prints their sums before the last line with the counts.
set -u; cd "$(dirname "$0")/../.." || exit 1
FIGURES=$(mktemp) || exit 1; export FIGURES NODESTRAP_TEST_REQUIRE="${NODESTRAP_TEST_REQUIRE:-1}" NODESTRAP_TEST_NO_BUILD=0
W=$(mktemp -d) || exit 1
trap 'rm -rf "$FIGURES" "$W"' EXIT; trap 'exit 130' INT TERM
NODESTRAP_TEST_TRIES=1 tests/run/tap.sh -v "$@" | tee "$W/log" | sed '$d'; rc=${PIPESTATUS[0]}
awk '{ n = $1; sub(/^[0-9]+ /, ""); if (!($0 in sum)) order[++count] = $0; sum[$0] += n }
     END { for (i = 1; i <= count; i++) print "torture: " sum[order[i]] " " order[i] }' "$FIGURES"
tail -n 1 "$W/log"
exit "$rc"
