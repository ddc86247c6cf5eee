#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian package for arm64, built on x86-64 from a copy of this tree: what it asks for, what is in it, and that it runs there. Built
# a second time, elsewhere and out of files of another day, it has the same bytes.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; tail -40 <<<"$output" | sed 's/^/# /'; return 1; fi; }
finish() { echo "1..$count"; exit $bad; }
W=$(mktemp -d); trap 'wait; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }

mkdir -p "$W/src" "$W/again/deeper/tree"
(cd "$top" && find . \( -name .git -o -path ./build -o -path './build-*' \) -prune -o \( -type f -o -type l \) -print | tar -cf - -T -) | tar -C "$W/src" -xf -
build() { cd "$W/src" && DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -aarm64 -us -uc -b; }
build_again() {
        find . -exec touch -h -d 2001-02-03 {} + && umask 077 && env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
                DEB_BUILD_OPTIONS="nocheck parallel=1" dpkg-buildpackage -aarm64 -us -uc -b
}
cp -r "$W/src/." "$W/again/deeper/tree"; (cd "$W/again/deeper/tree" && build_again >"$W/again/log" 2>&1; echo $? >"$W/again/rc") & again=$!
try "dpkg-buildpackage -aarm64 -us -uc -b, whose build dependencies are all there" build || finish
deb=$(echo "$W"/nodestrap_*_arm64.deb)
try "lintian has nothing to say" lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$W"/nodestrap_*_arm64.changes
try "it is for arm64" is "$(dpkg-deb -f "$deb" Architecture)" arm64
try "it asks for what it is linked with and what it loads" is \
        "$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | sort | xargs)" \
        "libblkid1 libc6 libcurl4 libexpat1 libjansson4 libmount1 libssl3 libsystemd0 libyaml-0-2 zlib1g"
try "dpkg would install it where that is there" dpkg --no-act -i "$deb"
try "it unpacks" dpkg-deb -x "$deb" "$W/root"
try "its program is stripped, and for arm64" sh -c 'aarch64-linux-gnu-readelf -hS "$1" | grep -q AArch64 && ! aarch64-linux-gnu-readelf -S "$1" | grep -q debug_info' sh "$W/root/usr/bin/nodestrap"
try "it says the package's version" is "$("$W/root/usr/bin/nodestrap" --version | grep -o '[0-9][0-9.]*' | head -1)" "$(dpkg-deb -f "$deb" Version)"
try "nodeadm is one of its names" is "$(cd "$W/root/usr/bin" && bash -c 'exec -a nodeadm ./nodestrap --version' | cut -d' ' -f1)" "$("$W/root/usr/bin/nodestrap" --version | cut -d' ' -f1)"
size() { local size; size=$(stat -c %s "$W/root/usr/bin/nodestrap"); echo "# $size bytes"; [ "$size" -le $((960 * 1000)) ]; }
try "it is small" size
try "the bill of materials is well formed and true" python3 "$top/tests/oracles/spdx.py" "$W/root" "$top"
mkdir -p "$top/build/package" && cp "$deb" "$top/build/package/"
wait $again; try "the package built elsewhere" sh -c 'cat "$1/log"; exit "$(cat "$1/rc")"' sh "$W/again"
same_packages() { local f; for f in "$W"/*.deb; do cmp "$f" "$W/again/deeper/${f##*/}" || return; done; }
try "has the same bytes" same_packages
finish
