#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 2 -e -t 600
# tree: apply_tool
# mount, move-files and bind on real xfs and ext4 on NVMe, by tests/helpers/apply-tool. They must keep every kind of file from the root disk,
# and the label of a finished file system. They must refuse what they should, and look right to systemd.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

named() { local m; for m in /sys/block/nvme*; do grep -q "$1" "$m/device/model" && echo "$(tr -d ' ' <"$m/device/serial") ${m##*/}"; done | sort; }
mapfile -t serial < <(named 'Instance Storage' | cut -d' ' -f1); mapfile -t disk < <(named 'Instance Storage' | cut -d' ' -f2)
read -r ebs_serial ebs < <(named 'Elastic Block')
[ -b "/dev/$ebs" ] || { echo "Bail out! there is no EBS volume to watch"; exit 1; }
writes() { awk '{ print $5, $7 }' "/sys/block/$1/stat"; }
content() { blkid -p -o value -s "$1" "/dev/$2"; }
wipe() { blkdiscard --force "/dev/${disk[$1]}"; udevadm settle; }
# applies EXIT PATTERN... <plan ; fails PATTERN... <plan : with exit 30
applies() {
        local want=$1 p rc miss=0 out; shift
        out=$(/opt/apply-tool 2>&1); rc=$?; printf '%s\n' "$out"
        [ $rc = "$want" ] || { miss=1; echo "exit $rc instead of $want"; }
        for p; do grep -qE -- "$p" <<<"$out" || { miss=1; echo "missing: $p"; }; done
        return $miss
}
fails() { applies 30 "$@"; }
# refuses PATTERN... <plan : and nothing is mounted
refuses() { fails "$@" && no grep -q " $M " /proc/self/mountinfo; }

M=/mnt/k8s-disks/0 U=11111111-2222-4333-8444-555555555555
D0="deadline=60s disks=${disk[0]} serials=${serial[0]}" D1="deadline=60s disks=${disk[1]} serials=${serial[1]}"
make() { echo "make-filesystem ${serial[0]} filesystem=$1 uuid=$U state=make $D0"; }
mount_line() { echo "mount $M state=make with=noatime $*"; }
binds() { local b; for b in kubelet containerd; do echo "bind /var/lib/$b state=make source=$M/$b deadline=60s after=move-files:$M"; done; }
move_line() { echo "move-files $M state=make deadline=60s moves=/var/lib/kubelet:kubelet,/var/lib/containerd:containerd,/var/log/pods:pods $*"; }
unbind() { umount /var/lib/kubelet /var/lib/containerd 2>/dev/null; umount $M; }
shows() { is "$(findmnt -n -o "$2" --mountpoint "$1" | xargs)" "$3"; }
names() { find "$@" -mindepth 1 -maxdepth 1 ! -name lost+found -printf '%f\n' | sort | xargs; }
attributes() { stat -c '%a %u %g' "$1"; }

cat >manifest.py <<'END'
import hashlib, os, stat, sys                   # sorted, one line for each file below a directory, with all that a copy must keep
lines = []
for top in sys.argv[1:]:
    for at, dirs, files in os.walk(top):
        for name in dirs + files + ['.']:
            path = os.path.join(at, name); s = os.lstat(path)
            data = os.readlink(path) if stat.S_ISLNK(s.st_mode) else hashlib.sha256(open(path, 'rb').read()).hexdigest() if stat.S_ISREG(s.st_mode) else ''
            xattrs = {x: os.getxattr(path, x, follow_symlinks=False) for x in sorted(os.listxattr(path, follow_symlinks=False)) if not x.startswith('trusted.SGI_ACL')}    # xfs's other names of ACLs
            lines.append((os.path.relpath(path, top), oct(s.st_mode), s.st_uid, s.st_gid, s.st_rdev, 0 if stat.S_ISDIR(s.st_mode) else (s.st_nlink, s.st_size),
                  s.st_mtime_ns, xattrs, data))
for line in sorted(set(map(str, lines))): print(line)
END
cat >fill.py <<'END'
import os, socket, stat, sys                    # every kind of file, as in snapshots of overlay and volumes of kubelet
top = sys.argv[1]; os.makedirs(top + '/snapshots/1/fs/dir', exist_ok=True); os.chdir(top + '/snapshots/1/fs')
for n, name in enumerate(['file', 'suid', 'hard', 'owned']):
    with open(name, 'w') as f: f.write(name * 1000)
os.link('hard', 'dir/other'); os.symlink('/nowhere', 'link'); os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket')
os.mknod('whiteout', stat.S_IFCHR, os.makedev(0, 0)); os.mknod('disk', stat.S_IFBLK | 0o640, os.makedev(7, 77))
with open('hole', 'wb') as f: f.truncate(32 << 20); f.seek(16 << 20); f.write(b'x')
os.chown('owned', 65534, 65533); os.chown('link', 9, 10, follow_symlinks=False); os.chmod('suid', 0o6755); os.chmod('dir', 0o1777)
os.setxattr('suid', 'security.capability', bytes([0, 0, 0, 2, 0, 4] + [0] * 14)); os.setxattr('dir', 'trusted.overlay.opaque', b'y'); os.setxattr('file', 'user.note', b'x')
os.setxattr('dir', 'security.selinux', b'system_u:object_r:container_file_t:s0\0')
acl = bytes([2,0,0,0, 1,0,7,0,255,255,255,255, 2,0,4,0,7,0,0,0, 4,0,5,0,255,255,255,255, 16,0,5,0,255,255,255,255, 32,0,0,0,255,255,255,255])
os.setxattr('owned', 'system.posix_acl_access', acl); os.setxattr('dir', 'system.posix_acl_default', acl)
for n in range(500): open('dir/%04d' % n, 'w').write(str(n))
for name in ['file', 'link', 'fifo', 'socket', 'whiteout', 'disk', 'hole', 'dir/other', 'dir']: os.utime(name, ns=(5, 1000000000123456789), follow_symlinks=False)
END
declare -A force=([xfs]="-f -L nodestrap-mk" [ext4]="-F -L nodestrap-mk")
manifest() { python3 manifest.py "$@"; }
systemctl stop containerd; before_all=$(writes "$ebs")
for type in xfs ext4; do printf '#!/bin/sh\necho "a helper was called" >&2\nexit 1\n' >/sbin/mount.$type; chmod 755 /sbin/mount.$type; done       # not called

for type in xfs ext4; do
        # ---- a new file system ----
        wipe 0; mkdir -p $M; chmod 2751 $M; chown 7:8 $M; setfattr=$(python3 -c "import os; os.setxattr('$M', 'security.selinux', b'system_u:object_r:mnt_t:s0\\0')" 2>&1)
        try "$type: nodestrap makes and mounts a file system (${setfattr:-labelled})" applies 0 "^done make-filesystem" "^done mount:$M" < <(make $type; mount_line "uuid=$U $D0 after=make-filesystem:${serial[0]}")
        try "$type: the mount has the planned disk and type" shows $M SOURCE,FSTYPE "/dev/${disk[0]} $type"
        try "$type: the mount has noatime" grep -q noatime < <(findmnt -n -o OPTIONS $M)
        try "$type: the file system has mode, owner and label of the directory that it covers" is "$(attributes $M) $(python3 -c "import os; print(os.getxattr('$M', 'security.selinux'))")" "2751 7 8 b'system_u:object_r:mnt_t:s0\\x00'"
        try "$type: the file system has its final label and UUID" is "$(content LABEL "${disk[0]}") $(content UUID "${disk[0]}")" "kubernetes $U"

        try "$type: a mounted and finished file system stays as it is" applies 0 "^unchanged mount:$M" < <(mount_line "uuid=$U $D0")
        umount $M
        # The run was killed before the label was there: mode and owner come first.
        try "$type: (a run ends before the file system is finished)" sh -c "$(printf '%s' "mkfs.$type -q ${force[$type]} /dev/${disk[0]} && mount -i /dev/${disk[0]} $M && chown 7:8 $M && chmod 2751 $M")"
        exec 9<$M; id=$(findmnt -n -o ID $M)
        try "$type: the repair finishes while a process uses the files" applies 0 "^done mount:$M" < <(mount_line "state=repair $D0")
        try "$type: the repair leaves the mount in its place" is "$(findmnt -n -o ID $M)" "$id"
        try "$type: the file system is finished after the repair" applies 0 "^unchanged mount:$M" < <(mount_line "state=repair $D0")
        exec 9<&-
        umount $M; mount -i "/dev/${disk[0]}" $M
        try "$type: the repaired file system has its label, mode and owner" is "$(content LABEL "${disk[0]}") $(attributes $M)" "kubernetes 2751 7 8"
        umount $M; wipe 0; try "$type: (nodestrap makes and mounts a file system once more)" applies 0 "^done mount:$M" < <(make $type; mount_line "uuid=$U $D0 after=make-filesystem:${serial[0]}")

        # ---- moved and bound ----
        rm -rf /var/lib/kubelet /var/lib/containerd /var/log/pods; mkdir -m 750 /var/lib/kubelet
        python3 fill.py /var/lib/containerd; echo one >/var/lib/kubelet/kubeconfig; manifest /var/lib/containerd >want
        try "$type: nodestrap moves and binds the content" applies 0 "^done move-files:$M" "^done bind:/var/lib/kubelet" "^done bind:/var/lib/containerd" < <(move_line; binds)
        manifest /var/lib/containerd >is
        try "$type: every file is the same after the move" diff want is
        try "$type: a sparse file stays sparse" sh -c "[ \$(stat -c %b /var/lib/containerd/snapshots/1/fs/hole) -lt 1000 ]"
        try "$type: two hard links stay one file" is "$(stat -c %i /var/lib/containerd/snapshots/1/fs/hard)" "$(stat -c %i /var/lib/containerd/snapshots/1/fs/dir/other)"
        try "$type: the bind leads to the disk" shows /var/lib/containerd SOURCE,FSROOT "/dev/${disk[0]}[/containerd] /containerd"
        try "$type: the bind is shared" shows /var/lib/containerd PROPAGATION shared
        try "$type: the directory for pod logs has mode 755 and belongs to root" is "$(attributes $M/pods)" "755 0 0"
        try "$type: the disk has only the three planned directories" is "$(names $M)" "containerd kubelet pods"
        try "$type: kubelet finds the capacity of the disk" is "$(stat -f -c '%b %S' /var/lib/kubelet)" "$(stat -f -c '%b %S' $M)"
        try "$type: a second run changes nothing" applies 0 "^unchanged move-files:$M" "^unchanged bind:/var/lib/kubelet" "^unchanged bind:/var/lib/containerd" < <(move_line; binds)
        mkdir -p root && mount --bind / root
        try "$type: no original stays behind" is "$(names root/var/lib/containerd root/var/lib/kubelet)" ""
        umount root

        # ---- systemd ----
        systemctl daemon-reload
        try "$type: systemd has the bind as a mount unit" is "$(property var-lib-containerd.mount ActiveState)" active
        try "$type: containerd is ordered after the mount unit" grep -qw var-lib-containerd.mount < <(property containerd After)
        try "$type: containerd starts after the bind" applies 0 "^done start-unit:containerd" < <(printf 'write-file /run/nodestrap/mounts-ready\nstart-unit containerd.service after=write-file:/run/nodestrap/mounts-ready\n')
        try "$type: the database of containerd is on the disk" test -e $M/containerd/io.containerd.metadata.v1.bolt/meta.db
        systemctl stop containerd; rm /run/nodestrap/mounts-ready

        # ---- the next boot ----
        echo "of a pod" >/var/lib/kubelet/volume; meta=$(sha256sum </var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db)
        unbind; mkdir -p /var/lib/kubelet; echo two >/var/lib/kubelet/kubeconfig; chmod 700 $M
        try "$type: the next boot keeps and mounts a finished file system" applies 0 "^done mount:$M" "^done bind:/var/lib/kubelet" < <(mount_line "uuid=$U $D0"; move_line "after=mount:$M"; binds)
        try "$type: the next boot keeps mode and owner of the root directory" is "$(attributes $M)" "2751 7 8"
        try "$type: newer files of the root disk win, and the other data is there" is "$(cat /var/lib/kubelet/kubeconfig /var/lib/kubelet/volume | xargs) $(sha256sum </var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db)" "two of a pod $meta"
        unbind

        # ---- not as planned ----
        try "$type: nodestrap refuses another UUID" refuses "carries $type file system \"kubernetes\" with the UUID $U instead of 99999999" < <(mount_line "uuid=99999999-2222-4333-8444-555555555555 $D0")
        try "$type: a mount with another id succeeds where the plan could not know it" applies 0 "^done mount:$M" < <(mount_line "uuid=99999999-2222-4333-8444-555555555555 ${D0/deadline/state=assemble deadline}")
        umount $M
        blockdev --setro "/dev/${disk[0]}"
        try "$type: nodestrap refuses to mount a disk that cannot be written" refuses "${disk[0]} \($type\) cannot be mounted on $M: .*write-protected" < <(mount_line "uuid=$U $D0")
        blockdev --setrw "/dev/${disk[0]}"
done

rm /sbin/mount.xfs /sbin/mount.ext4
mkdir aside; mv /usr/lib/x86_64-linux-gnu/libmount.so.1* aside
try "the mount fails without libmount, and the error names the package" refuses "libmount.so.1, which mounts disks, cannot be loaded: .*; install libmount \(Amazon Linux\) or libmount1" < <(mount_line "uuid=$U $D0")
mv aside/* /usr/lib/x86_64-linux-gnu/

# ---- not a file system, or not ours ----
wipe 1
try "nodestrap refuses to mount a blank disk" refuses "${disk[1]} \(${serial[1]}\) carries nothing" < <(mount_line "$D1")
mkswap "/dev/${disk[1]}" >/dev/null
try "nodestrap refuses to mount swap space" refuses "${disk[1]} \(${serial[1]}\) carries swap" < <(mount_line "$D1")
mkfs.ext2 -q -F -L old "/dev/${disk[1]}"
try "nodestrap refuses to mount a file system of another kind" refuses "carries ext2 file system \"old\"" < <(mount_line "$D1")
wipe 1; mkfs.ext4 -q -F -L kubernetes "/dev/${disk[1]}"; dd if=/dev/zero of="/dev/${disk[1]}" bs=4k seek=1 count=1 conv=fsync,notrunc status=none
try "the mount of a damaged file system fails with the text of libmount" refuses "/dev/${disk[1]} \(ext4\) cannot be mounted on $M: .*; see dmesg" < <(mount_line "$D1")
try "nodestrap refuses to mount a disk that has another serial number now" refuses "${disk[1]} is the disk ${serial[1]} now, and was ${serial[0]} when" < <(mount_line "deadline=60s disks=${disk[1]} serials=${serial[0]}")
try "nodestrap refuses to mount an EBS volume" refuses "$ebs \($ebs_serial\) is not an instance store" < <(mount_line "deadline=60s disks=$ebs serials=$ebs_serial")
rmdir $M; echo "a file" >$M
try "the mount fails if its target is a file" fails "^failed mount:$M: $M cannot be made: it or a directory above it is a file" < <(mount_line "$D0")
try "the target is still the same file" is "$(cat $M)" "a file"
rm $M

# ---- no room ----
rm -rf /var/lib/kubelet /var/lib/containerd; mkdir -p /var/lib/kubelet; python3 fill.py /var/lib/containerd
head -c 20M /dev/urandom >/var/lib/containerd/big; echo three >/var/lib/kubelet/kubeconfig; manifest /var/lib/containerd /var/lib/kubelet >want
for make in "mkfs.ext4 -q -F -L kubernetes /dev/${disk[1]} 12M" "mkfs.ext4 -q -F -L kubernetes -N 256 /dev/${disk[1]} 200M"; do
        wipe 1; $make
        try "move-files fails without room for the copy" fails "^failed move-files:$M: copying to $M, where [0-9]+ MiB were free .*No space left on device" "^skipped bind:/var/lib/kubelet" \
                < <(mount_line "$D1"; move_line "after=mount:$M"; binds)
        manifest /var/lib/containerd /var/lib/kubelet >is
        try "the originals are the same after the failed copy" diff want is
        try "the failed copy leaves nothing on the disk" is "$(names $M)" ""
        try "nothing is bound after the failed copy" no mountpoint -q /var/lib/containerd
        umount $M
done

try "nothing was ever written to the EBS volume" is "$(writes "$ebs")" "$before_all"
finish
