#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our TOML against Python's tomllib: made documents (tests/oracles/toml.py) and the configuration that containerd itself prints.
here=$(dirname "$(readlink -f "$0")")
tool=${HELPERS:-build/tests/helpers}/toml-tool
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

python3 -c 'import tomllib' 2>/dev/null || { echo "1..1"; echo "ok 1 - toml # SKIP python3 with tomllib (3.11) is not there"; exit 0; }
files=()
skips=()
mapfile -t containerds < <("$here/../tools/containerds.sh" 2>"$tmp/why")
for containerd in "${containerds[@]}"; do
        name=$tmp/containerd-$("$containerd" --version | awk '{ print $3 }').toml
        [ -e "$name" ] || "$containerd" config default >"$name" || continue
        [[ " ${files[*]} " == *" $name "* ]] || files+=("$name")
done
[ "${#files[@]}" -gt 0 ] || skips=("containerd's own configuration # SKIP no containerd here: $(tail -1 "$tmp/why")")
out=$(python3 "$here/../oracles/toml.py" "$tool" "${files[@]}")
rc=$?
n=$(grep -cE '^(not )?ok ' <<<"$out")
grep -v '^1\.\.' <<<"$out"
for skip in "${skips[@]}"; do n=$((n + 1)); echo "ok $n - $skip"; done
echo "1..$n"
exit $rc
