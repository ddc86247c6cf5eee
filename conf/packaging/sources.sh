#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: sources.sh [OPTION OF TAR...]
# Writes this tree to stdout, as tar: the files that git would keep, as they are; in an unpacked release, which git does not know, all that
# is there but what builds leave behind. Nothing of git's own, which may hold a token. Where git fails in a clone, its words and a failure; a
# clone without git is as a release.
set -euo pipefail; cd "$(realpath "$(dirname "$0")/../..")"; export LC_ALL=C
# Also in a clone that is somebody else's, as it is in a container that has it as a volume: more than reading its index is done with it here.
git() { command git -c safe.directory="$PWD" "$@"; }
# The .git of a work tree is a file, and what it names may be out of sight.
is_clone() {
        [ -e .git ] || return
        type -P git >/dev/null || { echo "sources.sh: git is missing, so all files of this folder are packed, but what builds leave behind; to leave out what git ignores: apt-get install git" >&2; return 1; }
        [ -d .git ] || git rev-parse -q --git-dir >/dev/null 2>&1
}
if is_clone; then git ls-files -co --exclude-standard -z
else find . \( -name .git -o -path ./build -o -path './build-*' -o -path ./debian/nodestrap -o -path ./debian/.debhelper \) -prune -o \( -type f -o -type l \) -printf '%P\0'; fi |
        sort -z | while IFS= read -rd '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
        tar -cf - --no-recursion --format=gnu --mode=go=rX,u+rw,a-s --owner=0 --group=0 --numeric-owner "$@" --null -T -
