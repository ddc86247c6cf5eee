#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2 tuning-wrong
# spec: {instance: {tuning: gpu}, kubelet: {config: {failSwapOn: false}}}
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# tuning: gpu from power-on: governors and idle states are set and read back. A reboot forgets them, and the next boot sets them again.
# Without the key init restores them. A governor that init cannot set is a warning, and the node comes up.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

CPUS=/sys/devices/system/cpu
governors() { cat $CPUS/cpufreq/policy{0,1}/scaling_governor | xargs; }
idle() { cat $CPUS/cpu{0,1}/cpuidle/state"$1"/disable | xargs; }       # 1: the state is disabled
outcome() { python3 -c 'import json, sys
print(*{a["outcome"] for r in json.load(open("/run/nodestrap/status.json"))["runs"].values() for a in r["actions"] if a["id"] == "set-tuning:cpus"})'; }
warned() { nodestrap status --long | grep -E -- "$1" || { nodestrap status --long; return 1; }; }
check_tuned() {                         # WORDS
        try "$1both governors are performance" is "$(governors)" "performance performance"
        try "$1C6 is disabled on both CPUs" is "$(idle 3)" "1 1"
        try "$1C1E, which is quick, is not disabled" is "$(idle 2)" "0 0"
        try "$1the record has the settings from before" is "$(cut -d' ' -f2 /run/nodestrap/tuning | sort | uniq -c | xargs)" "2 0 2 powersave"
        try "$1the journal has the settings that nodestrap does not change" in_journal 'settings of this machine slow down its GPUs: .*clock source is hpet.*IOMMU domain is DMA.*swap is on'
        try "$1the journal does not list the settings that nodestrap changes" not_in_journal 'settings of this machine slow down its GPUs: .*(governor|idle state)'
}
machine() { is "$(grep -c ^power-on /var/lib/power-on)" "$1"; }

first_boot() {
        check_gpu_node 'module nvidia$' 'kubelet gpus=8'
        check_tuned ''
        echo ondemand >$CPUS/cpufreq/policy1/scaling_governor
        try "init succeeds after another program has changed a governor" nodestrap init
        try "init sets the governor again" is "$(outcome) $(governors)" "done performance performance"
        check_tuned 'after a second init: '
}
if [ "$VMTEST_BOOT" = 1 ]; then first_boot >out/first; systemctl reboot; exit; fi
cat out/first
try "the machine was started twice" machine 2
check_gpu_node 'module nvidia$' 'kubelet gpus=8'
check_tuned 'after a reboot: '

spec '{kubelet: {config: {failSwapOn: false}}}'
try "init succeeds without the key" nodestrap init
try "init restores all settings without the key" is "$(outcome) $(governors) $(idle 3) $(idle 2)" "done powersave powersave 0 0 0 0"
try "nodestrap forgets the settings that it restored" test ! -e /run/nodestrap/tuning
# shellcheck disable=SC2046 # sources are words
try "a plan names the idle state and the governor" matches "$(nodestrap plan $(sources) --output json 2>&1)" 'C6 takes 290 us to leave, more than 10 .spec.*the CPU governor is powersave, not performance .spec'
nodestrap doctor --output json >out/doctor.json 2>/dev/null
try "doctor has a finding for each setting" is "$(python3 -c 'import json
print(*sorted(c["found"] for c in json.load(open("out/doctor.json"))["checks"] if c["code"] == "tuning"), sep=", ")')" \
        'CPU idle states, the CPU governor, the IOMMU domain, the clock source, transparent_hugepage'
try "a second init without the key succeeds" nodestrap init
try "a second init without the key has nothing to restore" is "$(outcome)" ''

spec '{instance: {tuning: gpu}, kubelet: {config: {failSwapOn: false}}}'
stuck=$CPUS/cpufreq/policy1/scaling_governor
mount --bind $stuck $stuck && mount -o remount,ro,bind $stuck
try "init succeeds if it cannot write a CPU governor" nodestrap init
try "init sets all other CPU settings" is "$(governors) $(idle 3)" "performance powersave 1 1"
try "the warning names the governor that cannot be set" warned 'policy1/scaling_governor cannot be set .Read-only file system.: 1 of 4 CPU settings'
try "the verdict is ok although a governor cannot be set" is "$(value verdict)" ok
try "the record has all four settings although a governor cannot be set" is "$(wc -l </run/nodestrap/tuning)" 4
spec '{kubelet: {config: {failSwapOn: false}}}'
try "init succeeds without the key although a governor cannot be set" nodestrap init
try "init restores all settings that it has changed" is "$(outcome) $(governors) $(idle 3)" "done powersave powersave 0 0"
try "status has no warning about the governor that init never changed" no warned 'cannot be set'

finish
