#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -A arm64 -d 2 -n 3 -c 2 -m 6G -t 900
# type: m6gd.large
# imds: imds-m5
# kernel: init_on_alloc=0
# spec: {instance: {localStorage: {strategy: RAID0, expectedDisks: 2}}}
# spec: {instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 60}, {size: 32Mi, count: 2, numaNode: 1}]}}}
# tree: enabled storage containerd_version
# console: NODESTRAP verdict=ok
# As tests/vm/arm64-4k.sh, and then a reboot.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/arm64.sh
check_arm64 4096 2048 "64 2048 32768 1048576" 2048 "30 30 0" 32768 "0 2 0"
if [ "$VMTEST_BOOT" = 1 ]; then
        plan_id >out/id; echo kept >$STORES/kept
        systemctl reboot
        exit
fi
try "data on the array survives the reboot" is "$(cat $STORES/kept)" kept
try "both phases succeed after the reboot" is "$(property nodestrap-config ExecMainStatus) $(property nodestrap-run ActiveState)" "0 active"
try "kubelet is active after the reboot and was started once" is "$(property kubelet ActiveState) $(wc -l </run/recording-kubelet/starts)" "active 1"
try "the plan is the same after the reboot" is "$(plan_id)" "$(cat out/id)"
finish
