#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.33.13/kubelet
# cluster: down no-controllers
# kubelet 1.33.13 ends at a state of an earlier boot that contradicts this one; init takes it away before, and leaves what kubelet takes.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
# shellcheck source=tests/cluster/lib/state.sh
. "$(dirname "$(realpath "$0")")/lib/state.sh"

wants containerd
check_states

finish
