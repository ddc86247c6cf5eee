#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The boots of machines with GPUs (tests/boot/gpu-*.sh) once more, each on the other Debian: what depends on systemd's version, such as
# which file hides which, is seen with 252 and 257. ONLY='g5 gen3-*' takes some of them.
set -u; here=$(realpath "$(dirname "$0")/.."); W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
count=0 bad=0
for word in ${ONLY:-*}; do
        for script in "$here"/boot/gpu-$word.sh; do
                name=${script##*/}; suite=bookworm; ! grep -q '^# run: .*-S bookworm' "$script" || suite=trixie
                sed -E "s/^(# run: .*-S )[a-z]+/\\1$suite/; s/^(# tree: .*)/\\1$([ $suite = trixie ] || echo ' containerd_version')/" "$script" >"$W/$name"; chmod 755 "$W/$name"
                count=$((count + 1))
                if out=$("$here/run/boot.sh" "$W/$name" 2>&1); then
                        grep -q '# SKIP' <<<"$out" && { printf '1..0 %s\n' "$(grep -o '# SKIP.*' <<<"$out" | head -1)"; exit; }
                        echo "ok $count - $name on $suite"
                else
                        bad=1; echo "not ok $count - $name on $suite"; grep -v '^ok' <<<"$out" | sed 's/^/# /'
                fi
        done
done
echo "1..$count"; exit $bad
