#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: deb.sh [-o DIR] [-a amd64|arm64] [-- OPTION OF DPKG-BUILDPACKAGE...]
# Builds the Debian package from a copy of this tree, in a folder of its own, and leaves it and its debugging information in DIR
# (default: build/package). To build for another architecture, first install its compiler and libraries: make deps ARCH=arm64.
set -euo pipefail; top=$(realpath "$(dirname "$0")/../.."); out=$top/build/package arch=''
while getopts o:a: o; do case $o in o) out=$OPTARG;; a) arch=${OPTARG/#aarch64/arm64};; *) exit 2;; esac; done; shift $((OPTIND - 1))
die() { echo "deb.sh: $*" >&2; exit 1; }
for c in dpkg-buildpackage dh; do command -v $c >/dev/null || die "$c is missing: apt-get install build-essential debhelper"; done
here=$(dpkg --print-architecture) profiles=nocheck; : "${arch:=$here}"
[ "$arch" = "$here" ] || profiles=cross,nocheck
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
mkdir -p "$out" "$W/nodestrap"; "$top/conf/packaging/sources.sh" | tar -C "$W/nodestrap" -xf -
# The commit, for --version: the copy has no git.
[ -n "${COMMIT-}" ] || [ ! -e "$top/.git" ] || COMMIT=$(git -c safe.directory="$top" -C "$top" describe --always --exclude='*' --dirty --abbrev=12 2>/dev/null) || :
export COMMIT=${COMMIT-}
unset MAKEFLAGS MFLAGS MAKELEVEL SAN O CC CFLAGS CPPFLAGS LDFLAGS        # set by a calling make; DEB_CFLAGS_APPEND stays, for the package
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck parallel=$(nproc)}
(cd "$W/nodestrap" && umask 022 && dpkg-buildpackage "-a$arch" "-P$profiles" -us -uc -b "$@") >"$W/log" 2>&1 || {
        cat "$W/log" >&2
        ! grep -q 'Unmet build dependencies' "$W/log" || die "build dependencies are missing: apt-get install build-essential, make deps$([ "$arch" = "$here" ] || echo " ARCH=$arch")"
        exit 1
}
cp "$W"/*.deb "$out/"
for f in "$W"/*.deb; do echo "$out/${f##*/}"; done
