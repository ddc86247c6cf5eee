#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The suite package builds the RPM from the program of the Debian package, for both have one Makefile. Here %build and %check of the RPM
# give the same bytes. The packages for arm64 are built again, elsewhere and by other ways.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; tail -40 <<<"$output" | sed 's/^/# /'; return 1; fi; }
for c in dpkg-buildpackage dh rpmbuild; do command -v $c >/dev/null || { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && exit 99; echo "1..0 # SKIP no $c here"; exit; }; done
deb=$top/conf/packaging/deb.sh rpm=$top/conf/packaging/rpm.sh cross=$top/tests/tools/cross.sh
mkdir -p "$top/build"; W=$(mktemp -d -p "$top/build"); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM        # the root of cross.sh has this path as well
export COMMIT=0123456789ab      # the copy has no git
# A copy of this tree elsewhere, whose files have an older date.
copy=$W/copy; mkdir "$copy" "$W"/{amd64,arm64}; "$top/conf/packaging/sources.sh" | tar -C "$copy" -xf - && find "$copy" -exec touch -h -d 2001-02-03 {} +

both() {        # ARCHITECTURE, AS RPM CALLS IT, FOLDER, COMMAND that runs it...
        local arch=$1 cpu=$2 built=$3; shift 3
        try "deb.sh builds the package for $arch" "$@" "$deb" -o "$built" -a "$arch" || return
        dpkg-deb -x "$built"/nodestrap_*.deb "$built/root"
        try "rpm.sh packs the program of the Debian package for $cpu" "$@" "$rpm" -o "$built/packed" -a "$cpu" -- --define "binary $built/root/usr/bin/nodestrap"
        try "rpm.sh builds its own program for $cpu" "$@" "$copy/conf/packaging/rpm.sh" -o "$built/own" -a "$cpu"
        try "both RPMs for $cpu have the same bytes" cmp "$built"/{packed,own}/nodestrap-0*."$cpu".rpm
        try "deb.sh builds the package for $arch from older files, in another time zone, with one job" "$@" env TZ=Asia/Tokyo DEB_BUILD_OPTIONS='nocheck parallel=1' "$copy/conf/packaging/deb.sh" -o "$built/again" -a "$arch"
        try "the second package for $arch has the same bytes" cmp "$built"/nodestrap_*.deb "$built"/again/nodestrap_*.deb
}
both amd64 x86_64 "$W/amd64"
"$cross" true >/dev/null 2>"$W/log"; rc=$?
if [ $rc = 77 ]; then count=$((count + 1)); echo "ok $count - deb.sh and rpm.sh build packages for arm64 # SKIP $(sed -n 's/.*skip: //p' "$W/log" | tail -1)"
else both arm64 aarch64 "$W/arm64" "$cross"; fi
echo "1..$count"; exit $bad
