#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 600
# kube: 1.33.13
# tree: enabled kube
# spec: {failurePolicy: join-tainted, instance: {sysctl: {net.ipv4.no_such_setting: "1"}}}
# console: NODESTRAP verdict=tainted code=ESYSCTL
# console: nodestrap: failed \(40 ESYSCTL\) at set-sysctl:net.ipv4.no_such_setting: .*; and the node cannot join with a taint: Node
# console: NODESTRAP verdict=ok
# A node that is unwell over three boots, with the real kubelet. It registers with a taint. After an admin removes the taint it stays out,
# until the admin does what the verdict says. With its Node deleted and all well it joins as any other.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/ready.sh
. /vmtest/ready.sh

field() { host kubectl get node "$NODE" -o "jsonpath=$1{\"\\n\"}"; }
# hears REASON PATTERN: the cluster does, from the Event of that reason, sooner or later
hears() {
        for _ in {1..600}; do
                host kubectl get events -n default --field-selector "reason=$1" -o 'jsonpath={.items[*].message}{"\n"}' >out/event
                ! grep -E -- "$2" out/event || return 0
                sleep 0.1
        done
        cat out/event; return 1
}
taints() { field '{range .spec.taints[*]}{.key}={.value}:{.effect} {end}'; }
has_taint() { grep -F 'nodestrap/unhealthy=ESYSCTL:NoSchedule ' <<<"$(taints)"; }
ready() { node_ready || { kubelet_says; false; }; }
status() { python3 -c 'import json, sys; print(*(json.load(open("/run/nodestrap/status.json"))[k] for k in sys.argv[1:]))' "$@"; }
runs_over() { systemctl start nodestrap-run; }  # waits for the job of the boot

first() {
        try "the run phase ends well" runs_over
        try "a node with a taint is Ready" ready
        try "the verdict is tainted" is "$(status verdict code)" "tainted ESYSCTL"
        try "its Node has the taint" has_taint
        try "the Node has the label of the failure" is "$(field '{.metadata.labels.nodestrap/unhealthy}')" ESYSCTL
        try "kubelet was started once" is "$(property kubelet NRestarts)" 0
        field '{}' >out/node-tainted.json
        try "the cluster hears of it" hears NodestrapTainted '^ESYSCTL at set-sysctl:.*; kubelet registers the node with the taint nodestrap/unhealthy=ESYSCTL:NoSchedule'
        try "an admin takes the taint off" host kubectl taint node "$NODE" nodestrap/unhealthy-
        field '{.metadata.uid}' >out/uid
        systemctl reboot
}
second() {
        local advice
        try "the next boot fails again" no runs_over
        try "the verdict has the code of the failure" is "$(status verdict code exit)" "failed ESYSCTL 40"
        try "status says that the Node exists without the taint" grep -F "Node $NODE of cluster training exists without the taint nodestrap/unhealthy, and a node cannot taint itself: kubelet stays down. " <<<"$(status text)"
        try "the cluster gets an Event with the commands" hears NodestrapFailed "; and the node cannot join with a taint: Node $NODE .*: kubelet stays down. Run kubectl taint node $NODE nodestrap/unhealthy=ESYSCTL:NoSchedule, or kubectl delete node $NODE\. .*; kubelet was not started"
        try "kubelet stays down" is "$(property kubelet ActiveState) $(property kubelet ExecMainStartTimestampMonotonic)" "inactive 0"
        try "systemctl start kubelet does not start it either" no sh -c 'systemctl start kubelet; systemctl is-active kubelet'
        try "its Node is not Ready" host kubectl wait --for=condition=Ready=Unknown --timeout=180s "node/$NODE"
        advice=$(status text | grep -o 'kubectl taint node [^,]*:NoSchedule')
        # shellcheck disable=SC2086 # words
        try "the commands of the verdict work" host $advice
        try "a run by hand then succeeds" runs_over
        try "the node is Ready" ready
        try "the Node is still the same, with the taint" sh -c "[ '$(field '{.metadata.uid}')' = '$(cat out/uid)' ] && [ -n '$(has_taint)' ]"
        try "the verdict is that again" is "$(status verdict code)" "tainted ESYSCTL"
        systemctl stop kubelet
        try "an admin deletes it" host kubectl delete node "$NODE"
        printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {failurePolicy: join-tainted, instance: {sysctl: {net.ipv4.ip_forward: "1"}}}\n' >/etc/eks/nodeadm.d/59-well.yaml
        rm /etc/eks/nodeadm.d/50-spec.yaml
        systemctl reboot
}
third() {
        try "when all is well the node is Ready" ready
        try "the verdict is ok" is "$(status verdict code)" "ok OK"
        try "its Node is a new one" [ "$(field '{.metadata.uid}')" != "$(cat out/uid)" ]
        try "the Node has no taint" no has_taint
        try "the Node no longer has the label" is "$(field '{.metadata.labels.nodestrap/unhealthy}')" ""
        try "the cluster hears that it has passed" hears NodestrapRecovered '^ESYSCTL at set-sysctl:.* is resolved'
        try "the journal says that kubelet no longer registers the taint" in_journal 'node-was-tainted: kubelet no longer registers this node with nodestrap/unhealthy'
        finish
}
case $VMTEST_BOOT in 1) first;; 2) second;; *) third;; esac
