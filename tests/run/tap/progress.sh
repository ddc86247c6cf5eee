# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # variables of tap.sh
# Sourced by tap.sh: how long each file takes, what begins first, and the last line on a terminal. Times are tenths of a second.

# The table in the cache has "SECONDS FILE" a line: what each file took when it passed last.
recall() {      # TEST...: what the table knows of them, and the mean for those it does not know
        local took t sum=0 n=0; mean=''
        cp "$cache/seconds" "$W/seconds" 2>/dev/null || : >"$W/seconds"
        while IFS=$'\t' read -r took t; do [[ $took =~ ^[0-9]{1,7}\.[0-9]$ && -n $t ]] && usual["$t"]=$((10#${took/./})); done <"$W/seconds"
        for t; do took=${usual["${t#"$PWD"/}"]-}; [ -z "$took" ] || sum=$((sum + took)) n=$((n + 1)); done
        [ "$n" = 0 ] || mean=$((sum / n))
}
remember() {
        [ -s "$W/took" ] && mkdir -p "$cache" || return
        cat "$cache/seconds" | awk -F '\t' 'NR == FNR { now[$2]; next } !($2 in now)' "$W/took" - | cat - "$W/took" | tail -n 2000 >"$cache/seconds.$$" &&
                mv "$cache/seconds.$$" "$cache/seconds" || rm -f "$cache/seconds.$$"
} 2>/dev/null
expected() { REPLY=${usual["${1#"$PWD"/}"]-${mean:-0}}; }
longest_first() { local t; for t; do printf '%s\t%s\n' "${usual["${t#"$PWD"/}"]-99999999}" "$t"; done | sort -s -t $'\t' -k 1,1nr | cut -f 2-; }

# The line that the next one takes the place of. It ends at the edge of the terminal.
clear_status() { [ -z "$progress" ] || printf '\r\033[K'; }
show_status() {
        [ -n "$progress" ] || return
        local pid now='' line left=0 rest=0; local -A open=([turn]=${queued[turn]} [beside]=${queued[beside]})
        for pid in "${!names[@]}"; do
                expected "${names[$pid]}"; left=$((REPLY - 10 * (SECONDS - begun[$pid]))); now+=" ${names[$pid]#"$PWD"/}"
                [ "$left" -le 0 ] || open[${lane[$pid]}]=$((open[${lane[$pid]}] + left))
                [ "$left" -le "$rest" ] || rest=$left
        done
        for left in $((open[turn] / jobs)) $((open[beside] / (2 * jobs))); do [ "$left" -le "$rest" ] || rest=$left; done
        line="$ended of $total files"
        [ -z "$mean" ] || printf -v line '%s, about %d:%02d left, until %(%H:%M)T' "$line" $((rest / 600)) $((rest / 10 % 60)) $((EPOCHSECONDS + rest / 10))
        printf '\r\033[K\033[?7l%s:%s\033[?7h' "$line" "$now"
}
