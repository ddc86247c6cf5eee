#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 600
# kube: 1.37.0
# cluster: down
# tree: enabled kube
# console: NODESTRAP verdict=ok
# The API server is down when the node boots, and comes later: kubelet goes on by itself, without another start.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
. /vmtest/cluster.sh

pid() { property kubelet MainPID; }
try "nodestrap-run.service is active without an API server" active nodestrap-run
# kubelet says so in the end, and goes on
try "kubelet has no API server to register with" timeout 300 sh -c "journalctl -b -f -n all -o cat -u kubelet | grep -m1 -F 'Unable to register node with API server'"
before=$(pid)
try "the API server comes" host api_start
try "the Node is Ready" node_ready
try "kubelet is the one of the boot" is "$(pid)" "$before"

finish
