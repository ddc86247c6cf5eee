#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: rpm.sh [-o DIR] [-a x86_64|aarch64] [-- OPTION OF RPMBUILD...]
# Builds the RPM from a copy of this tree, and leaves it and its sources in DIR (default: build/package). On Amazon Linux 2023 the build
# also runs the unit tests. First install its needs there:
#     dnf install -y git rpm-build dnf-plugins-core && dnf builddep -y conf/packaging/nodestrap.spec
# For another architecture, rpmbuild needs its compiler (aarch64-linux-gnu-gcc) and libraries, or --define 'binary FILE'.
set -euo pipefail; top=$(realpath "$(dirname "$0")/../.."); out=$top/build/package arch=$(uname -m); spec=$top/conf/packaging/nodestrap.spec
while getopts o:a: o; do case $o in o) out=$OPTARG;; a) arch=${OPTARG/#arm64/aarch64};; *) exit 2;; esac; done; shift $((OPTIND - 1))
die() { echo "rpm.sh: $*" >&2; exit 1; }
command -v rpmbuild >/dev/null || die "rpmbuild is missing: apt-get install rpm, or dnf install rpm-build"
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
name=nodestrap-$(awk '/^Version:/ { print $2 }' "$spec"); mkdir -p "$out" "$W/SOURCES"
changed=$(date -ud "$(sed -n '/^%changelog/ { n; s/^\* \(.*20[0-9][0-9]\) .*/\1/p }' "$spec") 00:00Z" +%s)
"$top/conf/packaging/sources.sh" --mtime="@$changed" --transform="s|^|$name/|" | gzip -9n >"$W/SOURCES/$name.tar.gz"      # the same bytes for the same files
# The commit, for --version: the copy has no git.
[ -n "${COMMIT-}" ] || [ ! -e "$top/.git" ] || COMMIT=$(git -c safe.directory="$top" -C "$top" describe --always --exclude='*' --dirty --abbrev=12 2>/dev/null) || :
export COMMIT=${COMMIT-}
umask 022; unset MAKEFLAGS MFLAGS MAKELEVEL SAN O CC CFLAGS CPPFLAGS LDFLAGS        # set by a calling make
rpm -q rpm >/dev/null 2>&1 || set -- --nodeps "$@"       # rpm does not know Debian packages
rpmbuild -bb --quiet --target "$arch" --define "_topdir $W" "$@" "$spec" >"$W/log" 2>&1 || {
        cat "$W/log" >&2
        [ "$arch" = "$(uname -m)" ] || die "to build for $arch, install its compiler and libraries: make deps ARCH=arm64"
        exit 1
}
cp "$W/SOURCES/$name.tar.gz" "$W"/RPMS/*/*.rpm "$out/"
ls "$W"/RPMS/*/*.rpm | sed "s|.*/|$out/|"
