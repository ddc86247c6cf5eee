#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: peers.sh SUITE DIR PACKAGE...
#        peers.sh --cached NAME SUITE PACKAGE...
# Downloads packages of another Debian suite and unpacks them into DIR, installing nothing (dpkg -x): a containerd of trixie or sid
# to parse our files, amazon-ec2-utils for its udev rules. With DIR "-" only the candidate versions are printed. With --cached they are
# unpacked into the cache, once a week however many ask, and the directory is printed; NODESTRAP_TEST_NO_BUILD=1 takes what is there.
#   peers.sh sid c21 containerd && c21/usr/bin/containerd --config FILE config dump
set -eu; . "$(dirname "$(realpath "$0")")/lib.sh"
case ${1-} in --deps) deps; exit;; ''|-h|--help) usage; exit;; esac
root; cached=
if [ "${1-}" = --cached ]; then
        cached=1 dir=$BASE/$2; shift 2; mkdir -p "$BASE"
        exec 9>"$dir.lock"; flock 9
        [ -z "$(find "$dir" -maxdepth 0 -mtime -7 2>/dev/null)" ] || { echo "$dir"; exit; }
        if [ "${NODESTRAP_TEST_NO_BUILD:-0}" != 0 ]; then
                [ -d "$dir" ] || skip "no $dir here yet (make images makes it)"
                echo "$dir"; exit
        fi
        set -- "$1" "$dir" "${@:2}"
fi
suite=$1 dir=$2; shift 2; apt_for "$suite"
if [ "$dir" = - ]; then apt-cache "${APT[@]}" policy "$@" | awk '/^[^ ]/ { p = $1 } /Candidate/ { print p, $2 }'; exit; fi
tmp=$(mktemp -d -p "$BASE"); trap 'rm -rf "$tmp"' EXIT; chmod 755 "$tmp"
(mkdir "$tmp/debs"; cd "$tmp/debs"; apt-get "${APT[@]}" -qq download "$@" >&2)
if [ -n "$cached" ]; then           # who uses the old one has its files open; it goes as a whole
        mkdir "$tmp/new"
        for f in "$tmp"/debs/*.deb; do dpkg -x "$f" "$tmp/new"; done
        touch "$tmp/new"            # dpkg -x gives it the date of the package
        [ ! -d "$dir" ] || mv "$dir" "$tmp/old"
        mv "$tmp/new" "$dir"; echo "$dir"
else
        mkdir -p "$dir"
        for f in "$tmp"/debs/*.deb; do dpkg -x "$f" "$dir"; done
fi
