#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help: one screen a command, with its own options and two examples that the program takes; near misses get a suggestion. conf/help.txt has
# the texts of the commands and options that there are, and no others.
set -u; top=$(realpath "$(dirname "$0")/../.."); nodestrap=$(realpath "${NODESTRAP:-$top/build/nodestrap}"); count=0 bad=0
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; sed 's/^/# /' <<<"$output"; fi; }
# shellcheck disable=SC2086     # a command may be two words, here and below
same() { diff <("$nodestrap" $1) <("$nodestrap" $2); }
names() { "$nodestrap" --help | sed -n '/^Examples/q; s/^  \([a-z]\)/\1/p' | sed 's/^\(config [a-z]*\|[a-z-]*\) .*/\1/'; }
# shellcheck disable=SC2086
examples() { "$nodestrap" help $1 | sed -n '/^Examples/,/^$/s/^  nodestrap //p'; }
# A screen: 80 columns, and 24 lines where the options of the command let it.
# shellcheck disable=SC2086
fits() { "$nodestrap" help $1 >"$W/help" || return; local n; n=$(wc -l <"$W/help")
        [ "$n" -le "$2" ] || { echo "$n lines"; return 1; }; ! awk 'length > 80 { print; bad = 1 } END { exit !bad }' "$W/help"; }
begins() { [[ $(head -1 "$W/help") == "Usage: nodestrap $1"* ]] && [ -z "$(sed -n 2p "$W/help")" ]; }
two() { [ "$(examples "$1" | wc -l)" = 2 ]; }
# The words of an example are a command, and its options are those that this command's help has.
taken() { local line word; while read -r line; do
        [[ $line == "$1"* ]] || { echo "$line: another command"; return 1; }
        for word in ${line#"$1"}; do [[ $word != -* ]] || grep -q -e " $word " -e " $word," -e " $word\$" "$W/help" || { echo "$line: $word?"; return 1; }; done
        done < <(examples "$1"); }
suggests() { "$nodestrap" "${@:2}" >"$W/out" 2>"$W/err"; [ $? = 2 ] && [ ! -s "$W/out" ] && grep -qF "did you mean $1?" "$W/err" || { cat "$W/err"; return 1; }; }

texts=$top/conf/help.txt
sections() { sed -n 's/^\[\(.*\)\]$/\1/p' "$texts"; }
keys() { awk -v head="[$1]" '/^\[/ { on = $0 == head } on' "$texts" | sed -n 's/^\([a-z-]*\): ..*/\1/p'; }
options() { sed -n 's/^ *\[FLAG_[A-Z_]*\] *= { "\([a-z-]*\)",.*/--\1/p' "$top/src/cli/options.c" | grep -vx -- --version; }    # which help leaves out
odd_lines() { ! grep -nvE '^(#.*|\[[a-z -]+\]|[a-z-]+: .+| +[^ ].*|)$' "$texts"; }
has_texts() { diff <(keys "$1" | grep -v '^--') <(printf '%s\n' usage title about example example); }
# Its own texts of options are of those that it takes, one for each; and none lacks a text.
# shellcheck disable=SC2086
options_told() { local key; "$nodestrap" help $1 >"$W/help" || return
        for key in $(keys "$1" | grep '^--'); do grep -qE -- "^ +(-., )?$key " "$W/help" || { echo "$key: not an option of $1"; return 1; }; done
        [ -z "$(keys "$1" | grep '^--' | sort | uniq -d)" ] && ! grep -E '^ +(-., )?--[a-z-]+( [A-Z]+)? *$' "$W/help"; }

try "there are commands" test "$(names | wc -l)" = 18
try "the program's own help fits 40 lines" fits '' 40
try "it begins with a usage line" begins COMMAND
try "and has two examples" test "$(sed -n '/^Examples/,/^$/p' "$W/help" | grep -c '^  nodestrap ')" = 2
try "the file of texts has sections, texts and comments" odd_lines
try "a section for each command, and no others" diff <(sections | grep -vx options | sort) <(names | sort)
try "a text for each option, and no others" diff <(keys options | sort) <(options | sort)
while read -r c; do
        try "$c: has its texts" has_texts "$c"
        [ "$c" = help ] && continue
        case $c in plan) most=42;; init|doctor) most=30;; config*|status|token) most=25;; *) most=24;; esac
        try "$c: fits a screen" fits "$c" "$most"
        try "$c: usage first" begins "$c"
        try "$c: each of its options has a text, and no other" options_told "$c"
        try "$c: two examples" two "$c"
        try "$c: which it takes" taken "$c"
        try "$c --help says the same" same "help $c" "$c --help"
        [ "$c" = version ] || try "$c: names a page of the manual" test -e "$(echo "$top/debian/$(sed -n 's/^More: man //p' "$W/help")".[18])"
done < <(names)
try "version does what --version does" same version --version
try "also for machines" same 'version --output json' '--version --output json'
try "help of help is that of the program" same 'help help' --help
try "help alone, too" same help --help
try "config alone prints the help of its commands" same config 'help config'
lists_config() { [ "$("$nodestrap" config | grep -c '^  config ')" = 6 ] && ! "$nodestrap" config | grep -q '^  plan '; }
try "of these alone" lists_config
try "no other command's formats" bash -c '! "$1" help plan | grep -qE "sarif|svg|metrics"' x "$nodestrap"
try "a command nobody has" suggests 'config check' validate
try "a word of config without it" suggests 'config check' check
try "also mistyped" suggests 'config check' chek
try "a word of the whole" suggests 'config schema' config scema
try "help of a mistyped one" suggests doctor help docter
try "-v" suggests --version -v
try "-V" suggests --version -V
try "--verbose" suggests --development plan --verbose
try "an option of the command" suggests --instance-type plan --instence-type p5.48xlarge
try "no guess at what is like nothing" bash -c '! "$1" xyzzy 2>&1 | grep -q "did you mean"' x "$nodestrap"
refused() { "$nodestrap" "${@:2}" 2>"$W/err"; [ $? = 2 ] && grep -qF "$1" "$W/err" || { cat "$W/err"; return 1; }; }
try "a form that a command lacks is refused with those it has" refused 'plan --output prints text (default), json or markdown, not "svg"' plan --output svg
try "markdown is of plan alone" refused 'config check --output prints text (default), json or sarif, not "markdown"' config check --output markdown
try "one that none has, too" refused 'status --output prints text (default), json, svg or metrics, not "yaml"' status --output yaml
try "of the version, too" refused 'version --output prints text (default) or json, not "yaml"' --version --output yaml
echo "1..$count"; exit $bad
