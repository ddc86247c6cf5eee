#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual, the completion and the program tell of the same commands and options (of codes: codes.sh), and the pages have no mistakes.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0; manual=$top/debian/nodestrap.8 doctor=$top/debian/nodestrap-doctor.1 completion=$top/debian/nodestrap.bash-completion
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; sed 's/^/# /' <<<"$output"; fi; }

flags() { sed -n 's/^ *\[FLAG_[A-Z_]*\] *= { "\([a-z-]*\)",.*/\1/p' "$top/src/cli/options.c" | sort -u; }
mentions() { local f missing=; for f in $(flags); do grep -qE -- "--$f([^a-z-]|\$)" <<<"$1" || missing+=" --$f"; done; [ -z "$missing" ] || { echo "lacks$missing"; return 1; }; }
commands_in() { local c; for c in init plan doctor config status check dump schema example sign verify token wait send-events udev-net-manager boot-hook; do sed 's/\\-/-/g' "$1" | grep -qw -- "$c" || { echo "lacks $c"; return 1; }; done; }
# The names of doctor checks: the literals in the source, and the table in the manual.
codes() { grep -ohE '"(program|unit|module|library|directory|file|feature|label|leftovers?|version|driver|firmware|enabled|bootstrappers|plan|architecture|owner|rights|sysctl|trust|swap|nri|asked)(-[a-z-]+)?"' \
        "$top"/src/doctor/*.c "$top/src/commands/doctor.c" | tr -d '"' | sort -u; }
manual_codes() { awk -F'|' '/^\.SH / { on = $0 == ".SH CHECKS" } on && /^[a-z\\-]+\|T\{$/ { gsub(/\\/, "", $1); print $1 }' "$doctor" | sort; }

try "there are codes to compare" test "$(codes | wc -l)" -gt 20
try "the manual's table of codes is the program's" diff <(codes) <(manual_codes)
try "there are options to compare" test "$(flags | wc -l)" -gt 10
help_says() { "${NODESTRAP:-$top/build/nodestrap}" "${@:2}" --help | grep -F -- "$1"; }
try "help is of the command: init takes URIs alone" help_says 'file://PATH; repeatable (default: the sources of' init
try "others also a path" help_says 'file://PATH, PATH, or - for stdin; repeatable' plan
try "a schema is strict otherwise" help_says '--strict                 print one that refuses unknown keys, for' config schema
try "sarif is for config check" help_says '--output FORMAT          print text (default), json or sarif' config check
try "pictures are for status" help_says '--output FORMAT          print text (default), json, svg or metrics' status
try "markdown is for plan" help_says '--output FORMAT          print text (default), json or markdown' plan
# The options of a command, by its help and by its page; those of all commands are in nodestrap(8).
common='--root --development --help --version'
page_of() { echo "$top/debian/nodestrap-${1%% *}".[18]; }
own() { grep -vxE -- "${common// /|}" | sort -u; }
# shellcheck disable=SC2086      # a command may be two words
help_options() { local c; for c; do "${NODESTRAP:-$top/build/nodestrap}" $c --help; done | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | own; }
page_options() { sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/{s/\\f.//g; s/\\-/-/g; p}' "$1" | awk '/^\.TP/ { getline; print }' | grep -oE -- '--[a-z-]+' | sort -u; }
for c in init plan doctor status wait token explain send-events udev-net-manager boot-hook; do
        try "nodestrap-$c has its options, and no others" diff <(help_options "$c") <(page_options "$(page_of "$c")" | own)
done
try "so has nodestrap-config of all its words" diff <(help_options config\ {check,dump,schema,example,sign,verify}) <(page_options "$(page_of config)" | own)
first_section() { [ "$(grep '^\.SH' "$1" | grep -vE 'NAME|SYNOPSIS' | head -1)" = ".SH EXAMPLE" ]; }
try "nodestrap(8) has those of all commands" diff <(page_options "$manual") <(tr ' ' '\n' <<<"$common" | sort)
try "the completion has every option" mentions "$(cat "$completion")"
try "the manual has every command" commands_in "$manual"
try "the completion has every command" commands_in "$completion"
try "NodeConfig(5) is what conf/manual.py makes of the schema and the examples" diff <(python3 "$top/conf/manual.py") "$top/debian/NodeConfig.5"
quiet() { local said; said=$("$@" 2>&1 >/dev/null); [ -z "$said" ] || { echo "$said"; return 1; }; }
linted() { local said; said=$(mandoc -T lint "$@" 2>&1); [ -z "$said" ] || { echo "$said"; return 1; }; }
# Each command in a block of the page, whole, has options that its help has.
blocks() { awk '/^\.nf/ { on = 1; next } /^\.fi/ { on = 0 } on { gsub(/\\-/, "-"); gsub(/\\e/, "\\"); if (sub(/\\$/, "")) { held = held $0; next } print held $0; held = "" }' "$1" |
        sed -n 's/ *#.*//; s/[|>&].*//; /^nodestrap [a-z]/p'; }
# shellcheck disable=SC2086      # words of a line
taken() { local line word c text; while read -r line; do
        c=$(cut -d' ' -f2 <<<"$line"); [ "$c" != config ] || c="config $(cut -d' ' -f3 <<<"$line")"
        text=$("${NODESTRAP:-$top/build/nodestrap}" help $c) || { echo "$line"; return 1; }
        for word in $line; do [[ $word != -?* ]] || grep -q -e " $word " -e " $word," -e " $word\$" <<<"$text" || { echo "$line: $word?"; return 1; }; done
        done < <(blocks "$1"); }
try "there are commands in the pages" test "$(for page in "$top"/debian/nodestrap*.[178]; do blocks "$page"; done | wc -l)" -gt 30
fits() { ! MANWIDTH=80 man -E UTF-8 -l "$1" | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' | grep -E '.{81}'; }
for page in "$top"/debian/*.[1578]; do
        case $page in */NodeConfig.5|*/nodestrap-codes.7) ;; *) try "${page##*/} begins with an example" first_section "$page";; esac
        try "${page##*/} shows commands that there are" taken "$page"
        # NodeConfig(5) has values that are longer.
        if command -v man >/dev/null && [ "${page##*/}" != NodeConfig.5 ]; then try "${page##*/} is no wider than a screen" fits "$page"; fi
        if command -v man >/dev/null; then try "${page##*/} has no mistakes" quiet env MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page"
        else count=$((count + 1)); echo "ok $count - ${page##*/} has no mistakes # SKIP no man here"; fi
        if command -v mandoc >/dev/null; then try "nor for mandoc" linted "$page"
        else count=$((count + 1)); echo "ok $count - nor for mandoc # SKIP no mandoc here"; fi
done

W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; nodestrap=$(realpath "${NODESTRAP:-$top/build/nodestrap}")
env -u MAKEFLAGS -u MAKELEVEL make -s -C "$top" install DESTDIR="$W" BINARY=/bin/true >/dev/null 2>&1; export _nodestrap_lib=$W/usr/lib/nodestrap
has_all() { local text=$1 word; shift; for word; do grep -qxF -- "$word" <<<"$text" || { echo "lacks $word"; return 1; }; done; }
is_empty() { [ -z "$1" ] || { echo "$1"; return 1; }; }
complete_line() {                        # what bash offers behind these words
        bash -c '. /usr/share/bash-completion/bash_completion 2>/dev/null || exit 77; . "$1"; shift
                COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; _nodestrap; printf "%s\n" "${COMPREPLY[@]}"' bash "$completion" "$@"
}
if [ -e /usr/share/bash-completion/bash_completion ]; then
        try "help offers commands" has_all "$(complete_line nodestrap help '')" plan config version
        try "and their words" has_all "$(complete_line nodestrap help config '')" check sign
        try "commands are offered, with help and version" has_all "$(complete_line nodestrap '')" init help version --version
        try "version has its option" has_all "$(complete_line nodestrap version --)" --output
        try "config offers its words" diff <(complete_line nodestrap config '' | sort) <(printf '%s\n' check dump example schema sign verify)
        try "plan offers --instance-type" grep -qx -- --instance-type <(complete_line nodestrap plan --)
        try "init does not" bash -c '! grep -qx -- --instance-type' < <(complete_line nodestrap init --)
        try "config check offers --partial and its forms" bash -c 'grep -qx -- --partial <<<"$1" && [ "$2" = "json sarif text" ]' x "$(complete_line nodestrap config check --)" "$(complete_line nodestrap config check --output '' | sort | xargs)"
        try "and files, as does -c" bash -c 'grep -q "^debian/nodestrap[.]8" <<<"$1" && grep -q "^debian/nodestrap[.]8" <<<"$2"' x "$(cd "$top" && complete_line nodestrap config check debian/nodes)" "$(cd "$top" && complete_line nodestrap plan -c debian/nodes)"
        try "--skip offers the phases" diff <(complete_line nodestrap init --skip '') <(printf '%s\n' config devices run)
        try "--for offers what can be waited for" diff <(complete_line nodestrap wait --for '') <(printf '%s\n' registered ready devices)
        try "explain offers codes and keys" has_all "$(complete_line nodestrap explain E)" EFABRIC EINVALID
        try "keys by their paths" has_all "$(complete_line nodestrap explain spec.kub)" spec.kubelet.flags
        try "--instance-type offers types" has_all "$(complete_line nodestrap plan --instance-type p5.)" p5.48xlarge
        try "so does config example" has_all "$(complete_line nodestrap config example p5.)" p5.48xlarge
        try "a word of config is offered once" is_empty "$(complete_line nodestrap config dump '')"
        try "--matrix behind a comma" has_all "$(complete_line nodestrap plan --matrix g6.xlarge,p5.)" g6.xlarge,p5.48xlarge
        try "no word where the files are not there" is_empty "$(_nodestrap_lib=/nonexistent complete_line nodestrap explain E)"
else count=$((count + 1)); echo "ok $count - completions # SKIP no bash-completion here"; fi
# The words that functions of zsh are given, each a line.
zsh_line() {
        PATH=${nodestrap%/*}:$PATH zsh -fc 'file=$1; shift; words=("$@") CURRENT=$#
                compadd() { [[ $1 != -- ]] || shift; print -rl -- $@ }; compset() { : }; _files() { print files }; _describe() { print -rl -- ${(P)2} }; _call_program() { shift; "$@" }
                run() { source $file }; run' zsh "$top/debian/nodestrap.zsh-completion" "$@"
}
if command -v zsh >/dev/null; then
        try "zsh offers commands" has_all "$(zsh_line nodestrap '')" init plan config explain udev-net-manager help version
        try "help offers them, too" has_all "$(zsh_line nodestrap help '')" plan config version
        try "and words of config" has_all "$(zsh_line nodestrap help config '')" check sign
        try "config its words" diff <(zsh_line nodestrap config '' | sort) <(printf '%s\n' check dump example schema sign verify)
        try "options with their help" has_all "$(zsh_line nodestrap config check --)" '--partial:check a drop-in: required keys may be missing' '--root:use DIR as /, also for /proc and /sys'
        try "of the command alone" bash -c '! grep -q "^--instance-type:" <<<"$1" && grep -q "^--skip:" <<<"$1"' x "$(zsh_line nodestrap init --)"
        try "forms" diff <(zsh_line nodestrap config check --output '' | sort | xargs) <(echo json sarif text)
        try "types" has_all "$(zsh_line nodestrap plan --instance-type '')" p5.48xlarge g6.xlarge
        try "of examples, too" has_all "$(zsh_line nodestrap config example '')" p5.48xlarge
        try "codes and keys" has_all "$(zsh_line nodestrap explain '')" EFABRIC spec.kubelet.flags
        try "files" diff <(zsh_line nodestrap plan '') <(echo files)
else count=$((count + 1)); echo "ok $count - zsh # SKIP no zsh here"; fi
echo "1..$count"; exit $bad
