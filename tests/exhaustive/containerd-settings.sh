#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.33.13
# tree: containerds
# cluster: down no-controllers
# tests/cluster/containerd-settings.sh with other seeds: SEEDS="…" COUNT=500 tests/exhaustive/containerd-settings.sh tries more.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/../cluster/lib/host.sh"
# shellcheck source=tests/cluster/lib/containerds.sh
. "$(dirname "$(realpath "$0")")/../cluster/lib/containerds.sh"

for seed in ${SEEDS:-1 3}; do check_random "$seed" "${COUNT:-60}"; done

finish
