#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual, the completion and the program have the same commands and options (for codes: codes.sh), and the pages have no errors.
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

try "the source has more than 20 names of doctor checks" test "$(codes | wc -l)" -gt 20
try "the manual and the program have the same doctor checks" diff <(codes) <(manual_codes)
try "the source has more than 10 options" test "$(flags | wc -l)" -gt 10
help_says() { "${NODESTRAP:-$top/build/nodestrap}" "${@:2}" --help | grep -F -- "$1"; }
try "the help of init says that -c takes only URIs" help_says 'file://PATH; repeatable (default: the sources' init
try "the help of plan says that -c also takes a path" help_says 'file://PATH, PATH, or - for stdin; repeatable' plan
try "the help of config schema has its own text for --strict" help_says '--strict                 print one that refuses unknown keys, for' config schema
try "the help of config check lists the format sarif" help_says '--output FORMAT          print text (default), json or sarif' config check
try "the help of status lists the format svg" help_says '--output FORMAT          print text (default), json, svg or metrics' status
try "the help of plan lists the format markdown" help_says '--output FORMAT          print text (default), json or markdown' plan
# The options of a command, in its help and in its page; nodestrap(8) has those of all commands.
common='--root --development --help --version'
page_of() { echo "$top/debian/nodestrap-${1%% *}".[18]; }
own() { grep -vxE -- "${common// /|}" | sort -u; }
# shellcheck disable=SC2086      # a command may be two words
help_options() { local c; for c; do "${NODESTRAP:-$top/build/nodestrap}" $c --help; done | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | own; }
page_options() { sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/{s/\\f.//g; s/\\-/-/g; p}' "$1" | awk '/^\.TP/ { getline; print }' | grep -oE -- '--[a-z-]+' | sort -u; }
for c in init plan doctor status wait token explain send-events udev-net-manager boot-hook; do
        try "the page nodestrap-$c has the options of its help, and no others" diff <(help_options "$c") <(page_options "$(page_of "$c")" | own)
done
try "the page nodestrap-config has the options of all its subcommands, and no others" diff <(help_options config\ {check,dump,schema,example,sign,verify}) <(page_options "$(page_of config)" | own)
first_section() { [ "$(grep '^\.SH' "$1" | grep -vE 'NAME|SYNOPSIS' | head -1)" = ".SH EXAMPLE" ]; }
try "the page nodestrap(8) has the options that all commands take" diff <(page_options "$manual") <(tr ' ' '\n' <<<"$common" | sort)
try "the completion has every option" mentions "$(cat "$completion")"
try "the manual has every command" commands_in "$manual"
try "the completion has every command" commands_in "$completion"
try "NodeConfig(5) is what conf/manual.py makes of the schema and the examples" diff <(python3 "$top/conf/manual.py") "$top/debian/NodeConfig.5"
quiet() { local said; said=$("$@" 2>&1 >/dev/null); [ -z "$said" ] || { echo "$said"; return 1; }; }
linted() { local said; said=$(mandoc -T lint "$@" 2>&1); [ -z "$said" ] || { echo "$said"; return 1; }; }
# Each complete command in a block of the page: its options must be in its help.
blocks() { awk '/^\.nf/ { on = 1; next } /^\.fi/ { on = 0 } on { gsub(/\\-/, "-"); gsub(/\\e/, "\\"); if (sub(/\\$/, "")) { held = held $0; next } print held $0; held = "" }' "$1" |
        sed -n 's/ *#.*//; s/[|>&].*//; /^nodestrap [a-z]/p'; }
# shellcheck disable=SC2086      # words of a line
taken() { local line word c text; while read -r line; do
        c=$(cut -d' ' -f2 <<<"$line"); [ "$c" != config ] || c="config $(cut -d' ' -f3 <<<"$line")"
        text=$("${NODESTRAP:-$top/build/nodestrap}" help $c) || { echo "$line"; return 1; }
        for word in $line; do [[ $word != -?* ]] || grep -q -e " $word " -e " $word," -e " $word\$" <<<"$text" || { echo "$line: $word?"; return 1; }; done
        done < <(blocks "$1"); }
try "the pages show more than 30 commands" test "$(for page in "$top"/debian/nodestrap*.[178]; do blocks "$page"; done | wc -l)" -gt 30
fits() { ! MANWIDTH=80 man -E UTF-8 -l "$1" | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' | grep -E '.{81}'; }
for page in "$top"/debian/*.[1578]; do
        case $page in */NodeConfig.5|*/nodestrap-codes.7) ;; *) try "${page##*/} begins with an example" first_section "$page";; esac
        try "${page##*/} shows only valid commands and options" taken "$page"
        # NodeConfig(5) has values that are wider.
        if command -v man >/dev/null && [ "${page##*/}" != NodeConfig.5 ]; then try "${page##*/} fits 80 columns" fits "$page"; fi
        if command -v man >/dev/null; then try "${page##*/} causes no warning of man" quiet env MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page"
        else count=$((count + 1)); echo "ok $count - ${page##*/} causes no warning of man # SKIP no man here"; fi
        if command -v mandoc >/dev/null; then try "${page##*/} causes no warning of mandoc" linted "$page"
        else count=$((count + 1)); echo "ok $count - ${page##*/} causes no warning of mandoc # SKIP no mandoc here"; fi
done

W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; nodestrap=$(realpath "${NODESTRAP:-$top/build/nodestrap}")
env -u MAKEFLAGS -u MAKELEVEL make -s -C "$top" install DESTDIR="$W" BINARY=/bin/true >/dev/null 2>&1; export _nodestrap_lib=$W/usr/lib/nodestrap
has_all() { local text=$1 word; shift; for word; do grep -qxF -- "$word" <<<"$text" || { echo "lacks $word"; return 1; }; done; }
is_empty() { [ -z "$1" ] || { echo "$1"; return 1; }; }
complete_line() {                        # what bash offers after these words
        bash -c '. /usr/share/bash-completion/bash_completion 2>/dev/null || exit 77; . "$1"; shift
                COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; _nodestrap; printf "%s\n" "${COMPREPLY[@]}"' bash "$completion" "$@"
}
if [ -e /usr/share/bash-completion/bash_completion ]; then
        try "bash completes help with commands" has_all "$(complete_line nodestrap help '')" plan config version
        try "bash completes help config with subcommands" has_all "$(complete_line nodestrap help config '')" check sign
        try "bash completes nodestrap with commands, help and version" has_all "$(complete_line nodestrap '')" init help version --version
        try "bash completes the option of version" has_all "$(complete_line nodestrap version --)" --output
        try "bash completes config with its subcommands" diff <(complete_line nodestrap config '' | sort) <(printf '%s\n' check dump example schema sign verify)
        try "bash completes plan with --instance-type" grep -qx -- --instance-type <(complete_line nodestrap plan --)
        try "bash does not complete init with --instance-type" bash -c '! grep -qx -- --instance-type' < <(complete_line nodestrap init --)
        try "bash completes config check with --partial, and --output with its formats" bash -c 'grep -qx -- --partial <<<"$1" && [ "$2" = "json sarif text" ]' x "$(complete_line nodestrap config check --)" "$(complete_line nodestrap config check --output '' | sort | xargs)"
        try "bash completes config check and plan -c with files" bash -c 'grep -q "^debian/nodestrap[.]8" <<<"$1" && grep -q "^debian/nodestrap[.]8" <<<"$2"' x "$(cd "$top" && complete_line nodestrap config check debian/nodes)" "$(cd "$top" && complete_line nodestrap plan -c debian/nodes)"
        try "bash completes --skip with the phases" diff <(complete_line nodestrap init --skip '') <(printf '%s\n' config devices run)
        try "bash completes --for with the conditions of wait" diff <(complete_line nodestrap wait --for '') <(printf '%s\n' registered ready devices)
        try "bash completes explain with codes" has_all "$(complete_line nodestrap explain E)" EFABRIC EINVALID
        try "bash completes explain with the path of a key" has_all "$(complete_line nodestrap explain spec.kub)" spec.kubelet.flags
        try "bash completes --instance-type with types" has_all "$(complete_line nodestrap plan --instance-type p5.)" p5.48xlarge
        try "bash completes config example with types" has_all "$(complete_line nodestrap config example p5.)" p5.48xlarge
        try "bash offers nothing after config dump" is_empty "$(complete_line nodestrap config dump '')"
        try "bash completes --matrix with types after a comma" has_all "$(complete_line nodestrap plan --matrix g6.xlarge,p5.)" g6.xlarge,p5.48xlarge
        try "bash offers no code for explain if the files are missing" is_empty "$(_nodestrap_lib=/nonexistent complete_line nodestrap explain E)"
else count=$((count + 1)); echo "ok $count - completions # SKIP no bash-completion here"; fi
# The words that the zsh functions get, one a line.
zsh_line() {
        PATH=${nodestrap%/*}:$PATH zsh -fc 'file=$1; shift; words=("$@") CURRENT=$#
                compadd() { [[ $1 != -- ]] || shift; print -rl -- $@ }; compset() { : }; _files() { print files }; _describe() { print -rl -- ${(P)2} }; _call_program() { shift; "$@" }
                run() { source $file }; run' zsh "$top/debian/nodestrap.zsh-completion" "$@"
}
if command -v zsh >/dev/null; then
        try "zsh completes nodestrap with commands" has_all "$(zsh_line nodestrap '')" init plan config explain udev-net-manager help version
        try "zsh completes help with commands" has_all "$(zsh_line nodestrap help '')" plan config version
        try "zsh completes help config with subcommands" has_all "$(zsh_line nodestrap help config '')" check sign
        try "zsh completes config with its subcommands" diff <(zsh_line nodestrap config '' | sort) <(printf '%s\n' check dump example schema sign verify)
        try "zsh completes config check with options and their texts" has_all "$(zsh_line nodestrap config check --)" '--partial:check a drop-in: required keys may be missing' '--root:use DIR as /, including /proc and /sys'
        try "zsh completes init only with its own options" bash -c '! grep -q "^--instance-type:" <<<"$1" && grep -q "^--skip:" <<<"$1"' x "$(zsh_line nodestrap init --)"
        try "zsh completes config check --output with its formats" diff <(zsh_line nodestrap config check --output '' | sort | xargs) <(echo json sarif text)
        try "zsh completes --instance-type with types" has_all "$(zsh_line nodestrap plan --instance-type '')" p5.48xlarge g6.xlarge
        try "zsh completes config example with types" has_all "$(zsh_line nodestrap config example '')" p5.48xlarge
        try "zsh completes explain with codes and keys" has_all "$(zsh_line nodestrap explain '')" EFABRIC spec.kubelet.flags
        try "zsh completes plan with files" diff <(zsh_line nodestrap plan '') <(echo files)
else count=$((count + 1)); echo "ok $count - zsh # SKIP no zsh here"; fi
echo "1..$count"; exit $bad
