#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: p6e-gb200 gen2
# spec: {kubelet: {config: {maxPods: 110}, flags: [--node-labels=pool=rack]}}
# spec: {accelerator: {nvidia: {imex: {label: true}}}}
# tree: enabled gpu kubelet_enabled
# console: NODESTRAP verdict=ok
# A tray of a GB200 rack registers with its clique, which the fabric reports; also where the image enables kubelet.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

label=--node-labels=nvidia.com/gpu.clique=7b968a6d-c8aa-45e1-9e07-e1e51be99c31
argv() { tr '\0' '\n' </run/recording-kubelet/argv; }
has() { argv | grep -qxF -- "$1" || { argv; return 1; }; }
# shellcheck disable=SC2046 # sources are words
again() { nodestrap init --skip config $(sources) --config-cache /run/eks/nodeadm/config.json; }
spec() { printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {accelerator: {nvidia: {imex: {label: %s}}}}\n' "$1" >/etc/eks/nodeadm.d/99-spec.yaml; }
clique() { sed -i "s/^cluster .*/cluster $1/" /etc/fake-nvml; }

check_gpu_node 'cdi-generated devices=4' 'kubelet gpus=4 fabric=completed'
try "kubelet has the label" has $label.1
try "kubelet also has the label of the configuration" has --node-labels=pool=rack
try "the label is not a taint" is "$(value verdict) $(cat /run/nodestrap/metrics.prom | grep '^nodestrap_tainted')" "ok nodestrap_tainted 0"

kubelet=$(property kubelet MainPID)
# shellcheck disable=SC2046 # sources are words
try "init --daemon kubelet succeeds without a look at the fabric" nodestrap init --skip config --daemon kubelet $(sources) --config-cache /run/eks/nodeadm/config.json
try "init --daemon kubelet does not restart kubelet" is "$(property kubelet MainPID)" "$kubelet"

said() { nodestrap status --long | grep -F -- "$1" || { nodestrap status --long; return 1; }; }
try "status has no warning about a new Node" no said node-clique
clique "7b968a6dc8aa45e19e07e1e51be99c31 32766"
try "init succeeds after the rack was divided again" again
try "the warning has the kubectl command for the label" said "kubectl label --overwrite node NAME ${label#--node-labels=}.32766"
try "kubelet has the new label" has $label.32766
try "init restarts kubelet for the new label" starts 2

spec false
try "init succeeds after the label is off" again
try "kubelet has no clique label after the label is off" no sh -c "tr '\\0' '\\n' </run/recording-kubelet/argv | grep gpu.clique"
try "the warning has the kubectl command that removes the label" said "kubectl label --overwrite node NAME nvidia.com/gpu.clique-"
try "the file of the label is gone" no test -e /run/nodestrap/kubelet-environment

finish
