#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 4 -e -t 900
# tree: apply_tool
# create-raid and make-filesystem on real md and NVMe, in each state of a step, by tests/helpers/apply-tool. Each plan is taken as given,
# also one that the disks no longer agree with.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

# Disks by serial, as the plan names them; kernel names are as they come.
named() { local m; for m in /sys/block/nvme*; do grep -q "$1" "$m/device/model" && echo "$(tr -d ' ' <"$m/device/serial") ${m##*/}"; done | sort; }
mapfile -t serial < <(named 'Instance Storage' | cut -d' ' -f1); mapfile -t disk < <(named 'Instance Storage' | cut -d' ' -f2)
read -r ebs_serial ebs < <(named 'Elastic Block')
[ -b "/dev/$ebs" ] || { echo "Bail out! there is no EBS volume to watch"; exit 1; }
# disks N... : the words of a step that name these
disks() { local n s=() d=(); for n; do s+=("${serial[n]}"); d+=("${disk[n]}"); done; local IFS=,; echo "disks=${d[*]} serials=${s[*]}"; }
# writes NAME... : how much was written to each since power-on
writes() { local d; for d; do awk -v d="$d" '{ print d, $5, $7 }' "/sys/block/$d/stat"; done; }
array() { ls "/sys/block/$1/holders"; }
array_holds() { is "$(cd "/sys/block/$(array "$1")/slaves" && echo *)" "$(printf '%s\n' "$@" | sort | xargs)"; }
attribute() { cat "/sys/block/$(array "${disk[0]}")/md/$1"; }
content() { blkid -p -o value -s "$1" "/dev/$2" | xargs; }     # content TYPE DEVICE; "" where there is none
# marked N... : how many of these disks, members of an array, carry the mark
marked() { local n k=0; for n; do [ "$(dd if="/dev/${disk[n]}" bs=4096 count=1 iflag=direct status=none | head -c 9)" != nodestrap ] || k=$((k + 1)); done; echo $k; }
member() { mdadm --examine --export "/dev/$1" | sed -n "s/^MD_$2=//p"; }
# md has written its last metadata: the array is clean, and no region of its bitmap is dirty
quiet() { local d; for d; do until mdadm --examine-bitmap "/dev/$d" | grep -q ' 0 dirty' && grep -qx clean "/sys/block/$(array "$d")/md/array_state"; do sleep 0.1; done; done; }
locked() { local d a=(); for d in "${disk[@]}"; do a+=("--device=/dev/$d"); done; udevadm lock "${a[@]}" -- "$@"; }
# udev assembles arrays, or leaves them alone
automatic() {
        if [ "$1" = yes ]; then rm -f /etc/udev/rules.d/64-md-raid-assembly.rules; else mkdir -p /etc/udev/rules.d; ln -sf /dev/null /etc/udev/rules.d/64-md-raid-assembly.rules; fi
        udevadm control --reload
}
stop_arrays() { locked bash -c 'for m in /sys/block/md*; do [ ! -e "$m" ] || mdadm --quiet --stop "/dev/${m##*/}"; done'; }
wipe() { local n; for n; do blkdiscard --force --zeroout "/dev/${disk[n]}"; done; }
# Everything blank, as after an EC2 stop and start.
blank() { automatic no; stop_arrays; wipe 0 1 2 3; automatic yes; udevadm settle; }
stale() { automatic no; stop_arrays; wipe "$@"; automatic yes; udevadm trigger --settle --action=add "${disk[@]/#//dev/}"; udevadm settle; }

# applies EXIT PATTERN... <plan ; $programs: where it finds mdadm and mkfs
programs=$PATH
applies() {
        local want=$1 p rc miss=0 out; shift
        out=$(PATH=$programs /opt/apply-tool 2>&1); rc=$?; printf '%s\n' "$out"
        [ $rc = "$want" ] || { miss=1; echo "exit $rc instead of $want"; }
        for p; do grep -qE -- "$p" <<<"$out" || { miss=1; echo "missing: $p"; }; done
        return $miss
}
# refuses PATTERN... <plan : with exit 30, and no byte is written to any disk
refuses() {
        local before; before=$(writes "${disk[@]}" "$ebs")
        applies 30 "$@" && is "$(writes "${disk[@]}" "$ebs")" "$before"
}
R=/dev/md/kubernetes U=11111111-2222-4333-8444-555555555555
raid() { local level=$1 state=$2; shift 2; echo "create-raid $R level=$level state=$state array=yes deadline=60s $*"; }
fs() { local type=$1 state=$2; shift 2; echo "make-filesystem $R filesystem=$type uuid=$U state=$state array=yes deadline=60s $*"; }
D3=$(disks 0 1 2) D4=$(disks 0 1 2 3)

before_all=$(writes "$ebs")
automatic yes

# ---- make ----
both="$(raid raid0 make "$D3")
$(fs xfs make "$D3" "after=create-raid:$R")"
try "nodestrap makes an array and a file system" applies 0 "^done create-raid:$R" "^done make-filesystem:$R" <<<"$both"
try "the array has the planned disks" array_holds "${disk[@]:0:3}"
try "the array is RAID0 with stripes of 256 KiB" is "$(attribute level) $(attribute chunk_size)" "raid0 262144"
try "the name of the array is local to every host" is "$(member "${disk[0]}" NAME)" any:kubernetes
try "udev links the name to the array" is "$(basename "$(readlink -f $R)")" "$(array "${disk[0]}")"
try "the file system is the planned one, and not finished" is "$(content TYPE md/kubernetes) $(content LABEL md/kubernetes) $(content UUID md/kubernetes)" "xfs nodestrap-mk $U"
try "XFS follows the stripes" is "$(xfs_db -r -c 'sb 0' -c 'p unit width' $R | xargs)" "unit = 64 width = 192"
try "a finished array and file system stay as they are" applies 0 "^unchanged create-raid:$R" "^unchanged make-filesystem:$R" < <(raid raid0 keep "$D3"; fs xfs keep "$D3")
try "disks that an array holds are not made an array again" refuses "^failed create-raid:$R: ${disk[0]} \(${serial[0]}\) is held by md" < <(raid raid0 make "$D3")

# ---- a file system that may be there ----
try "nodestrap makes a file system again if its making was cut off" applies 0 "^done make-filesystem:$R" < <(fs xfs remake "$D3")
xfs_admin -L kubernetes "$R" >/dev/null; udevadm settle
try "nodestrap never makes a finished file system again" refuses "^failed make-filesystem:$R: md[0-9]+ carries xfs file system \"kubernetes\"" < <(fs ext4 make "$D3")
try "nodestrap refuses a file system that the plan does not expect" refuses "xfs file system \"kubernetes\", which the plan does not expect" < <(fs ext4 remake "$D3")
try "nodestrap keeps a file system that the plan could not see" applies 0 "^unchanged make-filesystem:$R" < <(fs ext4 assemble "$D3")
try "nodestrap refuses a file system on an array of other disks" refuses "has the disks .* but needs .*${serial[3]}" < <(fs ext4 make "$D4")

# ---- assemble ----
uuid=$(member "${disk[0]}" UUID); A="$D3 array-uuid=$uuid"
try "nodestrap accepts an array that udev has assembled meanwhile" applies 0 "^unchanged create-raid:$R" < <(raid raid0 assemble "$A")
automatic no; stop_arrays
try "nodestrap assembles an array that does not run" applies 0 "^done create-raid:$R" "^unchanged make-filesystem:$R" < <(raid raid0 assemble "$A"; fs xfs assemble "$D3" "after=create-raid:$R")
try "the assembled array has the same disks" array_holds "${disk[@]:0:3}"
stop_arrays; locked mdadm --quiet --incremental "/dev/${disk[1]}"
try "(an inactive array holds a disk)" is "$(cat /sys/block/md*/md/array_state)" inactive
try "nodestrap assembles an array that udev has begun" applies 0 "^done create-raid:$R" < <(raid raid0 assemble "$A" "running=$(array "${disk[1]}")")
stop_arrays; locked mdadm --quiet --incremental "/dev/${disk[1]}"; automatic yes
try "nodestrap assembles an array while udev does so as well" applies 0 "create-raid:$R" < <(udevadm trigger --action=change "${disk[@]/#//dev/}"; raid raid0 assemble "$A")
udevadm settle
try "the array runs after udev and nodestrap have assembled it" is "$(attribute array_state)" clean
automatic no; stop_arrays
try "nodestrap refuses to assemble an array with another UUID" refuses "carries member 0 of md array any:kubernetes" < <(raid raid0 assemble "$D3 array-uuid=00000000:00000000:00000000:00000000")
try "nodestrap refuses an array with a disk that is not a member" refuses "${disk[3]} \(${serial[3]}\) carries nothing" < <(raid raid0 assemble "$D4 array-uuid=$uuid")

# ---- remake ----
try "nodestrap refuses to remake an array whose members are all there" refuses "all members of the array of ${disk[0]} .* are back" < <(raid raid0 remake "$D3")
stale 2
try "(udev has begun an array with what is left)" is "$(cat "/sys/block/$(array "${disk[0]}")/md/array_state")" inactive
try "nodestrap remakes an array that lost a member" applies 0 "^done create-raid:$R" < <(raid raid0 remake "$D3" "running=$(array "${disk[0]}")")
try "the remade array has all disks" array_holds "${disk[@]:0:3}"
try "the remade array has another UUID" no is "$(member "${disk[0]}" UUID)" "$uuid"
try "the old file system does not reappear in the remade array" is "$(content TYPE md/kubernetes)" ""
try "each disk has the mark of an unfinished array before the new file system" is "$(marked 0 1 2)" 3
try "nodestrap makes a file system on the remade array" applies 0 "^done make-filesystem:$R" < <(fs ext4 make "$D3")
try "no disk then has the mark of an unfinished array" is "$(marked 0 1 2)" 0
try "the array then has ext4, aligned to the stripes" is "$(content TYPE md/kubernetes) $(content LABEL md/kubernetes) $(dumpe2fs -h $R 2>/dev/null | sed -n 's/^RAID str.*: *//p' | xargs)" "ext4 nodestrap-mk 64 192"
stale 0 2
try "nodestrap remakes an array with one member left" applies 0 "^done create-raid:$R" < <(raid raid0 remake "$D3")
blank; automatic no
mdadm --quiet --create /dev/md/data --run --homehost=other --name=data --level=0 --raid-devices=2 "/dev/${disk[0]}" "/dev/${disk[1]}" 2>/dev/null
try "nodestrap refuses to stop the running array of another owner" refuses "${disk[0]} \(${serial[0]}\) carries member 0 of md array other:data" < <(raid raid0 remake "$D3")
stop_arrays; wipe 1
try "nodestrap refuses to wipe the remains of the array of another owner" refuses "${disk[0]} \(${serial[0]}\) carries member 0 of md array other:data" < <(raid raid0 remake "$D3")
wipe 0
mdadm --quiet --create /dev/md/kubernetes --run --homehost=other --name=kubernetes --level=0 --raid-devices=2 "/dev/${disk[0]}" "/dev/${disk[3]}" 2>/dev/null
stop_arrays; automatic yes; locked mdadm --quiet --incremental "/dev/${disk[3]}"
try "nodestrap remakes an array of its own that was made on another host" applies 0 "^done create-raid:$R" < <(raid raid0 remake "$D3")
try "nodestrap makes a file system on that array" applies 0 "^done make-filesystem:$R" < <(fs xfs make "$D3")
xfs_admin -L kubernetes "$R" >/dev/null; automatic no; stop_arrays
for n in 0 1 2; do mdadm --quiet --zero-superblock "/dev/${disk[n]}"; done; automatic yes; udevadm settle
try "no array is made of disks whose superblocks were zeroed by hand" refuses "${disk[0]} \(${serial[0]}\) carries data without a signature \(byte [0-9]+ is not zero\)" < <(raid raid0 make "$D3")
try "nodestrap refuses a file system on a disk with unknown data" refuses "carries data without a signature" < <(echo "make-filesystem x filesystem=xfs uuid=$U state=make $(disks 0)")
blank
D1=$(disks 0)
try "nodestrap makes an array of one disk, as nodeadm does" applies 0 "^done create-raid:$R" < <(raid raid0 make "$D1")
uuid=$(member "${disk[0]}" UUID); automatic no; stop_arrays; automatic yes
try "nodestrap assembles an array of one disk" applies 0 "^(done|unchanged) create-raid:$R" < <(raid raid0 assemble "$D1 array-uuid=$uuid")
try "the disk is still a member of the array" array_holds "${disk[0]}"
blank

# ---- what changed since the plan was made ----
try "nodestrap refuses disk names that lead to other disks now" refuses "${disk[0]} is the disk ${serial[0]} now, and was ${serial[1]} when the plan was made" \
        < <(raid raid0 make "disks=${disk[0]},${disk[1]} serials=${serial[1]},${serial[0]}")
try "nodestrap refuses an array with a missing disk" refuses "the disk nvme99n1 \(AWS0\) is gone" < <(raid raid0 make "disks=${disk[0]},nvme99n1 serials=${serial[0]},AWS0")
try "nodestrap refuses an array with an EBS volume" refuses "$ebs \($ebs_serial\) is not an instance store but \"Amazon Elastic Block Store" < <(raid raid0 make "disks=${disk[0]},$ebs serials=${serial[0]},$ebs_serial")
try "nodestrap refuses a file system on an EBS volume" refuses "$ebs \($ebs_serial\) is not an instance store" < <(echo "make-filesystem x filesystem=xfs uuid=$U state=make disks=$ebs serials=$ebs_serial")
mkfs.ext4 -q -F -L mine "/dev/${disk[1]}"
try "nodestrap refuses an array with a disk that has a file system" refuses "${disk[1]} \(${serial[1]}\) carries ext4 file system \"mine\", which the plan does not expect" < <(raid raid0 make "$D3")
try "nodestrap refuses a foreign file system, also where it may wipe remains" refuses "ext4 file system \"mine\"" < <(raid raid0 remake "$D3")
try "nodestrap refuses to replace a foreign file system" refuses "ext4 file system \"mine\"" < <(echo "make-filesystem x filesystem=xfs uuid=$U state=make $(disks 1)")
wipe 1; mkswap "/dev/${disk[1]}" >/dev/null
try "nodestrap refuses an array with a disk that is swap space" refuses "carries swap" < <(raid raid0 make "$D3")
wipe 1; udevadm settle
python3 -c "import os,sys; os.open('/dev/${disk[1]}', os.O_RDONLY | os.O_EXCL); print('held', flush=True); sys.stdin.read()" < <(exec sleep inf) >held & holder=$!
tail -f --pid=$holder held | grep -qm1 held
try "nodestrap refuses an array on a blank disk in use" refuses "${disk[1]} \(${serial[1]}\) is in use" < <(raid raid0 make "$D3")
try "nodestrap refuses a file system on a blank disk in use" refuses "${disk[1]} \(${serial[1]}\) is in use" < <(echo "make-filesystem x filesystem=xfs uuid=$U state=make $(disks 1)")
kill $holder; wait $holder 2>/dev/null
printf 'label: dos\n,100M\n' | python3 -c "
import os                                       # one partition of 100 MiB in an old-fashioned table
f = os.open('/dev/${disk[1]}', os.O_RDWR); b = bytearray(512); b[446:462] = bytes([0,0,0,0,0x83,0,0,0,0,8,0,0,0,32,3,0]); b[510:512] = b'\\x55\\xaa'
os.pwrite(f, b, 0); os.fsync(f)"
blockdev --rereadpt "/dev/${disk[1]}"; udevadm settle
try "nodestrap refuses an array with a disk that has a partition" refuses "${disk[1]} \(${serial[1]}\) (has a partition|carries partition table)" < <(raid raid0 make "$D3")
wipe 1; until locked blockdev --rereadpt "/dev/${disk[1]}"; do udevadm settle; done; udevadm settle      # it fails while udev has the partition open
blockdev --setro "/dev/${disk[1]}"
try "nodestrap refuses an array with a disk that cannot be written" refuses "${disk[1]} \(${serial[1]}\) cannot be written: the kernel made it read-only" < <(raid raid0 make "$D3")
blockdev --setrw "/dev/${disk[1]}"
try "nodestrap refuses a step for disks that it has not read" refuses "were not read" < <(raid raid0 unknown "$D3")

# ---- programs ----
mkdir empty failing
printf '#!/bin/sh\necho "mdadm: not today" >&2\nexit 2\n' >failing/mdadm; chmod 755 failing/mdadm
programs=$PWD/empty try "create-raid fails without mdadm" applies 30 "mdadm is missing; the image needs mdadm" < <(raid raid0 make "$D3")
programs=$PWD/empty try "make-filesystem fails without mkfs.xfs" applies 30 "mkfs.xfs is missing; the image needs xfsprogs" < <(echo "make-filesystem x filesystem=xfs uuid=$U state=make $(disks 0)")
programs=$PWD/failing:$PATH try "create-raid fails if mdadm fails" applies 30 "$R of ${disk[0]} \(${serial[0]}\), .* cannot be created: mdadm exited with status 2, last said \"mdadm: not today\"" < <(raid raid0 make "$D3")
printf '#!/bin/sh\nexit 0\n' >failing/mdadm
programs=$PWD/failing:$PATH try "create-raid fails if mdadm exits with 0 but makes no array" applies 30 "no array holds ${disk[0]}" < <(raid raid0 make "$D3")

try "each disk has the mark of an unfinished array after the failures" is "$(marked 0 1 2)" 3
wipe 0 1 2

# ---- one disk each ----
each=$(for n in 0 1 2 3; do echo "make-filesystem ${serial[n]} filesystem=xfs uuid=${U%?}$n state=make deadline=60s $(disks $n)"; done)
printf 'half of a file system' | dd of="/dev/${disk[1]}" bs=4096 seek=1 conv=fsync status=none
try "nodestrap refuses a file system on a disk with data but no signature" refuses "${disk[1]} \(${serial[1]}\) carries data without a signature" < <(sed -n 2p <<<"$each")
wipe 1
try "nodestrap makes four file systems at the same time" applies 0 "^done make-filesystem:${serial[0]}" "^done make-filesystem:${serial[3]}" <<<"$each"
for n in 0 1 2 3; do try "disk $n has its own file system" is "$(content TYPE "${disk[n]}") $(content LABEL "${disk[n]}") $(content UUID "${disk[n]}")" "xfs nodestrap-mk ${U%?}$n"; done
try "nodestrap makes an unfinished file system again" applies 0 "^done make-filesystem:${serial[2]}" <<<"$each"
xfs_admin -L kubernetes "/dev/${disk[2]}" >/dev/null
try "nodestrap refuses to make the finished file system of one disk again" refuses "^failed make-filesystem:${serial[2]}: ${disk[2]} \(${serial[2]}\) carries xfs file system \"kubernetes\"" < <(sed -n 3p <<<"$each")
blank

# ---- RAID10 ----
try "nodestrap makes a RAID10 and its file system" applies 0 "^done create-raid:$R" "^done make-filesystem:$R" < <(raid raid10 make "$D4"; fs ext4 make "$D4" "after=create-raid:$R")
try "the RAID10 has all disks" array_holds "${disk[@]}"
try "the RAID10 has stripes of 256 KiB and a bitmap of large regions" is "$(attribute level) $(attribute chunk_size) $(attribute bitmap/location) $(attribute bitmap/chunksize)" "raid10 262144 +8 536870912"
try "the copies of RAID10 are not synchronized" is "$(attribute sync_action) $(attribute resync_start)" "idle none"
uuid=$(member "${disk[0]}" UUID); A="$D4 array-uuid=$uuid"
quiet "${disk[@]}"
try "nodestrap refuses to wipe a member that the array holds" refuses "${disk[1]} \(${serial[1]}\) is held by md" < <(raid raid10 repair "$A" "blank=${disk[1]}")
automatic no; mdadm --quiet $R --fail "/dev/${disk[1]}" --remove "/dev/${disk[1]}"
try "a removed member joins the RAID10 again" applies 0 "^done create-raid:$R" < <(raid raid10 repair "$A" "blank=${disk[1]}")
try "the RAID10 has all disks after the member joined" array_holds "${disk[@]}"
mdadm --wait $R; stale 3
try "(udev has begun an array with three of four)" is "$(cat "/sys/block/$(array "${disk[0]}")/md/array_state")" inactive
try "nodestrap starts the RAID10 with a blank member and completes it" applies 0 "^done create-raid:$R" < <(raid raid10 repair "$A" "blank=${disk[3]}")
try "the completed RAID10 has all disks" array_holds "${disk[@]}"
try "the completed RAID10 has the same UUID" is "$(member "${disk[3]}" UUID)" "$uuid"
try "the completed RAID10 has the same file system" is "$(content TYPE md/kubernetes) $(content UUID md/kubernetes)" "ext4 $U"
automatic no; stop_arrays; wipe 0 1
try "the repair fails if the other members do not suffice" applies 30 "^failed create-raid:$R: $R of .* cannot be assembled: mdadm exited with status" < <(raid raid10 repair "$A" "blank=${disk[0]},${disk[1]}")
try "the other members still belong to the array after the failed repair" is "$(member "${disk[2]}" UUID)" "$uuid"

# ---- a controller goes away ----
blank
echo 1 >"/sys/block/${disk[3]}/device/device/remove"
try "nodestrap refuses an array with a disk that went away" refuses "the disk ${disk[3]} \(${serial[3]}\) is gone" < <(raid raid10 make "$D4")

try "nothing was ever written to the EBS volume" is "$(writes "$ebs")" "$before_all"
finish
