#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: peers.sh SUITE DIR PACKAGE...
#        peers.sh --cached NAME SUITE PACKAGE...
# Downloads packages of another Debian suite and unpacks them into DIR (dpkg -x), without installing. Tests use a containerd of trixie or sid
# to parse our files, and amazon-ec2-utils for its udev rules. With DIR "-" only the candidate versions are printed. With --cached it unpacks them into
# the cache, once a week for all callers, and prints the directory. With NODESTRAP_TEST_NO_BUILD=1, or without the mirror, it takes the
# cached ones.
#   peers.sh sid c21 containerd && c21/usr/bin/containerd --config FILE config dump
set -eu; . "$(dirname "$(realpath "$0")")/lib.sh"
case ${1-} in --deps) deps; exit;; ''|-h|--help) usage; exit;; esac
root; mkdir -p "$BASE"; tmp=$(mktemp -d -p "$BASE"); trap 'rm -rf "$tmp"' EXIT; chmod 755 "$tmp"
if [ "${1-}" = --cached ]; then
        dir=$BASE/$2; shift 2
        exec 9>"$dir.lock"; flock 9
        [ -z "$(find "$dir" -maxdepth 0 -mtime -7 2>/dev/null)" ] || { echo "$dir"; exit; }
        if [ "${NODESTRAP_TEST_NO_BUILD:-0}" != 0 ]; then
                [ -d "$dir" ] || skip "no $dir here yet (make images makes it)"
                echo "$dir"; exit
        fi
        if "$0" "$1" "$tmp/new" "${@:2}"; then
                touch "$tmp/new"                                # dpkg -x gives it the date of the package
                [ ! -d "$dir" ] || mv "$dir" "$tmp/old"         # who uses it has its files open; it goes as a whole
                mv "$tmp/new" "$dir"
        else
                rc=$?
                [ -d "$dir" ] || exit $rc
                say "$dir is more than a week old and stays so: it cannot be fetched again now"
        fi
        echo "$dir"; exit
fi
suite=$1 dir=$2; shift 2; apt_for "$suite"
if [ "$dir" = - ]; then apt-cache "${APT[@]}" policy "$@" | awk '/^[^ ]/ { p = $1 } /Candidate/ { print p, $2 }'; exit; fi
mkdir "$tmp/debs"; (cd "$tmp/debs" && apt-get "${APT[@]}" -qq download "$@" >&2) || skip "cannot download $*"
mkdir -p "$dir"
for f in "$tmp"/debs/*.deb; do dpkg -x "$f" "$dir"; done
