#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 900
# kube: 1.37.0
# cluster: down no-controllers
# tree: kube containerd2 kubelet_oracle
# Kubelet settings that need cgroup v2: the machine of tests/cluster/settings-1.37.sh may not have it, this one has.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/guest.sh
. /vmtest/cluster.sh

compared() {
        python3 /vmtest/tests/oracles/kubelet.py --nodestrap /usr/bin/nodestrap --kubelet /usr/bin/kubelet --containerd /usr/bin/containerd --show \
                --only 'cgroup v2/*' -n 0 --also /vmtest/tests/oracles/kubelet-cases.jsonl >said 2>&1
        local r=$?; cat said; return $r
}
try "plan and kubelet agree on swap, MemoryQoS and other settings that need cgroup v2" compared && sed 's/^/# /' said

finish
