# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/cluster/ready-*.sh inside their guests: from power-on to a Node that is Ready, by our units alone.
# shellcheck source=tests/cluster/lib/guest.sh
. /vmtest/cluster.sh

kubelet_says() { journalctl -b -u kubelet --no-pager -o cat | grep -E '^[EF]' | tail -12 | cut -c1-400 | sed 's/^/# /'; }
check_ready() {
        try "nodestrap-config.service succeeded" exited nodestrap-config 0
        try "nodestrap-run.service is active" active nodestrap-run
        try "the Node is Ready" node_ready || kubelet_says
        host kubectl get node "$NODE" -o yaml >out/node.yaml
        host kubectl describe node "$NODE" >out/node.txt
        try "kubelet.service is active" active kubelet
        try "kubelet was started once" is "$(property kubelet NRestarts)" 0
        try "no ordering cycle was broken" no_cycle
        journalctl -b -u kubelet --no-pager -o short-monotonic >out/kubelet
}
