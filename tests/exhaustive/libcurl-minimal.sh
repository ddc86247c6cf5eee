#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every check that uses libcurl, with a libcurl that has only HTTP and HTTPS (tests/tools/libcurl.sh).
here=$(dirname "$(realpath "$0")")
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
minimal=$("$here/../tools/libcurl.sh" 2>"$tmp/why") || { echo "1..1"; echo "ok 1 - the checks pass with a minimal libcurl # SKIP $(tail -1 "$tmp/why")"; exit "${NODESTRAP_TEST_REQUIRE:-0}"; }
# Only our programs use it, since programs of the tests need the usual libcurl.
mkdir "$tmp/helpers"
for program in "$(realpath "${NODESTRAP:-build/nodestrap}")" "$(realpath "${HELPERS:-build/tests/helpers}")"/*-tool; do
        case $program in *-tool) name=$tmp/helpers/${program##*/};; *) name=$tmp/nodestrap;; esac
        # shellcheck disable=SC2016  # for that script
        printf '#!/bin/bash\nLD_LIBRARY_PATH=%q exec -a "$0" %q "$@"\n' "$minimal" "$program" >"$name"
        chmod +x "$name"
done
export NODESTRAP=$tmp/nodestrap HELPERS=$tmp/helpers
count=0
for check in ec2 token wait register endpoints; do
        before=$count planned=none
        while IFS= read -r line; do
                case $line in
                1..*) planned=${line#1..} ;;
                ok*|not\ ok*) count=$((count + 1)); sed -E "s/^((not )?ok) [0-9]+ - /\1 $count - $check: /" <<<"$line" ;;
                *) echo "$line" ;;
                esac
        done < <("$here/../check/$check.sh" 2>&1)
        count=$((count + 1))
        if [ "$planned" = $((count - before - 1)) ]; then echo "ok $count - $check.sh runs as many tests as it plans"; else echo "not ok $count - $check.sh runs as many tests as it plans"; fi
done
echo "1..$count"
