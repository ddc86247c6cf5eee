#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: g7e gen2
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.24gb: 4}}]}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A g7e.24xlarge from power-on whose GPUs are to be divided: instances, then their device nodes, then CDI.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' 'nvidia-smi -L' 'cdi-generated devices=16' 'kubelet gpus=4 fabric=not-supported instances=16 cdi=yes'
try "CDI was written once, with all instances" once cdi-generated
try "fabric manager never ran" never 'fm-|nvlsm'
printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {accelerator: {nvidia: {mig: off}}}\n' >/etc/eks/nodeadm.d/70-mig.yaml
# shellcheck disable=SC2046  # words
try "init succeeds after a later file turns MIG off" nodestrap init $(sources) --config-cache /run/eks/nodeadm/config.json
try "no instance is left, and MIG mode is off on every GPU" is "$(grep -c '^instance' /var/lib/fake-nvml.state) $(grep -Ec '^mig [0-3] 0 0$' /var/lib/fake-nvml.state)" "0 4"
try "the CDI file matches the undivided GPUs" is "$(cdi_state)" yes

finish
