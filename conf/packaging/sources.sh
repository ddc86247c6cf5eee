#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: sources.sh [OPTION OF TAR...]
# Writes this tree to stdout, as tar: the tracked and untracked files that git does not ignore; in an unpacked release, without git, all
# but build outputs. It leaves out .git, which may hold a token. If git fails in a clone, the script prints its error and fails; a
# clone on a machine without git counts as a release.
set -euo pipefail; cd "$(realpath "$(dirname "$0")/../..")"; export LC_ALL=C
# Also for a clone of another owner, such as a volume in a container: git would otherwise refuse to read it.
git() { command git -c safe.directory="$PWD" "$@"; }
# The .git of a linked worktree is a file, and the folder that it names may be unreachable.
is_clone() {
        [ -e .git ] || return
        type -P git >/dev/null || { echo "sources.sh: git is missing, so all files of this folder except build outputs are packed; to leave out the files that git ignores: apt-get install git" >&2; return 1; }
        [ -d .git ] || git rev-parse -q --git-dir >/dev/null 2>&1
}
if is_clone; then git ls-files -co --exclude-standard -z
else find . \( -name .git -o -path ./build -o -path './build-*' -o -path ./debian/nodestrap -o -path ./debian/.debhelper \) -prune -o \( -type f -o -type l \) -printf '%P\0'; fi |
        sort -z | while IFS= read -rd '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
        tar -cf - --no-recursion --format=gnu --mode=go=rX,u+rw,a-s --owner=0 --group=0 --numeric-owner "$@" --null -T -
