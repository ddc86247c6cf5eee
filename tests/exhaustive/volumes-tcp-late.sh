#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# tree: storage storage_stubs
# EBS volumes that come late, that nodestrap refuses before the first write, and that another program has made or mounted.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/vmtest/bin:/usr/sbin:/usr/bin:/sbin:/bin

. /vmtest/volumes.sh

mkdir -p under; (target); for n in 3 4 5; do (volume $n 400M); done

# ---- attached late, and never
wants "{device: vol-$(id 3), mountTarget: /data}"; : >err
init >late.out 2>&1 & job=$!
for _ in $(seq 600); do grep -q "Waiting for EBS volumes" err && break; read -rt 0.2 <> <(:); done
try "nodestrap waits for a volume that is not attached" grep -q "not attached yet: vol-$(id 3); giving up in" err
try "volume 3 is attached" attach 3
wait $job; try "init succeeds once the volume is attached" is $? 0
try "the late volume is mounted" seen /data 3
try "the simulated boot unmounts the late volume" power_cycle /data $P/vol-"$(id 3)"

# ---- what is refused, before the first write
was=$(writes 3)
attach 4
# the label of a physical volume, as libblkid looks for it
python3 -c "
import struct,sys
d=bytearray(1024); d[512:520]=b'LABELONE'; d[520:528]=struct.pack('<Q',1); d[532:536]=struct.pack('<I',32); d[536:544]=b'LVM2 001'; d[544:576]=b'A'*32
c=0xf597a6cf
for b in d[532:1024]:
    c^=b
    for _ in range(8): c=(c>>1)^(0xedb88320 if c&1 else 0)
d[528:532]=struct.pack('<I',c); open(sys.argv[1],'r+b').write(d)" "/dev/$(name_of 4)"; sync; udevadm settle
wants "{device: vol-$(id 4), mountTarget: /data}"
try "nodestrap refuses a volume that is an LVM physical volume" refuses "volume vol-$(id 4), nvme.*LVM physical volume.*stays as it is"
wants "{device: /dev/$(name_of 3), mountTarget: /data}" "{device: vol-$(id 3), mountTarget: /opt/models}"
try "nodestrap refuses one volume under two names" refuses "/dev/$(name_of 3) and vol-$(id 3) are the same volume"
mkdir -p /elsewhere; mount "/dev/$(name_of 3)" /elsewhere
wants "{device: vol-$(id 3), mountTarget: /data}"
try "nodestrap refuses a volume that is mounted elsewhere" refuses "is mounted at /elsewhere"
umount /elsewhere
mount -t tmpfs tmpfs /data
try "nodestrap refuses a target that is a mount point already" refuses "/data is a mount point already \(tmpfs of tmpfs\)"
umount /data
wants "{device: /dev/vda, mountTarget: /data}"
try "nodestrap refuses a disk that is not a volume" refuses "not that of an EBS volume|not attached"
attach 5                                # one partition, from 1 MiB on
printf '\0\0\0\0\203\0\0\0\0\10\0\0\0\0\10\0' | dd of="/dev/$(name_of 5)" bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of="/dev/$(name_of 5)" bs=1 seek=510 conv=notrunc,fsync status=none
blockdev --rereadpt "/dev/$(name_of 5)"; udevadm settle
wants "{device: vol-$(id 5), mountTarget: /data}"
try "nodestrap refuses a volume with a partition" refuses 'has partitions \(nvme.*p1\)'
mkfs.ext4 -q "/dev/$(name_of 5)p1"; mkdir -p /newroot; mount "/dev/$(name_of 5)p1" /newroot
try "nodestrap refuses a volume whose partition is mounted" refuses 'has partitions'
umount /newroot
try "the refusals wrote nothing to volume 3" is "$(writes 3)" "$was"

# ---- mounted at its target by another program already
mkfs.xfs -qf "/dev/$(name_of 3)"; mount "/dev/$(name_of 3)" /data; echo theirs >/data/x
wants "{device: vol-$(id 3), mountTarget: /data}"
try "init succeeds with a volume that is mounted at its target already" init
try "the volume is mounted once, at its target" is "$(findmnt -no TARGET "/dev/$(name_of 3)" | xargs)" /data
try "the volume still has its data" grep -q theirs /data/x
umount /data

# ---- an empty file system of another program takes in the directory; another type is kept
mkfs.ext4 -qF "/dev/$(name_of 3)"; mkdir -p /data; echo fill >/data/f
try "init accepts a volume with an empty ext4 instead of xfs" init
try "a warning says that nodestrap keeps the file system" warns filesystem-kept
try "the volume keeps ext4 and has the data of the directory" is "$(cat /data/f) $(findmnt -no FSTYPE /data)" "fill ext4"
finish
