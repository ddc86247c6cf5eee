#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of Karpenter, eksctl, the AWS CLI and Terraform. tests/their-files/expected has what config check and plan say about each file of
# tests/their-files. UPDATE=1 writes it; read the difference. The rest tests options of the command line.
set -u; here=$(dirname "$(realpath "$0")"); nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}"); n=0 bad=0
cd "$here/../their-files" || exit 1
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
try() { local name=$1 output; shift; n=$((n + 1))
        if output=$("$@" 2>&1); then echo "ok $n - $name"; else bad=1; echo "not ok $n - $name"; sed 's/^/# /' <<<"$output"; fi; }
ask() { "$nodestrap" config check "$1" 2>&1; echo "config check: $?"
        { "$nodestrap" plan -c "$1" >"$W/plan"; } 2>&1; echo "plan: $?"; head -2 "$W/plan"; }
expect() { [ -z "${UPDATE:-}" ] || ask "$1" >"expected/$1.txt"; diff -u "expected/$1.txt" <(ask "$1"); }
says() { local text=$1; shift; "$@" >"$W/out" 2>&1; grep -qF -- "$text" "$W/out" || { cat "$W/out"; return 1; }; }
plan() { "$nodestrap" plan "$@"; }
stdin() { "$nodestrap" config check - <"$1"; }

for file in *.yaml *.json; do try "config check and plan print the expected text for $file" expect "$file"; done
try "FILE#NAME selects a group" says 'maxPods: must be' "$nodestrap" config check 'eksctl.yaml#spot'
try "FILE#NAME selects the instance type of the group" says 'machine    p5.48xlarge' plan -c 'eksctl.yaml#gpu'
try "the error for an unknown group lists the groups of the file" says '(gpu, spot)' plan -c 'eksctl.yaml#cpu'
try "a file name may contain #" bash -c "cp terraform-plan.json '$W/a#b'; cd '$W'; '$nodestrap' config check 'a#b'"
try "config check of stdin names the line and the column" says 'stdin:43:11' stdin nodeclass-error.yaml
try "--instance-type overrides the type in the file" says 'machine    p5e.48xlarge' plan -c nodeclass.yaml --instance-type p5e.48xlarge
try "--matrix needs no type" says '2 types, 0 without a plan' plan -c nodeclass.yaml --matrix p5.48xlarge,p5e.48xlarge
try "doctor takes the instance type from the file" says 'p5.48xlarge' "$nodestrap" doctor -c nodeclass.yaml --root /
try "the plan has the Karpenter taint" says 'karpenter.sh/unregistered=:NoExecute' plan -c nodeclass.yaml
try "the plan has the label of the NodePool" says 'team=vision' plan -c nodeclass.yaml
try "two files for two nodes are an error" says 'run the command once for each file' "$nodestrap" config check -c nodeclass.yaml -c terraform-plan.json
try "SARIF output has the line number in the file" says '"startLine": 35' "$nodestrap" config check --output sarif eksctl.yaml
try "--instance-type-file adds a type that no table has" says 'machine    p9.48xlarge' \
        plan -c nodeclass.yaml --instance-type p9.48xlarge --instance-type-file types.txt
try "--instance-type-file gives the GPUs of the type" says '8 GPUs (nvidia-h200,' \
        plan -c nodeclass.yaml --instance-type p9.48xlarge --instance-type-file types.txt
try "--instance-type-file adds a type without GPUs, EFA and disks" says 'maxPods 29' \
        plan -c nodeclass-custom.yaml --instance-type c9.large --instance-type-file types.txt
try "--matrix accepts a type of --instance-type-file" says 'p9.48xlarge         ok' plan -c nodeclass.yaml --matrix p9.48xlarge --instance-type-file types.txt
try "a type that no table has is an error without --instance-type-file" says 'does not know the instance type "p9.48xlarge"' plan -c nodeclass.yaml --instance-type p9.48xlarge
try "another JSON file as --instance-type-file is an error" says 'template-data.json: is not the output of aws ec2' plan -c nodeclass.yaml --instance-type-file template-data.json
try "a missing --instance-type-file is an error" says 'nothing: cannot be read' plan -c nodeclass.yaml --instance-type-file nothing
sed 's/"H200"/"X1"/' types.txt >"$W/gpu.json"; sed 's/"DefaultVCpus": 192/"DefaultVCpus": "many"/' types.txt >"$W/number.json"
try "a GPU that no table has is an error" says 'InstanceTypes[0]: nodestrap does not know this GPU' plan -c nodeclass.yaml --instance-type-file "$W/gpu.json"
try "a text in the place of a number is an error" says 'InstanceTypes[0]: Expected integer' plan -c nodeclass.yaml --instance-type-file "$W/number.json"
echo "1..$n"; exit $bad
