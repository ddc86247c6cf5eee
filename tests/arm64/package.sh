#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages for arm64 on x86-64 from a copy of this tree. Checks their dependencies and contents, and runs them. The RPM
# has the program of the Debian package. Both are left in build/package. tests/exhaustive/packages.sh builds them again elsewhere, and runs
# the RPM build.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; tail -40 <<<"$output" | sed 's/^/# /'; return 1; fi; }
finish() { echo "1..$count"; exit $bad; }
W=$(mktemp -d); trap 'wait; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }

mkdir -p "$top/build/package"
try "deb.sh -a arm64 builds the package with all its build dependencies" "$top/conf/packaging/deb.sh" -o "$W" -a arm64 || finish
deb=$(echo "$W"/nodestrap_*_arm64.deb)
try "lintian finds no errors and no warnings in the arm64 package" lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$W"/*.deb
try "the Debian package has the architecture arm64" is "$(dpkg-deb -f "$deb" Architecture)" arm64
try "the package depends on the libraries that the program is linked with or loads" is \
        "$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | sort | xargs)" \
        "libblkid1 libc6 libcurl4 libexpat1 libjansson4 libmount1 libssl3 libsystemd0 libyaml-0-2 zlib1g"
try "dpkg --no-act accepts the package where its dependencies are installed" dpkg --no-act -i "$deb"
try "dpkg-deb unpacks the package" dpkg-deb -x "$deb" "$W/root"
try "the packaged program is stripped and built for arm64" sh -c 'aarch64-linux-gnu-readelf -hS "$1" | grep -q AArch64 && ! aarch64-linux-gnu-readelf -S "$1" | grep -q debug_info' sh "$W/root/usr/bin/nodestrap"
marked() { aarch64-linux-gnu-readelf -nW "$1" 2>/dev/null | grep -c 'AArch64 feature: BTI, PAC'; }
objects=$top/build-arm64/libnodestrap.a; [ ! -e "$objects" ] || try "every object has the marks of branch protection" is "$(marked "$objects")" "$(ar t "$objects" | wc -l)"
try "the packaged program prints the version of the package" is "$("$W/root/usr/bin/nodestrap" --version | grep -o '[0-9][0-9.]*' | head -1)" "$(dpkg-deb -f "$deb" Version)"
try "the program prints the same first word of --version under the name nodeadm" is "$(cd "$W/root/usr/bin" && bash -c 'exec -a nodeadm ./nodestrap --version' | cut -d' ' -f1)" "$("$W/root/usr/bin/nodestrap" --version | cut -d' ' -f1)"
size() { local size; size=$(stat -c %s "$W/root/usr/bin/nodestrap"); echo "# $size bytes"; [ "$size" -le $((1250 * 1000)) ]; }
try "the packaged program has at most 1250 kB" size
try "the bill of materials of the Debian package is well formed and true" python3 "$top/tests/oracles/spdx.py" "$W/root" "$top"
cp "$W"/*.deb "$top/build/package/"

try "rpm.sh -a arm64 builds the RPM" "$top/conf/packaging/rpm.sh" -o "$W" -a arm64 -- --define "binary $W/root/usr/bin/nodestrap" || finish
rpm=$(echo "$W"/nodestrap-*.aarch64.rpm); cp "$rpm" "$top/build/package/"
try "the header of the RPM has the architecture aarch64" is "$(rpm -qp --qf '%{ARCH}' "$rpm")" aarch64
mkdir "$W/tree"; rpm2archive - <"$rpm" | tar -C "$W/tree" -xz
try "the program in the RPM is built for arm64" sh -c 'aarch64-linux-gnu-readelf -h "$1" | grep -q AArch64' sh "$W/tree/usr/bin/nodestrap"
try "the programs of both packages differ only in the name of their debugging information" sh -c 'aarch64-linux-gnu-objcopy -R .gnu_debuglink "$1" "$3" && aarch64-linux-gnu-objcopy "$2" "$3.2" && cmp "$3" "$3.2"' sh "$W"/{root,tree}/usr/bin/nodestrap "$W/program"
try "the bill of materials of the RPM names no Debian packages" python3 "$top/tests/oracles/spdx.py" "$W/tree" "$top" unknown
native=$(ls -t "$top"/build/package/nodestrap-*.x86_64.rpm 2>/dev/null | head -1)
[ -z "$native" ] || [ -z "$(cd "$top" && find Makefile README.md conf debian src units -newer "$native" -type f | head -1)" ] || native=
[ -n "$native" ] || { skip "the RPM matches the one for x86-64" "none in build/package, or an older one: make package builds it"; finish; }
# A program has a color, 2 if it has 64 bits, and its bytes are those of one architecture.
sums() { rpm -qp --qf '[%{FILENAMES} %{FILEMODES:perms} %{FILECOLORS} %{FILEDIGESTS}\n]' "$1" | grep -v '\.spdx\.json ' | awk '$3 == 2 { $4 = "" } 1'; }
try "the RPM has the same other files as the one for x86-64" diff <(sums "$native") <(sums "$rpm")
libraries() { rpm -qpR "$1" | grep -E '^lib(c|[^c]|c[^.]).*\(\)\(64bit\)$' | sort; }
try "the RPM requires the same libraries as the one for x86-64" diff <(libraries "$native") <(libraries "$rpm" | grep -v '^ld-linux')
finish
