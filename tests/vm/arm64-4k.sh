#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -A arm64 -d 2 -n 3 -c 2 -m 6G -t 900
# type: m6gd.large
# imds: imds-m5
# kernel: init_on_alloc=0
# spec: {instance: {localStorage: {strategy: RAID0, expectedDisks: 2}}}
# spec: {instance: {hugePages: {mode: explicit, pages: [{size: 64Ki, count: 32}, {size: 2Mi, count: 60}, {size: 32Mi, count: 2, numaNode: 1}]}}}
# tree: enabled storage containerd_version plans_here
# console: NODESTRAP verdict=ok
# From power-on with Debian's arm64 kernel of 4 KiB pages. A type of few pods, so that 6 GiB leave them some memory.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/arm64.sh
check_arm64 4096 2048 "64 2048 32768 1048576" 64 "16 16 0" 2048 "30 30 0" 32768 "0 2 0" 1048576 "0 0 0"
check_node
check_plan_arm64
same_plans
finish
