#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The table of the fakes (tests/fakes/README.md) against the fakes: it has each word that a test may give them, and no other. Each row has
# its source and its certainty.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
fakes=$here/../fakes table=$fakes/README.md

# Words that the programs ask for, without the comments; a variable in a word is NAME.
of_programs() {
        grep -rhIvE '^ *#' "$fakes" --exclude='*.c' --exclude='*.md' --exclude='*.py' | sed -E 's/[ \t]# .*//' |
                grep -oE '\b(script|scripted) "?[a-z][a-zA-Z0-9$-]*' | sed -E 's/.* "?//; s/\$[a-zA-Z0-9]+/NAME/'
}
files() { grep -rhIoE '/etc/fakes/[a-z][a-z-]*' "$fakes" --exclude='*.md' | sed 's,.*/,,'; }
of_library() { grep -hE 'strcmp\(key, |keys\[\] = ' "$fakes"/lib{nvidia-ml,cuda}.c | grep -oE '"[a-z-]+"' | tr -d '"'; }
{ of_programs; files; of_library; } | sort -u >"$tmp/known"
awk -F'|' '/^\| / && !/^\| what the original does/ { print $3 }' "$table" | grep -oE '`[^`]+`' | tr -d '`' | sort -u >"$tmp/told"

many() { [ "$(wc -l <"$tmp/known")" -gt 60 ]; }
ok "the fakes know more than 60 words" many
missing() { comm -23 "$tmp/known" "$tmp/told" | grep . && return 1; return 0; }
ok "the table has each word that the fakes know" missing
gone() { comm -13 "$tmp/known" "$tmp/told" | grep . && return 1; return 0; }
ok "the table has no word that the fakes do not know" gone
sourced() { awk -F'|' '/^\| / && !/^\| (\*\*|what the original does)/ && ($4 ~ /^ *$/ && $5 !~ /ours/ || $5 !~ /verified|report|inferred|ours|as each says/) { print; bad = 1 } END { exit bad }' "$table"; }
ok "each row of the table has a source and a certainty" sourced
done_testing
