#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# spec: {kubelet: {flags: [--v=5]}}
# vpc: --cards 1 --count 1
# tree: al2023 vpc binary_alone
# console: NODESTRAP verdict=ok
# The image of EKS with our program in place of nodeadm, and nothing else of the package. Its first unit reads only
# the user data. The second one also reads /etc/eks/nodeadm.d, and settings there make it run the first phase again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

try "/usr and /etc have no file with the name nodestrap" is "$(find /usr /etc -name '*nodestrap*')" ''
check_swapped "our program alone"
try "kubelet has the flag of the file in /etc/eks/nodeadm.d" kubelet_has --v=5
try "kubelet has the labels of the user data" kubelet_has --node-labels=team=example,tier=a-b

finish
