#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# tree: storage storage_stubs
# EBS volumes on a machine that runs: made, filled and mounted; nothing on the second run; kept over a boot; and
# grown. They are NVMe over TCP within the guest, with EBS's model and serial numbers.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/vmtest/bin:/usr/sbin:/usr/bin:/sbin:/bin

. /vmtest/volumes.sh

mkdir -p under
try "the target is set up" target
for n in 1 2; do try "volume $n is made" volume $n 400M; done
for n in 1 2; do try "volume $n is attached" attach $n; done
printf 'KERNEL=="nvme*n1", ENV{DEVTYPE}=="disk", ATTRS{serial}=="vol%s*", SYMLINK+="xvdb"\n' "$(id 1)" >/etc/udev/rules.d/70-volumes.rules
udevadm control --reload; udevadm trigger --action=change "/dev/$(name_of 1)"; udevadm settle
try "the udev rule names volume 1" is "$(readlink /dev/xvdb)" "$(name_of 1)"

# ---- blank: made, filled, mounted
mkdir -p $D/io.containerd.content $K/pods /data /opt/models; echo baked >$D/io.containerd.content/blob; ln -s blob $D/io.containerd.content/link; chmod 0711 $D
echo model >/opt/models/m; chmod 0750 /opt/models
wants "{device: /dev/sdb, mountTarget: $D}" "{device: vol-$(id 2), mountTargets: [$K, /data, /opt/models], fsType: ext4}"
before_id=$(plan_id)
try "both volumes are put to use" init
try "the one is seen at its target, from its root" seen $D 1
try "as xfs, without times of reading" sh -c "findmnt -no FSTYPE,OPTIONS $D | grep -q 'xfs .*noatime'"
for t in $K /data /opt/models; do name=${t#/}; try "the other one is seen at $t" seen "$t" 2 "[/${name//\//-}]"; done
try "as ext4" sh -c "findmnt -no FSTYPE /data | grep -qx ext4"
try "pods see each other's mounts" shows $K PROPAGATION shared
try "the volume has the data of the directory" grep -q baked $D/io.containerd.content/link
try "its mode, too" is "$(stat -c %a $D)" 711
try "the other directory has its data, too" is "$(stat -c %a /opt/models) $(cat /opt/models/m)" "750 model"
try "it is not on the root disk any more" no below $D/io.containerd.content/blob
try "the daemons run again" systemctl is-active containerd kubelet
try "the plan has the same name as before" is "$(plan_id)" "$before_id"

# ---- the second run
echo pod >$K/pods/x; sync; written=$(writes 1)
try "a second run succeeds" init
try "the second run changes nothing" is "$(outcome)" ""
try "the second run writes nothing to the volume" is "$(writes 1)" "$written"

# ---- a boot: the volumes are as they were, under other kernel names
echo written-later >$D/later; cp $K/kubeconfig kubeconfig; echo stale >$K/kubeconfig
try "a boot forgets the mounts" power_cycle $D $K /data /opt/models $P/xvdb $P/vol-"$(id 2)"
for n in 1 2; do detach $n; done; for n in 2 1; do attach $n; done
mkdir -p $D/io.containerd.content $K; echo new-image >$D/io.containerd.content/other
try "they are mounted again" init
try "the first one is" seen $D 1
try "with what was written" is "$(cat $D/later $K/pods/x | xargs)" "written-later pod"
try "newer data of the root disk is not copied" no test -e $D/io.containerd.content/other
try "the files of the config phase are there" cmp $K/kubeconfig kubeconfig
try "the plan has the same name" is "$(plan_id)" "$before_id"

# ---- grown
try "volume 1 grows" resize 1 700M; try "volume 2 grows" resize 2 700M
try "they take the room" init
try "xfs has it" sh -c "[ \$(df --output=size -m $D | tail -1) -gt 580 ]"
try "ext4 has it" sh -c "[ \$(df --output=size -m /data | tail -1) -gt 580 ]"
try "a run after that succeeds" init
try "the run after the reboot changes nothing" is "$(outcome)" ""
try "nothing is lost" grep -q written-later $D/later
try "a boot forgets the mounts" power_cycle $D $K /data /opt/models $P/xvdb $P/vol-"$(id 2)"
try "xfs is whole" xfs_repair -n "/dev/$(name_of 1)"; try "ext4 is whole" fsck.ext4 -fn "/dev/$(name_of 2)"

finish
