#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The AMI of AWS makes a RAID0 of its instance stores and moves the state of the node there by these commands, in this order. The bench
# measures them. Written from what is known of that script (awslabs/amazon-eks-ami at 81fec2e,
# templates/al2023/runtime/bin/setup-local-disks): which commands it runs on what, and when it leaves one out. Not usable for a node.
set -euo pipefail
STATE=/.aws/mdadm.conf TOP=/mnt/k8s-disks/0 UNITS=/etc/systemd/system

disks() { find -L /dev/disk/by-id/ -xtype l -name '*NVMe_Instance_Storage_*' -exec realpath {} + | sort -u; }
array() { find /dev/md/ -type l -regextype posix-extended -regex '/dev/md/kubernetes(_[0-9a-z]*)?$' | tail -1; }
mount_unit() { # UNIT WHAT WHERE TYPE OPTIONS
        printf '[Unit]\nDescription=%s\n[Mount]\nWhat=%s\nWhere=%s\nType=%s\nOptions=%s\n[Install]\nWantedBy=multi-user.target\n' \
                "$3" "$2" "$3" "$4" "$5" >"$UNITS/$1"
}

mapfile -t disks < <(disks)
[ ${#disks[@]} -gt 0 ] || exit 0
mkdir -p /.aws
if [ ! -s $STATE ] || ! mdadm --detail --scan | grep -q ARRAY; then
        mdadm --create --force --verbose /dev/md/kubernetes --level=0 --name=kubernetes --raid-devices=${#disks[@]} "${disks[@]}"
        mdadm --detail --scan >$STATE
fi
device=$(array)
if [ -z "$(lsblk "$device" -o fstype --noheadings)" ]; then mkfs.xfs -K -l su=8b "$device"; fi

mkdir -p $TOP
unit=$(systemd-escape --path --suffix=mount $TOP)
mount_unit "$unit" "UUID=$(blkid -s UUID -o value "$device")" $TOP xfs defaults,noatime
systemd-analyze verify "$UNITS/$unit"
systemctl enable "$unit" --now

pairs=() stopped=()
for pair in kubelet:/var/lib/kubelet containerd:/var/lib/containerd soci-snapshotter:/var/lib/soci-snapshotter-grpc kubelet:/var/log/pods; do
        unit=$(systemd-escape --path --suffix=mount "${pair#*:}")
        if systemctl is-active "$unit" >/dev/null; then continue; fi
        pairs+=("$pair")
        if systemctl is-active "${pair%%:*}" >/dev/null; then stopped+=("${pair%%:*}"); fi
done
[ ${#stopped[@]} = 0 ] || systemctl stop "${stopped[@]}"
for pair in "${pairs[@]}"; do
        directory=${pair#*:} target=$TOP/${pair##*/}
        mkdir -p "$directory"
        cp -a "$directory/" "$target/"
        unit=$(systemd-escape --path --suffix=mount "$directory")
        mount_unit "$unit" "$target" "$directory" none bind
        systemctl enable "$unit" --now
done
[ ${#stopped[@]} = 0 ] || systemctl start "${stopped[@]}"
