#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 2 -m 3G -t 600
# kube: 1.37.0
# tree: enabled kube
# spec: {instance: {localStorage: {strategy: RAID0}}}
# console: NODESTRAP verdict=ok
# From power-on to a Node that is Ready: kubelet 1.37.0 registers with its API server.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
. /vmtest/ready.sh

check_ready

finish
