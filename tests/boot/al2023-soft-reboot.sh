#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# vpc: --cards 1 --count 1
# tree: al2023 vpc kept_results
# console: NODESTRAP verdict=ok
# A soft reboot keeps /run with the files of nodeadm, then of nodestrap. Each boot decides again which of them runs.
# shellcheck disable=SC2154  # bad is guest.sh's
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

if [ ! -e out/report ]; then
        check_theirs "nodeadm"
        try "systemctl enables the nodestrap units instead of the nodeadm units" to_ours
        [ "$bad" = 0 ] || finish
        cp out/stdout out/report; systemctl soft-reboot; exec tail -f /dev/null
fi
if [ ! -e out/way-back ]; then
        try "after a soft reboot: nodestrap-run is active" active nodestrap-run
        try "nodeadm did not run again after the soft reboot" calls 2
        try "kubelet runs with the configuration file of nodestrap" kubelet_has --config=/etc/kubernetes/kubelet/config.json
        try "no ordering cycle was broken after the soft reboot" no_cycle
        try "systemctl enables the nodeadm units instead of the nodestrap units" back_from_ours
        [ "$bad" = 0 ] || finish
        cp out/stdout out/report; touch out/way-back; systemctl soft-reboot; exec tail -f /dev/null
fi
try "after a second soft reboot: nodestrap-run is not active" no active nodestrap-run
try "nodeadm ran again after the second soft reboot" calls 4
try "kubelet is active" active kubelet
try "kubelet runs with the arguments of nodeadm" kubelet_has --written-by=somebody
try "containerd is active" active containerd
try "no ordering cycle was broken after the second soft reboot" no_cycle

finish
