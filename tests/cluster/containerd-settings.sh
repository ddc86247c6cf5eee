#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.33.13
# tree: containerds
# cluster: down no-controllers
# containerd runs, with CRI, with each setting that we take; 1.7, 2.1 and the newest that is here (tests/oracles/containerd.py).
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
# shellcheck source=tests/cluster/lib/containerds.sh
. "$(dirname "$(realpath "$0")")/lib/containerds.sh"

check_reported
check_random "${SEED:-2}" "${COUNT:-14}"

finish
