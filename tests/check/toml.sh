#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our TOML against Python's tomllib: made documents (tests/oracles/toml.py) and the configuration that containerd itself prints.
here=$(dirname "$(readlink -f "$0")")
tool=$(dirname "$NODESTRAP")/tests/helpers/toml-tool
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

python3 -c 'import tomllib' 2>/dev/null || { echo "1..1"; echo "ok 1 - toml # SKIP python3 with tomllib (3.11) is not there"; exit 0; }
files=()
skips=()
shopt -s nullglob
for containerd in "${NODESTRAP_TEST_CACHE:-/var/cache/nodestrap-test}"/image-*/rootfs/usr/bin/containerd /usr/bin/containerd; do
        [ -x "$containerd" ] || continue
        name=$tmp/containerd-$("$containerd" --version | awk '{ print $3 }').toml
        [ -e "$name" ] || "$containerd" config default >"$name" || continue
        [[ " ${files[*]} " == *" $name "* ]] || files+=("$name")
done
[ "${#files[@]}" -gt 0 ] || skips=("containerd's own configuration # SKIP no containerd in the test image or in /usr/bin")
out=$(python3 "$here/../oracles/toml.py" "$tool" "${files[@]}")
rc=$?
n=$(grep -cE '^(not )?ok ' <<<"$out")
grep -v '^1\.\.' <<<"$out"
for skip in "${skips[@]}"; do n=$((n + 1)); echo "ok $n - $skip"; done
echo "1..$n"
exit $rc
