#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -A arm64-16k -d 2 -n 3 -c 2 -m 6G -t 900
# type: m6gd.large
# imds: imds-m5
# kernel: init_on_alloc=0
# spec: {instance: {localStorage: {strategy: RAID0, expectedDisks: 2}}}
# spec: {instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 60}, {size: 32Mi, count: 2, numaNode: 1}]}}}
# tree: enabled storage containerd_version
# console: NODESTRAP verdict=ok
# As arm64-4k.sh with the Debian kernel of 16 KiB pages. Its huge pages have 32 MiB by default; those of 2 MiB are 128 pages beside each
# other.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/arm64.sh
check_arm64 16384 32768 "2048 32768 1048576" 2048 "30 30 0" 32768 "0 2 0" 1048576 "0 0 0"
for unit in nodestrap-run containerd kubelet; do try "$unit is active" active $unit; done
plan >plan.json
# Its NVMe driver is a module: the first phase, which needs no disks, may have planned before it had any.
try "the plan that ran is the plan that is shown" python3 -c 'import json, sys
want, runs = json.load(open("plan.json"))["planId"], json.load(open("/run/nodestrap/status.json"))["runs"]
sys.exit(runs["devices,run"]["planId"] != want and f"{runs}, want {want}")'
check_plan_arm64
finish
