#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# tree: storage storage_stubs
# EBS volumes on a running machine: nodestrap makes file systems, fills and mounts them. A second run does nothing, a boot keeps them,
# and they grow. They are NVMe over TCP within the guest, with model and serial numbers of EBS.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/vmtest/bin:/usr/sbin:/usr/bin:/sbin:/bin

. /vmtest/volumes.sh

mkdir -p under
try "the NVMe target is set up" target
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
try "init succeeds with two blank volumes" init
try "volume 1 is mounted at its target with its root" seen $D 1
try "volume 1 has xfs, mounted with noatime" sh -c "findmnt -no FSTYPE,OPTIONS $D | grep -q 'xfs .*noatime'"
for t in $K /data /opt/models; do name=${t#/}; try "volume 2 is mounted at $t" seen "$t" 2 "[/${name//\//-}]"; done
try "volume 2 has ext4" sh -c "findmnt -no FSTYPE /data | grep -qx ext4"
try "the mount at the kubelet directory is shared" shows $K PROPAGATION shared
try "volume 1 has the data of its directory" grep -q baked $D/io.containerd.content/link
try "volume 1 has the mode of its directory" is "$(stat -c %a $D)" 711
try "volume 2 has the mode and the data of /opt/models" is "$(stat -c %a /opt/models) $(cat /opt/models/m)" "750 model"
try "the data of volume 1 is no longer on the root disk" no below $D/io.containerd.content/blob
try "containerd and kubelet run" systemctl is-active containerd kubelet
try "the plan has the same id after init" is "$(plan_id)" "$before_id"

# ---- the second run
echo pod >$K/pods/x; sync; written=$(writes 1)
try "a second run succeeds" init
try "the second run changes nothing" is "$(outcomes)" unchanged
try "the second run writes nothing to the volume" is "$(writes 1)" "$written"

# ---- a boot: the volumes are as they were, under other kernel names
echo written-later >$D/later; cp $K/kubeconfig kubeconfig; echo stale >$K/kubeconfig
try "the first simulated boot unmounts the volumes" power_cycle $D $K /data /opt/models $P/xvdb $P/vol-"$(id 2)"
for n in 1 2; do detach $n; done; for n in 2 1; do attach $n; done
mkdir -p $D/io.containerd.content $K; echo new-image >$D/io.containerd.content/other
try "init succeeds after the boot" init
try "volume 1 is mounted at its target after the boot" seen $D 1
try "both volumes have what was written before the boot" is "$(cat $D/later $K/pods/x | xargs)" "written-later pod"
try "nodestrap does not copy newer data of the root disk to the volume" no test -e $D/io.containerd.content/other
try "the kubeconfig is that of the config phase again" cmp $K/kubeconfig kubeconfig
try "the plan has the same id after the boot" is "$(plan_id)" "$before_id"

# ---- grown
try "volume 1 grows" resize 1 700M; try "volume 2 grows" resize 2 700M
try "init succeeds after both volumes grew" init
try "xfs uses the new room of volume 1" sh -c "[ \$(df --output=size -m $D | tail -1) -gt 580 ]"
try "ext4 uses the new room of volume 2" sh -c "[ \$(df --output=size -m /data | tail -1) -gt 580 ]"
try "a second run after the growth succeeds" init
try "the second run after the growth changes nothing" is "$(outcomes)" unchanged
try "the data of volume 1 survives the growth" grep -q written-later $D/later
try "the second simulated boot unmounts the volumes" power_cycle $D $K /data /opt/models $P/xvdb $P/vol-"$(id 2)"
try "xfs_repair finds no error on volume 1" xfs_repair -n "/dev/$(name_of 1)"; try "fsck.ext4 finds no error on volume 2" fsck.ext4 -fn "/dev/$(name_of 2)"

finish
