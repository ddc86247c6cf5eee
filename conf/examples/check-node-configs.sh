#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A CI job for a folder of NodeConfigs: checks each, and plans it for the machine that a comment in it names:
# "--instance-type p5.48xlarge". It reads *.userdata and *.yaml, and leaves the plans beside each other. So you review a change of a
# NodeConfig as a change of its plan. Exit status 1 if one is wrong, or none exists. It asks no cloud and changes nothing.
#
#   bash check-node-configs.sh FOLDER [PLANS]
set -u
shopt -s nullglob
folder=$1 plans=${2:-} bad=0
versions=(--kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04)     # those of the image

documents=("$folder"/*.userdata "$folder"/*.yaml)
[ ${#documents[@]} -gt 0 ] || { echo "$folder: no file *.userdata or *.yaml is in it"; exit 1; }
for document in "${documents[@]}"; do
        name=$(basename "$document" .userdata)
        if ! said=$(nodestrap config check --strict -c "file://$document" 2>&1); then
                echo "$name: $said"
                bad=1
                continue
        fi
        type=$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$document" | tail -1)
        if [ -z "$type" ]; then
                echo "$name: which type is it for? A comment with --instance-type TYPE says it"
                bad=1
        elif ! plan=$(nodestrap plan --strict -c "file://$document" --instance-type "$type" "${versions[@]}" 2>&1); then
                echo "$name, as $type: $plan"
                bad=1
        else
                echo "$name, as $type: ${plan##*$'\n'}"
                [ -z "$plans" ] || { mkdir -p "$plans" && printf '%s\n' "$plan" >"$plans/$name.plan"; }
        fi
done
exit $bad
