# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/vm/arm64-*.sh and tests/exhaustive/arm64-reboot.sh. A machine with an arm64 kernel from power-on. It has two instance
# stores, and two NUMA nodes with a CPU each. A third one has none, as for the GPU memory of a GB200. Sizes of huge pages come from the kernel, and
# none is that of x86 by chance.
. /vmtest/guest.sh
NODES=/sys/devices/system/node/node STORES=/mnt/k8s-disks/0

pages() { cat "$NODES"{0,1,2}/hugepages/hugepages-"$1"kB/nr_hugepages | xargs; }
sizes() { basename -a /sys/kernel/mm/hugepages/* | sed 's/hugepages-\(.*\)kB/\1/' | sort -n | xargs; }
plan_id() { plan | sed -n 's/^ *"planId": "\(.*\)",*$/\1/p' | head -1; }
# The Node of the plan by the figures of the kernel: sizes, reserves, and the rest for pods, to the byte.
node_is_kernels() { python3 - <<'P'
import glob, json
def kib(text):
    return int(text[:-2]) * {"Ki": 1, "Mi": 1 << 10, "Gi": 1 << 20}[text[-2:]] if not text.isdigit() else int(text) // 1024
plan, kubelet, bad = json.load(open("plan.json"))["node"], json.load(open("/etc/kubernetes/kubelet/config.json")), 0
have = {int(d.split("-")[1][:-2]): int(open(d + "/nr_hugepages").read()) * int(d.split("-")[1][:-2]) for d in glob.glob("/sys/kernel/mm/hugepages/*")}
said = {kib(k.split("-")[1]): kib(v) for k, v in plan["capacity"].items() if k.startswith("hugepages-")}
total = int(next(line.split()[1] for line in open("/proc/meminfo") if line.startswith("MemTotal")))
want = total - sum(have.values()) - kib(kubelet["kubeReserved"]["memory"]) - kib(kubelet["evictionHard"]["memory.available"])
for what, is_, want in (("huge pages", said, have), ("memory", kib(plan["capacity"]["memory"]), total), ("memory of pods", kib(plan["allocatable"]["memory"]), want)):
    if is_ != want:
        print(f"{what}: {is_} KiB, want {want}")
        bad = 1
raise SystemExit(bad)
P
}
mounted_from() { is "$(findmnt -no SOURCE,FSTYPE "$1" | sed 's/\[.*\]//' | xargs)" "$2"; }

disks() {
        try "the instance stores are one RAID0 array" is "$(cat /sys/block/md*/md/level) $(cat /sys/block/md*/md/raid_disks)" "raid0 2"
        try "the array is mounted with xfs" mounted_from $STORES "$(realpath /dev/md/kubernetes) xfs"
        for name in kubelet containerd; do
                try "$name starts on the array" is "$(cut -d' ' -f1 "/run/started/$name")" "$(stat -c %d $STORES)"
        done
}
same_plans() {  # nodestrap for x86-64 makes the same plans for models of other machines, byte for byte
        local t
        for t in plans/*.json; do
                t=${t##*/}; t=${t%.json}
                try "nodestrap makes the same plan for $t on arm64 as on x86-64" sh -c "nodestrap plan -c file:///vmtest/plans/userdata --instance-type $t --kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04 --output json | cmp - plans/$t.json"
        done
}
# PAGE DEFAULT SIZES [SIZE COUNT-OF-EACH-NODE]...: all sizes but the first in KiB
check_arm64() {
        local page=$1 default=$2 all=$3; shift 3
        try "boot $VMTEST_BOOT: the kernel is arm64 and has pages of $page bytes" is "$(uname -m) $(getconf PAGESIZE)" "aarch64 $page"
        try "boot $VMTEST_BOOT: the kernel has huge pages of $all KiB, by default of $default" is "$(sizes), $(awk '/^Hugepagesize/ { print $2 }' /proc/meminfo)" "$all, $default"
        try "boot $VMTEST_BOOT: the machine has three NUMA nodes, one without a CPU" is "$(cat "$NODES"{0,1,2}/cpulist | xargs)" "0 1"
        while [ $# -gt 0 ]; do
                try "boot $VMTEST_BOOT: each NUMA node has its huge pages of $1 KiB" is "$(pages "$1")" "$2"; shift 2
        done
        disks
}
check_plan_arm64() {     # with plan.json
        try "the Node of the plan has the figures of the kernel" node_is_kernels
        check_second_run
}
