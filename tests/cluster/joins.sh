#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# The way to the identity of a node, with every part real but AWS: our token, the API server, its webhook, the authenticator. STS checks the
# signature and EC2 says the name. Then the rights of the node.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"

who() { as_node auth whoami -o 'jsonpath={.status.userInfo.username} {.status.userInfo.groups}'; }
try "the token of nodestrap is that of the node" is "$(who)" "system:node:$NODE [\"system:bootstrappers\",\"system:nodes\",\"system:authenticated\"]"
try "the node registers" register
try "the cluster has a Node of that name" kubectl get node $NODE
another() { ! as_node create -f - <<<'{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "another"}}' 2>said && grep -F "is not allowed to modify node" said; }
try "the node registers under no other name" another
machine root
try "nodestrap wait sees it Ready" nodestrap wait --root root --timeout 2m

finish
