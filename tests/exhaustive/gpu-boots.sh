#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The boots of machines with GPUs (tests/boot/gpu-*.sh, and more types here) again on the other Debian. systemd 252 and 257 differ, for
# example in which file hides which. Boots with an older image run with one of autumn 2026, too.
# ONLY='g5 gen3-*' takes some of them.
set -u; here=$(realpath "$(dirname "$0")/.."); W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
count=0 bad=0
boot() {                                # boot SCRIPT AS [SED-EXPRESSION]…
        local name=${1##*/} as=$2 out; local copy=$W/$name; sed -E "${@:3}" "$1" >"$copy"; chmod 755 "$copy"; count=$((count + 1))
        if ! out=$("$here/run/boot.sh" "$copy" 2>&1); then bad=1; echo "not ok $count - $name $as"; grep -v '^ok' <<<"$out" | sed 's/^/# /'
        elif grep -q '^1\.\.0 # SKIP' <<<"$out"; then echo "ok $count - $name $as ${out#1..0 }"
        else echo "ok $count - $name $as"; fi
}
read -ra words <<<"${ONLY:-*}"
for word in "${words[@]}"; do
        for script in "$here"/{boot,exhaustive}/gpu-$word.sh; do
                case $script in */exhaustive/gpu-boots.sh|*/exhaustive/gpu-gen3-*) continue;; esac
                [ -e "$script" ] || continue
                if grep -q '^# run: .*-S bookworm' "$script"; then boot "$script" "passes on trixie" '/^# run:/s/bookworm/trixie/'
                else boot "$script" "passes on bookworm" -e '/^# run:/s/trixie/bookworm/' -e '/^# tree:/s/$/ containerd_version/'; fi
                case $script in *-no-vpd.sh) continue;; esac            # tests/exhaustive/gpu-gen3-no-vpd.sh
                if grep -q '^# gpu: .* gen[12]' "$script"; then boot "$script" "passes with an image of autumn 2026" '/^# gpu:/s/ gen[12]/ gen3/'; fi
        done
done
echo "1..$count"; exit $bad
