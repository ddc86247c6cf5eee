#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: no-controllers
# check-node with a real API server: the Nodes that a kubelet may join with a taint. A node has few rights over its own taints. The test
# also follows the advice to a person.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
tool=${HELPERS:-$(dirname "$NODESTRAP")/tests/helpers}/register-tool

look() { "$tool" root $INSTANCE EFABRIC "$1" >look.out 2>look.err; echo $? >look.rc; }
says() { grep -E -- "$1" look.out || { cat look.out look.err; return 1; }; }
goes_on() { is "$(cat look.rc)" 0 && says "$1"; }
# It ends with its deadline, by when the cluster has answered on a machine with much else to do.
holds() { is "$(cat look.rc)" 60 && says "$1"; }
# registers INSTANCE [TAINT]: as a kubelet of that instance does
registers() {
        printf '{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "%s", "labels": {"nodestrap/unhealthy": "EFABRIC"}}, "spec": {"providerID": "aws:///us-west-2a/%s", "taints": [%s]}}' $NODE "$1" "${2-}" | as_node create -f -
}
taint='{"key": "nodestrap/unhealthy", "value": "EFABRIC", "effect": "NoSchedule"}'
exists="^ENOTREGISTERED: Node $NODE of cluster training exists without the taint nodestrap/unhealthy, and a node cannot taint itself: kubelet stays down\. Run kubectl taint node"
machine root

look 30
try "no Node: kubelet may register" goes_on '"exists": false'
try "a kubelet may give its new Node that taint and that label" registers $INSTANCE "$taint"
look 30
try "the next boot that fails finds the taint: kubelet may join again" goes_on '"taint": "EFABRIC"'
forbidden() { ! as_node "$@" 2>said && grep -F 'is not allowed to modify taints' said || { cat said; return 1; }; }
try "the node may not take it off" forbidden taint node $NODE nodestrap/unhealthy-
try "the node cannot change the taint" forbidden taint node $NODE nodestrap/unhealthy=EGPU:NoSchedule --overwrite
try "though it may its label" as_node label node $NODE nodestrap/unhealthy-
try "an admin may: kubectl taint" kubectl taint node $NODE nodestrap/unhealthy-
look 30
try "a boot that is still unwell stays out then" holds "$exists"
try "the node cannot change a taint of another failure" forbidden taint node $NODE nodestrap/unhealthy=EFABRIC:NoSchedule
advice=$(grep -o 'kubectl taint node [^,]*:NoSchedule' look.out)
try "the kubectl command of the message works" $advice
look 30
try "the node joins after that command" goes_on '"taint": "EFABRIC"'
try "the second command of the message works" kubectl delete node $NODE
look 30
try "the node registers again after its Node is gone" goes_on '"exists": false'
try "when all is well, without a taint" registers $INSTANCE
look 30
try "a later failure finds a Node that has none" holds "$exists"
kubectl delete node $NODE >/dev/null

# ---- of another instance ----
try "an instance that had the name before" registers i-00000000000000001 "$taint"
look 30
try "its Node is not joined, tainted or not" holds "^ENOTREGISTERED: Node $NODE of cluster training belongs to another instance \(aws:///us-west-2a/i-00000000000000001, not $INSTANCE\)"
patched() { ! kubectl patch node $NODE -p "{\"spec\": {\"providerID\": \"aws:///us-west-2a/$INSTANCE\"}}" 2>said && grep -i 'providerID' said; }
try "the field belongs to its new owner" patched
tokens() { grep -c GetCallerIdentity "$CLUSTER/log/aws.requests"; }
asked=$(tokens); again() { [ "$(tokens)" -ge $((asked + 2)) ]; }
look 60 &
comes aws again                         # each look has a token of its own
kubectl delete node $NODE >/dev/null; wait $!
try "until the cluster has seen that it is gone" goes_on '"exists": false'

# ---- no answer ----
unknown() { holds "^$1: .*; a Node $NODE without the taint nodestrap/unhealthy may exist, and kubelet would use that Node: kubelet stays down; to check again, run nodestrap init or reboot"; }
api_stop
look 30
try "without an API server kubelet stays down" unknown EAPIROUTE
look 100 &
api_start
wait $!
try "nodestrap waits for an API server that comes late" goes_on '"exists": false'
authenticator_stop; authenticator_start unmapped
look 30
try "a role without a mapping is ENOTMAPPED" unknown ENOTMAPPED
authenticator_stop; authenticator_start

finish
