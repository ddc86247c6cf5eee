#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help: one screen for each command, with its own options and two valid examples; mistyped words get a suggestion. conf/help.txt has the
# texts of all commands and options, and no others.
set -u; top=$(realpath "$(dirname "$0")/../.."); nodestrap=$(realpath "${NODESTRAP:-$top/build/nodestrap}"); count=0 bad=0
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; sed 's/^/# /' <<<"$output"; fi; }
# shellcheck disable=SC2086     # a command may be two words, here and below
same() { diff <("$nodestrap" $1) <("$nodestrap" $2); }
names() { "$nodestrap" --help | sed -n '/^Examples/q; s/^  \([a-z]\)/\1/p' | sed 's/^\(config [a-z]*\|[a-z-]*\) .*/\1/'; }
# shellcheck disable=SC2086
examples() { "$nodestrap" help $1 | sed -n '/^Examples/,/^$/s/^  nodestrap //p'; }
# A screen: 80 columns, and 24 lines unless the command has many options.
# shellcheck disable=SC2086
fits() { "$nodestrap" help $1 >"$W/help" || return; local n; n=$(wc -l <"$W/help")
        [ "$n" -le "$2" ] || { echo "$n lines"; return 1; }; ! awk 'length > 80 { print; bad = 1 } END { exit !bad }' "$W/help"; }
begins() { [[ $(head -1 "$W/help") == "Usage: nodestrap $1"* ]] && [ -z "$(sed -n 2p "$W/help")" ]; }
two() { [ "$(examples "$1" | wc -l)" = 2 ]; }
# An example begins with the command, and the help of the command has all its options.
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
# A command has one own text for an option, and only for options that it takes; no option lacks a text.
# shellcheck disable=SC2086
options_told() { local key; "$nodestrap" help $1 >"$W/help" || return
        for key in $(keys "$1" | grep '^--'); do grep -qE -- "^ +(-., )?$key " "$W/help" || { echo "$key: not an option of $1"; return 1; }; done
        [ -z "$(keys "$1" | grep '^--' | sort | uniq -d)" ] && ! grep -E '^ +(-., )?--[a-z-]+( [A-Z]+)? *$' "$W/help"; }

try "help lists 18 commands" test "$(names | wc -l)" = 18
try "the help of the program fits 40 lines" fits '' 40
try "the help of the program begins with a usage line" begins COMMAND
try "the help of the program has two examples" test "$(sed -n '/^Examples/,/^$/p' "$W/help" | grep -c '^  nodestrap ')" = 2
try "conf/help.txt has only sections, texts and comments" odd_lines
try "conf/help.txt has a section for each command, and no others" diff <(sections | grep -vx options | sort) <(names | sort)
try "conf/help.txt has a text for each option, and no others" diff <(keys options | sort) <(options | sort)
while read -r c; do
        try "conf/help.txt has all texts of $c" has_texts "$c"
        [ "$c" = help ] && continue
        case $c in plan) most=42;; init|doctor) most=30;; config*|status|token) most=25;; *) most=24;; esac
        try "the help of $c fits a screen" fits "$c" "$most"
        try "the help of $c begins with the usage line" begins "$c"
        try "the help of $c has one text for each option, and no others" options_told "$c"
        try "the help of $c has two examples" two "$c"
        try "the examples of $c have only options that $c takes" taken "$c"
        try "$c --help and help $c are the same" same "help $c" "$c --help"
        [ "$c" = version ] || try "the help of $c names an existing manual page" test -e "$(echo "$top/debian/$(sed -n 's/^More: man //p' "$W/help")".[18])"
done < <(names)
try "version and --version print the same" same version --version
try "version --output json and --version --output json print the same" same 'version --output json' '--version --output json'
try "help help prints the help of the program" same 'help help' --help
try "help without a command prints the help of the program" same help --help
try "config alone prints the help of its commands" same config 'help config'
lists_config() { [ "$("$nodestrap" config | grep -c '^  config ')" = 6 ] && ! "$nodestrap" config | grep -q '^  plan '; }
try "config alone lists only its six commands" lists_config
try "help plan has no output formats of other commands" bash -c '! "$1" help plan | grep -qE "sarif|svg|metrics"' x "$nodestrap"
try "an unknown command validate gets the suggestion config check" suggests 'config check' validate
try "the word check without config gets the suggestion config check" suggests 'config check' check
try "a mistyped word chek without config gets the suggestion config check" suggests 'config check' chek
try "a mistyped config scema gets the suggestion config schema" suggests 'config schema' config scema
try "help of a mistyped command gets the suggestion doctor" suggests doctor help docter
try "-v gets the suggestion --version" suggests --version -v
try "-V gets the suggestion --version" suggests --version -V
try "--verbose gets the suggestion --development" suggests --development plan --verbose
try "a mistyped option gets an option of the command as the suggestion" suggests --instance-type plan --instence-type p5.48xlarge
try "a word like no command gets no suggestion" bash -c '! "$1" xyzzy 2>&1 | grep -q "did you mean"' x "$nodestrap"
refused() { "$nodestrap" "${@:2}" 2>"$W/err"; [ $? = 2 ] && grep -qF "$1" "$W/err" || { cat "$W/err"; return 1; }; }
try "plan refuses --output svg and lists its own formats" refused 'plan --output prints text (default), json or markdown, not "svg"' plan --output svg
try "config check refuses --output markdown and lists its own formats" refused 'config check --output prints text (default), json or sarif, not "markdown"' config check --output markdown
try "status refuses --output yaml and lists its own formats" refused 'status --output prints text (default), json, svg or metrics, not "yaml"' status --output yaml
try "version refuses --output yaml and lists its own formats" refused 'version --output prints text (default) or json, not "yaml"' --version --output yaml
echo "1..$count"; exit $bad
