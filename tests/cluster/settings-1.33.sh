#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.33.13/kubelet
# tree: containerd2
# cluster: down no-controllers
# kubelet 1.33.13 reads what is planned for it: no unknown field, no deprecated flag, no feature gate that it has on for good.
# And it starts with each setting that we take (tests/oracles/kubelet.py).
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
# shellcheck source=tests/cluster/lib/settings.sh
. "$(dirname "$(realpath "$0")")/lib/settings.sh"

check_settings NFTablesProxyMode
check_gates
check_nodes
check_reported
check_random "${SEED:-2}" "${COUNT:-60}"

finish
