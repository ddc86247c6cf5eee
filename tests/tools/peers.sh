#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: peers.sh SUITE DIR PACKAGE...
# Downloads packages of another Debian suite and unpacks them into DIR, installing nothing (dpkg -x): a containerd of trixie or sid
# to parse our files, amazon-ec2-utils for its udev rules. With DIR "-" only the candidate versions are printed.
#   peers.sh sid c21 containerd && c21/usr/bin/containerd --config FILE config dump
set -eu; . "$(dirname "$(realpath "$0")")/lib.sh"
case ${1-} in --deps) deps; exit;; ''|-h|--help) usage; exit;; esac
root; suite=$1 dir=$2; shift 2; apt_for "$suite"
if [ "$dir" = - ]; then apt-cache "${APT[@]}" policy "$@" | awk '/^[^ ]/ { p = $1 } /Candidate/ { print p, $2 }'; exit; fi
tmp=$(mktemp -d -p "$BASE"); trap 'rm -rf "$tmp"' EXIT
mkdir -p "$dir"; (cd "$tmp"; apt-get "${APT[@]}" -qq download "$@" >&2); for f in "$tmp"/*.deb; do dpkg -x "$f" "$dir"; done
