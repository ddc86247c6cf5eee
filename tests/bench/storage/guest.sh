#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: guest.sh RUNS [WHO…]
# Runs in the guest of tests/bench/storage.sh: from "disks present" to "mounts active". AWS commands and nodestrap take turns, each on blank
# disks and again with nothing to do. One line for each run: WHO WHICH WALL PROCESSES ELSEWHERE STORAGE. STORAGE is the wall time until the
# last mount; nodestrap goes on to start containerd and kubelet. A run whose outcome is not right ends all.
# shellcheck disable=SC2046 # words
set -eu; cd /vmtest; runs=$1; shift; [ $# -gt 0 ] || set -- peer ours
BINDS="/var/lib/kubelet /var/lib/containerd /var/log/pods /var/lib/soci-snapshotter-grpc"
disks=(); for d in /sys/block/nvme*n1; do [[ $(<"$d/device/model") != "Amazon EC2"* ]] || disks+=("/dev/${d##*/}"); done
die() { echo "guest: $*" >&2; exit 1; }

cat >node.yaml <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: example
    apiServerEndpoint: https://example.eks.amazonaws.com
    certificateAuthority: Y2VydGlmaWNhdGUK
    cidr: 10.100.0.0/16
  featureGates: {InstanceIdNodeName: true}
  instance:
    localStorage: {strategy: RAID0, expectedDisks: ${#disks[@]}}
END
command_of() { [ "$1" = peer ] && echo ./peer.sh || echo "nodestrap init --skip config -c file:///vmtest/node.yaml"; }

baked() { [ "$(find "$1" -type f | wc -l)" -ge 60 ] || die "what lay in $1 is not there any more"; }
reset() {                               # as the machine comes up: nothing mounted, blank disks, what an AMI brings on the root disk
        local m; systemctl stop kubelet containerd 2>/dev/null || :
        for m in $BINDS /mnt/k8s-disks/0; do while mountpoint -q "$m"; do umount "$m"; done; done
        for m in /dev/md?*; do [ ! -b "$m" ] || { wipefs -qa "$m"; mdadm -q --stop "$m"; }; done
        for m in "${disks[@]}"; do blkdiscard --force --zeroout "$m"; done
        systemctl disable -q mnt-k8s\\x2ddisks-0.mount var-lib-kubelet.mount var-lib-containerd.mount var-log-pods.mount \
                'var-lib-soci\x2dsnapshotter\x2dgrpc.mount' 2>/dev/null || :
        rm -rf /.aws /etc/systemd/system/*.mount /mnt/k8s-disks /run/nodestrap/mounts-ready $BINDS; systemctl daemon-reload
        mkdir -p $BINDS; mkdir -p /var/lib/containerd/baked
        for m in $(seq 60); do head -c 65536 /dev/zero >/var/lib/containerd/baked/$m; done
        udevadm settle; sync
}
check() {                               # all that the configuration requests is true
        local m; mountpoint -q /mnt/k8s-disks/0 || die "$1: nothing on /mnt/k8s-disks/0"
        for m in $BINDS; do [ "$(stat -c %d $m)" = "$(stat -c %d /mnt/k8s-disks/0)" ] || die "$1: $m is not on the disks"; done
        [ "$(findmnt -no FSTYPE /mnt/k8s-disks/0)" = xfs ] || die "$1: no xfs"
        [ "$(df -B1M --output=size /mnt/k8s-disks/0 | tail -1)" -gt $((${#disks[@]} * 900)) ] || die "$1: not all disks are used"
        [ "$1" = peer ] || baked /var/lib/containerd/baked
}
# From the start of the program to the end of its last action for storage, in seconds.
storage_part() {
        python3 - <<'END'
import json
run = json.load(open("/run/nodestrap/status.json"))["runs"]["devices,run"]
kinds = "create-raid:", "make-filesystem:", "mount:", "stop-unit:", "move-files:", "bind:", "write-file:/run/nodestrap/mounts-ready"
ends = [a["endUsec"] for a in run["actions"] if a["id"].startswith(kinds)]
print("%.3f" % ((max(ends) - run["beginUsec"]) / 1e6))
END
}
measure() {                             # WHO WHICH
        local cost part; cost=$(./processes $(command_of "$1") 2>"out/$1-$2.log") || { tail -20 "out/$1-$2.log" >&2; die "$1 failed"; }
        check "$1"; cp /run/nodestrap/status.json "out/status-$2.json" 2>/dev/null || :
        [ "$1" = peer ] && part=$(awk '/^wall/ { print $2 }' <<<"$cost") || part=$(storage_part)
        echo "$1 $2 $(awk '{ print $2 }' <<<"$cost" | xargs) $part"
}

[[ " $* " != *" ours "* ]] || nodestrap init --skip run -c file:///vmtest/node.yaml 2>out/config.log || { cat out/config.log >&2; die "the config phase failed"; }
for ((i = 0; i < runs; i++)); do
        for who; do
                reset; measure "$who" first; udevadm settle; measure "$who" again
        done
done
