#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make portable ARCH=arm64. Below a root with no other file, the static program plans as x86-64 does. If the one for x86-64 is built, one
# image has both.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2317  # tmp and here are its; what eval and sh get is expanded there
. "$(dirname "$0")/../mock/lib.sh"
top=$(realpath "$here/../..") x86=$(realpath "${NATIVE:-$top/build/nodestrap}") empty=$tmp/empty made=$tmp/made; mkdir -p "$empty" "$made"
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
ok 'make portable ARCH=arm64 succeeds' env -u MAKEFLAGS -u MAKELEVEL -u CC -u O make -s -C "$top" PORTABLE_DIR="$made" ARCH=arm64 portable
static=$made/nodestrap-linux-arm64
[ -x "$static" ] || { done_testing; exit; }
echo "# $(stat -c %s "$static") bytes"
no_libraries() { aarch64-linux-gnu-readelf -hW "$static" | grep -q AArch64 && ! aarch64-linux-gnu-readelf -dlW "$static" | grep -E 'NEEDED|INTERP'; }
ok 'the static program is for arm64 and needs no library' no_libraries
cp "$static" "$empty/nodestrap"; cp "$top"/conf/examples/*.userdata "$empty"
full() { (cd "$empty" && exec env -i "$x86" "$@"); }
alone() { env -i PATH="$PATH" chroot "$empty" /nodestrap "$@"; }
said() { "$@" 2>&1; echo "exit $?"; }
same() { diff <(said full "$@") <(said alone "$@"); }
plans() { local file type
        for file in "$empty"/*.userdata; do
                type=$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$file" | tail -1)
                same plan -c "${file##*/}" --instance-type "$type" --output json || { echo "$file"; return 1; }
        done; }
ok 'the static program plans each example as x86-64 does' plans
ok 'config check refuses a wrong file and prints the same as x86-64' eval 'sed "s/strategy: RAID0/strategy: RAID5/" "$empty/p5-48xlarge.userdata" >"$empty/bad" && same config check bad && ! alone config check bad >/dev/null 2>&1'
ok 'init fails with the message that this build lacks it' eval '[ "$(alone init 2>&1)" = "nodestrap: failed (2 EUSAGE) at start: init is not in this build: install the package on the node" ]'
ok 'explain EFABRIC says what to do' eval 'alone explain EFABRIC | grep -q "^    Do: "'
programs=("arm64=$static")
# One image cannot have builds of different commits.
[ ! -x "${x86%/*}/static/nodestrap" ] || [ "$("${x86%/*}/static/nodestrap" version)" != "$(alone version)" ] || { strip -o "$made/nodestrap-linux-amd64" "${x86%/*}/static/nodestrap" && programs+=("amd64=$made/nodestrap-linux-amd64"); }
ok 'image.sh builds an image of the static programs' "$top/conf/packaging/image.sh" -o "$made" "$made"/nodestrap-linux-*
ok 'the image is well formed and has the static programs' python3 "$here/../oracles/image.py" "$made"/*-oci.tar "${programs[@]}"
if [ ${#programs[@]} = 2 ]; then ok "the plain docker tags name the image for x86-64" eval 'tar -xOf "$made"/*-oci.tar manifest.json | grep -q "amd64\",\"nodestrap:[^\"]*\",\"nodestrap:latest\""'
else skip "the plain docker tags name the image for x86-64" 'no static program of this commit for x86-64 was built'; fi
done_testing
