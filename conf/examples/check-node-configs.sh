#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A CI job for a folder of NodeConfigs: checks each, and plans it for the machine that a comment in it names:
# "--instance-type p5.48xlarge". It reads *.userdata and *.yaml, and writes the plans into one folder. So you review a change of a
# NodeConfig as a change of its plan. It exits with 1 if one is wrong, or none exists. It calls no AWS API and changes no node.
#
#   bash check-node-configs.sh FOLDER [PLANS [EARLIER]]
#
# On GitHub each mistake becomes an annotation at its line. The summary of the job gets a page for each NodeConfig: its plan, or, with the
# PLANS of another commit in EARLIER, what changes.
set -u
shopt -s nullglob
folder=$1 plans=${2:-} earlier=${3:-} page=${GITHUB_STEP_SUMMARY:-/dev/null} bad=0
versions=(--kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04)     # put those of your image here

plan() { nodestrap plan --strict "$document" --instance-type "$type" "${versions[@]}" "$@"; }
wrong() { # LABEL TEXT
        echo "$1: $2"
        bad=1
        [ "${GITHUB_ACTIONS:-}" = true ] || return
        sed -nE "s/%/%25/g; s|^(.+):([0-9]+):([0-9]+): (error\|warning): (.*)|::\4 file=\1,line=\2,col=\3::\5|p" <<<"$2" | grep . ||
                echo "::error file=$document::$(tail -1 <<<"${2//\%/%25}")"
}
documents=("$folder"/*.userdata "$folder"/*.yaml)
[ ${#documents[@]} -gt 0 ] || { echo "$folder: it has no *.userdata or *.yaml file"; exit 1; }
for document in "${documents[@]}"; do
        name=$(basename "$document" .userdata)
        type=$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$document" | tail -1)
        echo "## $name" >>"$page"
        if ! said=$(nodestrap config check --strict "$document" 2>&1); then
                wrong "$name" "$said"
                printf '\n```text\n%s\n```\n' "$said" >>"$page"
        elif [ -z "$type" ]; then
                wrong "$name" "no instance type: add a comment with --instance-type TYPE"
        elif ! plan=$(plan 2>&1); then
                wrong "$name, as $type" "$plan"
                plan --output markdown >>"$page" 2>/dev/null
        else
                echo "$name, as $type: ${plan##*$'\n'}"
                [ -z "$plans" ] || { mkdir -p "$plans" && printf '%s\n' "$plan" >"$plans/$name.plan" && plan --output json >"$plans/$name.json" 2>/dev/null; }
                before=()
                [ ! -e "$earlier/$name.json" ] || before=(--diff "$earlier/$name.json")
                plan --output markdown "${before[@]}" >>"$page" 2>/dev/null
        fi
done
exit $bad
