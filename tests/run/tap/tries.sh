# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables of tap.sh
# Sourced by tap.sh: which files may have a second try, and what is kept of both.

plain() { LC_ALL=C tr -d '\000-\010\013-\037\177' <"$1" | LC_ALL=C cut -b -4096; }         # text, whatever a test prints
changes() {     # files that are not as the last submission had them: the last commit of each moves .ci/part
        local movers git=(git --no-optional-locks -c safe.directory="$PWD")
        mapfile -t movers < <("${git[@]}" log -2 --format=%H -- .ci/part)
        [ -n "${movers[0]-}" ] || return
        # On a submitted tree that is this submission.
        [ "${movers[0]}" != "$("${git[@]}" rev-parse HEAD)" ] || [ -n "$("${git[@]}" status --porcelain -uno)" ] || movers=("${movers[@]:1}")
        [ -z "${movers[0]-}" ] || { "${git[@]}" diff --name-only --relative -z "${movers[0]}"; "${git[@]}" ls-files -oz --exclude-standard; }
} 2>/dev/null
never_again() { # TEST EXIT SECONDS OUTPUT: says why, or fails
        local file=${1#"$PWD"/}; [[ $file != */tests/* ]] || file=tests/${file##*/tests/}.c
        if [[ $2 = 124 || $2 = 137 ]] && [ "${NODESTRAP_TEST_LIMIT:-0}" -gt 0 ] && [ "${3%.*}" -ge "$NODESTRAP_TEST_LIMIT" ]; then echo "it may take $NODESTRAP_TEST_LIMIT s"
        elif [ "$2" -gt 128 ]; then echo "a signal ended it"
        elif [ "$2" = 99 ] || plain "$4" | grep -aqE '(Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer|runtime error:|==[0-9]+== '; then
                echo "it shows a report of a sanitizer or valgrind"
        elif [ "${3%.*}" -ge 600 ]; then echo "it takes long"
        else
                [ -e "$W/changes" ] || changes >"$W/changes"
                grep -qzxF -e "$file" "$W/changes" && echo "it has changed since the last submission"
        fi
}
no_room() {     # says which disk is full, or what cannot be written: a test that fails there rarely says it
        local d; for d in "$W" "$cache"; do
                if ! mkdir -p "$d" || [ ! -w "$d" ]; then echo "; $d cannot be written"
                elif [ "$(df -B1M --output=avail "$d" | tail -n 1)" -lt 8 ]; then echo "; the disk of $d is full"; fi
        done | head -n 1
} 2>/dev/null
keep() {        # OUTPUT NAME: keeps a copy for you; REPLY is its path
        [ -n "$tries" ] || {
                mkdir -p "$cache" && tries=$(mktemp -d "$cache/tries.XXXXXX")
                find "$cache" -maxdepth 1 \( -name 'tries.??????' -o -name 'proof.??????' \) -mtime +7 -exec rm -rf {} +
        }
        REPLY=$tries/$2; [ -z "$tries" ] || { cp "$1" "$REPLY" && return; rm -f "$REPLY"; }
        tries=$(mktemp -d "${TMPDIR:-/tmp}/tries.XXXXXX") && REPLY=$tries/$2 && cp "$1" "$REPLY" || REPLY="no copy of $2: no disk has room"
} 2>/dev/null
says_first() {  # EXIT PLANNED OUTPUT: its first "not ok" line, and what stands below that
        local line; line=$(plain "$3" | awk '/^not ok/ { line = $0; if (getline > 0 && sub(/^ *# /, "")) line = line ", " $0; print line; exit }')
        [ -n "$line" ] || line="exit $1, $2 planned"; echo "${line:0:200}$(no_room)"
}
# Two files of a proof may, whatever suites they are of.
may_try_again() { mkdir "$proof/second-try.1" || mkdir "$proof/second-try.2"; } 2>/dev/null
