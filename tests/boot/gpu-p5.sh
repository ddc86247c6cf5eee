#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/p5-48xlarge.userdata
# gpu: p5-48xlarge gen2
# spec: {featureGates: {InstanceIdNodeName: true}, instance: {localStorage: {strategy: ""}, hugePages: {mode: keep}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5.48xlarge from power-on: NVSwitches on PCI, fabric manager on the host, 32 EFA devices.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "the efa module was loaded before kubelet started" in_order 'module efa' kubelet
try "fabric manager was started once" once fm-
try "NVLSM never ran" never nvlsm
try "three runs call nvidia-smi and nvidia-ctk only once" is "$(programs_asked)" 2
try "status.json says that the fabric of 8 GPUs is complete" is "$(value accelerator states)" "{'Completed': 8}"

finish
