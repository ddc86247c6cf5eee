#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# tree: storage storage_stubs
# EBS volumes on a machine that runs: made, filled and mounted; nothing on the second run; kept over a boot; grown; attached late; and
# what is refused. They are NVMe over TCP within the guest, with EBS's model and serial numbers, of any size and whenever the test says.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/vmtest/bin:/usr/sbin:/usr/bin:/sbin:/bin

NQN=nqn.2020-01.com.example:volume TARGET=/sys/kernel/config/nvmet P=/mnt/k8s-volumes
target() {                              # a port on loopback
        modprobe -a nvmet nvmet_tcp nvme_tcp || return
        mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config || return
        mkdir $TARGET/ports/1 && cd $TARGET/ports/1 || return
        echo ipv4 >addr_adrfam && echo tcp >addr_trtype && echo 127.0.0.1 >addr_traddr && echo 4420 >addr_trsvcid
}
id() { printf '0123456789abcde%02d' "$1"; }
volume() {                              # volume N SIZE [MODEL]: it exists, and `attach N` brings it
        mkdir $TARGET/subsystems/$NQN"$1" && cd $TARGET/subsystems/$NQN"$1" || return
        echo 1 >attr_allow_any_host && echo "${3:-Amazon Elastic Block Store}" >attr_model && echo "vol$(id "$1")" >attr_serial || return
        truncate -s "$2" "/vmtest/volume.$1" && mkdir namespaces/1 && echo "/vmtest/volume.$1" >namespaces/1/device_path && echo 1 >namespaces/1/enable || return
        ln -s "$PWD" $TARGET/ports/1/subsystems/
}
name_of() { local d; for d in /sys/block/nvme*n1; do [[ $d == *nvme*c*n1 ]] || [ "$(tr -d ' ' <"$d/device/serial" 2>/dev/null)" != "vol$(id "$1")" ] || { echo "${d##*/}"; return; }; done; return 1; }
attach() { echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$NQN$1" >/dev/nvme-fabrics && udevadm settle; }
detach() { local c; for c in /sys/class/nvme/nvme*; do [ "$(cat "$c/subsysnqn")" != "$NQN$1" ] || echo 1 >"$c/delete_controller"; done; udevadm settle; }
resize() { truncate -s "$2" "/vmtest/volume.$1" && echo 1 >$TARGET/subsystems/$NQN"$1"/namespaces/1/revalidate_size && udevadm settle; }
writes() { awk '{ print $5, $12 }' "/sys/block/$(name_of "$1")/stat"; }

python3 imds.py serve 127.0.0.1 8169 imds >imds.out & while [ ! -s imds.out ]; do read -rt 0.1 <> <(:); done
export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:8169
# user data: the volumes, and more below spec.instance
wants() { { cat node.head; printf '  instance:\n    storage:\n      volumes:\n'; printf '      - %s\n' "$@"; printf '%s' "$more"; } >node.yaml; }
more=
init() { nodestrap init --config-cache /run/eks/nodeadm/config.json -c file:///vmtest/node.yaml 2>err; local rc=$?; cat err; return $rc; }
refuses() { init; local rc=$?; [ $rc = 30 ] || { echo "exit $rc"; return 1; }; grep -qE -- "$1" err || { echo "missing: $1"; return 1; }; }
warns() { grep -q -- "$1" err; }
outcome() { python3 -c 'import json,sys; print(*sorted({a["outcome"] for a in json.load(open("/run/nodestrap/status.json"))["actions"]} - {"unchanged"}))'; }
plan_id() { nodestrap plan --output json -c file:///vmtest/node.yaml | python3 -c 'import json,sys; print(json.load(sys.stdin)["planId"])'; }
# all that a boot forgets: mounts, processes, /run
power_cycle() {
        local m; systemctl stop kubelet containerd
        for m in "$@"; do while mountpoint -q "$m"; do umount "$m" || return; done; done
        rm -rf /run/nodestrap /run/eks /run/nodeadm
}
shows() { is "$(findmnt -no "$2" --mountpoint "$1" | tail -1 | xargs)" "$3"; }
seen() { shows "$1" SOURCE "/dev/$(name_of "$2")${3-}"; }
below() { mount --bind / under && cat "under$1"; umount under; }         # of the root disk, whatever is mounted over it
D=/var/lib/containerd K=/var/lib/kubelet

mkdir -p under
try "the target is set up" target
for n in 1 2 3 4 5; do try "volume $n is made" volume $n 400M; done
for n in 1 2; do try "volume $n is attached" attach $n; done
printf 'KERNEL=="nvme*n1", ENV{DEVTYPE}=="disk", ATTRS{serial}=="vol%s*", SYMLINK+="xvdb"\n' "$(id 1)" >/etc/udev/rules.d/70-volumes.rules
udevadm control --reload; udevadm trigger --action=change "/dev/$(name_of 1)"; udevadm settle
try "udev's rule names volume 1" is "$(readlink /dev/xvdb)" "$(name_of 1)"

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
try "what the directory held is there" grep -q baked $D/io.containerd.content/link
try "its mode, too" is "$(stat -c %a $D)" 711
try "and that of another one" is "$(stat -c %a /opt/models) $(cat /opt/models/m)" "750 model"
try "it is not on the root disk any more" no below $D/io.containerd.content/blob
try "the daemons run again" systemctl is-active containerd kubelet
try "the plan has the same name as before" is "$(plan_id)" "$before_id"

# ---- the second run
echo pod >$K/pods/x; sync; written=$(writes 1)
try "a second run succeeds" init
try "and changes nothing" is "$(outcome)" ""
try "nor writes to the volume" is "$(writes 1)" "$written"

# ---- a boot: the volumes are as they were, under other kernel names
echo written-later >$D/later
try "a boot forgets the mounts" power_cycle $D $K /data /opt/models $P/xvdb $P/vol-"$(id 2)"
for n in 1 2; do detach $n; done; for n in 2 1; do attach $n; done
mkdir -p $D/io.containerd.content $K; echo new-image >$D/io.containerd.content/other
try "they are mounted again" init
try "the first one is" seen $D 1
try "with what was written" is "$(cat $D/later $K/pods/x | xargs)" "written-later pod"
try "what the root disk has by now is not copied" no test -e $D/io.containerd.content/other
try "but what the first phase has written anew is there" cmp $K/kubeconfig <(below $K/kubeconfig)
try "the plan has the same name" is "$(plan_id)" "$before_id"

# ---- grown
try "volume 1 grows" resize 1 700M; try "volume 2 grows" resize 2 700M
try "they take the room" init
try "xfs has it" sh -c "[ \$(df --output=size -m $D | tail -1) -gt 580 ]"
try "ext4 has it" sh -c "[ \$(df --output=size -m /data | tail -1) -gt 580 ]"
try "a run after that succeeds" init
try "and changes nothing" is "$(outcome)" ""
try "nothing is lost" grep -q written-later $D/later
try "a boot forgets the mounts" power_cycle $D $K /data /opt/models $P/xvdb $P/vol-"$(id 2)"
try "xfs is whole" xfs_repair -n "/dev/$(name_of 1)"; try "ext4 is whole" fsck.ext4 -fn "/dev/$(name_of 2)"

# ---- attached late, and never
wants "{device: vol-$(id 3), mountTarget: /data}"; : >err
init >late.out 2>&1 & job=$!
for _ in $(seq 600); do grep -q "Waiting for EBS volumes" err && break; read -rt 0.2 <> <(:); done
try "a volume that is not attached is waited for" grep -q "not attached yet: vol-$(id 3); giving up in" err
try "it is attached" attach 3
wait $job; try "that ends the wait" is $? 0
try "and it is mounted" seen /data 3
try "a boot forgets the mounts" power_cycle /data $P/vol-"$(id 3)"

# ---- what is refused, before the first write
was=$(for n in 1 2 3; do writes $n; done)
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
try "LVM is left alone" refuses "volume vol-$(id 4), nvme.*LVM physical volume.*left alone"
wants "{device: /dev/$(name_of 3), mountTarget: /data}" "{device: vol-$(id 3), mountTarget: /opt/models}"
try "one volume by two names is refused" refuses "/dev/$(name_of 3) and vol-$(id 3) are the same volume"
mkdir -p /elsewhere; mount "/dev/$(name_of 3)" /elsewhere
wants "{device: vol-$(id 3), mountTarget: /data}"
try "one that is mounted elsewhere is refused" refuses "is mounted at /elsewhere"
umount /elsewhere
mount -t tmpfs tmpfs /data
try "a target that is a mount is refused" refuses "/data is a mount already \(tmpfs of tmpfs\)"
umount /data
wants "{device: /dev/vda, mountTarget: /data}"
try "what is no volume is refused" refuses "no EBS volume|not attached"
attach 5                                # one partition, from 1 MiB on
printf '\0\0\0\0\203\0\0\0\0\10\0\0\0\0\10\0' | dd of="/dev/$(name_of 5)" bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of="/dev/$(name_of 5)" bs=1 seek=510 conv=notrunc,fsync status=none
blockdev --rereadpt "/dev/$(name_of 5)"; udevadm settle
wants "{device: vol-$(id 5), mountTarget: /data}"
try "partitions are left alone" refuses 'has partitions \(nvme.*p1\)'
mkfs.ext4 -q "/dev/$(name_of 5)p1"; mkdir -p /newroot; mount "/dev/$(name_of 5)p1" /newroot
try "one whose partition is mounted, too" refuses 'has partitions'
umount /newroot
try "nothing was written meanwhile" is "$(for n in 1 2 3; do writes $n; done)" "$was"

# ---- mounted by somebody else at its target already
mkfs.xfs -qf "/dev/$(name_of 3)"; mount "/dev/$(name_of 3)" /data; echo theirs >/data/x
wants "{device: vol-$(id 3), mountTarget: /data}"
try "a volume that fstab mounted is left as it is" init
try "it is mounted once" is "$(findmnt -no TARGET "/dev/$(name_of 3)" | xargs)" /data
try "with what it holds" grep -q theirs /data/x
umount /data

# ---- an empty file system that somebody else has made takes in the directory; another type is kept
mkfs.ext4 -qF "/dev/$(name_of 3)"; mkdir -p /data; echo fill >/data/f
try "an empty ext4 is used in the place of xfs" init
try "with a warning" warns filesystem-kept
try "and takes in what the directory held" is "$(cat /data/f) $(findmnt -no FSTYPE /data)" "fill ext4"
finish
