#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.33.13/kubelet
# tree: containerd2
# cluster: down no-controllers
# tests/cluster/settings-1.33.sh with other seeds: SEEDS="…" COUNT=2000 tests/exhaustive/settings-1.33.sh tries more.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/../cluster/lib/host.sh"
# shellcheck source=tests/cluster/lib/settings.sh
. "$(dirname "$(realpath "$0")")/../cluster/lib/settings.sh"

for seed in ${SEEDS:-1 3 28}; do check_random "$seed" "${COUNT:-150}"; done

finish
