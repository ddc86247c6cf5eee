#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Golden cases: every directory of tests/cases is planned, and what comes out is compared. UPDATE=1 rewrites what is expected.
#   userdata   what is planned                          options   further words of the command line
#   root       optional: the fixture that is looked at, of tests/fixtures
#   shows      which files prove what the case is named for: "plan" for the text, else names of planned files
#   expected/  plan, files/…, stderr, exit
# CASES="a b" runs only these.
set -u; here=$(dirname "$(realpath "$0")"); nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
cd "$here/../cases" || exit 1
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
unset "${!AWS_@}" HTTP_PROXY HTTPS_PROXY NO_PROXY ECR_CREDENTIAL_PROVIDER_BIN_PATH

plan_case() { # NAME RESULT: fills RESULT as expected/ is
        local options=() root=() tree=$tmp/tree file
        rm -rf "$tree" "$tmp/root"; mkdir -p "$2/files" "$tree"
        [ ! -e "$1/options" ] || read -ra options <"$1/options"
        if [ -e "$1/root" ]; then
                mkdir "$tmp/root"; "$here/../fixtures/expand.sh" "$(cat "$1/root")" "$tmp/root"; root=(--root "$tmp/root")
                cp "$1/userdata" "$tmp/root/"   # sources lie below --root, too
        fi
        (cd "$1" && exec "$nodestrap" plan -c file://userdata "${root[@]}" "${options[@]}" --write-to "$tree") >"$2/plan" 2>"$2/stderr"
        echo $? >"$2/exit"
        sed -i '$s/sha256:[0-9a-f]*$/sha256:…/' "$2/plan"       # plans.sh tests ids; here the id would differ with every other difference
        grep -qx plan "$1/shows" || rm "$2/plan"
        while read -r file; do
                [ "$file" = plan ] || [ ! -e "$tree/$file" ] || install -D -m 0644 "$tree/$file" "$2/files/$file"
        done <"$1/shows"
        [ -n "$(ls "$2/files")" ] || rmdir "$2/files"
}

n=0 bad=0
for name in ${CASES:-*}; do
        n=$((n + 1)) got=$tmp/got/$name; mkdir -p "$got"
        plan_case "$name" "$got"
        [ -z "${UPDATE:-}" ] || { rm -rf "$name/expected"; cp -r "$got" "$name/expected"; }
        if difference=$(diff -ruN "$name/expected" "$got" 2>&1); then echo "ok $n - $name"; continue; fi
        bad=1; echo "not ok $n - $name"; sed 's/^/# /' <<<"$difference"
done
echo "1..$n"; exit $bad
