#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plans for instance stores. The disks are image files below --root, and their contents decide. nodestrap refuses an impossible plan with
# exit status 30, and names the disk and its contents. The whole matrix is tests/unit/test-storage-plan.c.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2317  # tmp and here are its; functions are handed to ok
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")

machine() { # FIXTURE DISK...: with blank disks of 16 MiB, and all programs
        local disk program
        rm -rf "$tmp/root"; mkdir "$tmp/root"; root=$tmp/root
        "$here/../fixtures/expand.sh" "$1" "$root"
        mkdir -p "$root/dev" "$root/proc/self" "$root/usr/sbin" "$root/usr/bin" "$root/var/lib/kubelet/pki" "$root/mnt"
        echo "22 1 259:0 / / rw,noatime - ext4 /dev/root rw" >"$root/proc/self/mountinfo"
        for program in usr/bin/cp usr/sbin/mdadm usr/sbin/mkfs.xfs usr/sbin/mkfs.ext4; do install -m 755 /bin/true "$root/$program"; done
        shift
        for disk; do truncate -s 16M "$root/dev/$disk"; done
}
plan() { # LOCALSTORAGE OPTION...: exit code in $code
        cat >"$root/node.yaml" <<END_OF_CONFIG
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: training, apiServerEndpoint: "https://example.com", certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
  instance: {localStorage: $1}
END_OF_CONFIG
        shift
        "$nodestrap" plan --root "$root" -c file:///node.yaml "$@" >"$tmp/out" 2>"$tmp/err"; code=$?
}
planned() { # CONFIG STATE...: of the steps that have one, without those that move what lives on the disks
        plan "$1" --output json; shift
        local states
        [ "$code" = 0 ] || { echo "exit $code"; cat "$tmp/err"; return 1; }
        states=$(python3 -c 'import json, sys
print(*[a["state"] for a in json.load(sys.stdin)["actions"] if a["type"] in ("create-raid", "make-filesystem", "mount")])' <"$tmp/out")
        [ "$states" = "$*" ] || { echo "$states"; false; }
}
refused() { # CONFIG CAUSE WORD...: with code 30
        local word
        plan "$1"
        [ "$code" = 30 ] && says "failed (30 $2) at plan" || { echo "exit $code"; cat "$tmp/err"; return 1; }
        shift 2
        for word; do says "$word" || { echo "lacks $word"; return 1; }; done
}
secret_on() { printf 'LUKS\xba\xbe\0\1' | dd of="$root/dev/$1" conv=notrunc status=none; }    # as cryptsetup begins it
member_of() { # DISK NAME UUID ROLE DISKS [LEVEL [EVENTS]]: md's superblock, version 1.2
        python3 - "$root/dev/$1" "$2" "$3" "$4" "$5" "${6:-0}" "${7:-9}" <<'PY'
import struct, sys
path, name, uuid, role, disks, level, events = sys.argv[1], sys.argv[2].encode(), bytes([int(sys.argv[3])] * 16), *map(int, sys.argv[4:])
sb = struct.pack('<IIII16s32sQiIQIIi', 0xa92b4efc, 1, 0, 0, uuid, name, 0, level, 0x102 if level == 10 else 0, 16384, 512, disks, 0)
sb += struct.pack('<IQIIIi', 0, 0, 0, 0, 0, 0) + struct.pack('<QQQQ', 16384, 16384, 8, 0)
sb += struct.pack('<II16sBBHi', role, 0, bytes([role + 1] * 16), 0, 0, 0, 0) + struct.pack('<QQQII', 0, events, 0, 0, disks) + bytes(32)
sb += b''.join(struct.pack('<H', i) for i in range(disks))
words = sb + bytes(-len(sb) % 4)
total = sum(struct.unpack(f'<{len(words) // 4}I', words))
sb = sb[:216] + struct.pack('<I', (total & 0xffffffff) + (total >> 32) & 0xffffffff) + sb[220:]
with open(path, 'r+b') as f:
    f.seek(4096)
    f.write(sb)
PY
}
eight() { local i; for i in 1 2 3 4 5 6 7 8; do "$@" "$i"; done; }
ours() { member_of "nvme$1n1" "${host:-}kubernetes" 7 $(($1 - 1)) 8 "${level:-0}"; }
eight_disks() { machine p5-48xlarge nvme{1..8}n1; rm -rf "$root/sys/block/nvme8n1/holders/"*; }      # which the fixture has in use

# ---- one disk ----
machine g6-xlarge nvme0n1
ok "a blank disk gets a file system" planned '{strategy: RAID0}' make make
ok "the plan names the blank disk" eval 'plan "{strategy: RAID0}" && tr -s "\n " " " <"$tmp/out" | grep -q "new file system on blank nvme0n1 (AWS47F206C2DE5276E70, 250 GB)"'
ok "strategy Mount also makes a file system on a blank disk" planned '{strategy: Mount}' make make
cp -r "$root" "$tmp/before"
ok "plan writes nothing" diff -r --no-dereference "$tmp/before" "$root"
ok "RAID10 needs at least four disks" refused '{strategy: RAID10}' EDISKS 'at least four' 'this machine has 1'
ok "a missing second disk is an error that names the disk that is there" refused '{strategy: RAID0, expectedDisks: 2}' EDISKS '1 of 2 instance stores is missing' 'nvme0n1 (AWS47F206C2DE5276E70'
ok "the plan ID is the same with --skip run and with --skip config" eval 'plan "{strategy: RAID0}" --skip run; planned_id=$(tail -1 "$tmp/out" | cut -d" " -f4-); plan "{strategy: RAID0}" --skip config; [ "$planned_id" = "$(tail -1 "$tmp/out" | cut -d" " -f4-)" ]'
secret_on nvme0n1
ok "a disk with LUKS is an error that names the disk and the wipefs command" refused '{strategy: RAID0}' EDISKUSED 'nvme0n1 (AWS47F206C2DE5276E70, 250 GB)' LUKS 'wipefs --all /dev/nvme0n1'
ok "a disk with LUKS is an error with strategy Mount, too" refused '{strategy: Mount}' EDISKUSED nvme0n1 LUKS
if command -v mkfs.xfs >/dev/null && truncate -s 512M "$root/dev/nvme0n1" && mkfs.xfs -qf -L data "$root/dev/nvme0n1"; then
        ok "an existing file system is kept" planned '{strategy: RAID0}' keep make
        ok "an existing file system is kept if the configuration wants another one" planned '{strategy: RAID0, filesystem: ext4}' keep make
        ok "the plan says that nodestrap keeps xfs and does not make ext4" eval 'plan "{strategy: RAID0, filesystem: ext4}" && tr -s "\n " " " <"$tmp/out" | grep -q "holds xfs already: nodestrap keeps it, since you may need its data, and does not make ext4"'
        mkfs.xfs -qf -L nodestrap-mk "$root/dev/nvme0n1"
        ok "a file system whose creation was interrupted is made again" planned '{strategy: RAID0}' remake make
fi

# ---- places and programs ----
machine g6-xlarge nvme0n1
mkdir -p "$root/mnt/full/0/x" "$root/mnt/files"; touch "$root/mnt/file" "$root/mnt/files/0"
ok "a mountPath that is a file is an error" refused '{strategy: RAID0, mountPath: /mnt/file}' EMOUNT '/mnt/file is not a directory'
ok "a mount point that is a file is an error" refused '{strategy: RAID0, mountPath: /mnt/files}' EMOUNT '/mnt/files/0 is not a directory'
ok "a mount point that is not empty is an error" refused '{strategy: RAID0, mountPath: /mnt/full}' EMOUNT '/mnt/full/0 is not empty'
ok "a mountPath in /var/lib/kubelet, which moves, is an error" refused '{strategy: RAID0, mountPath: /var/lib/kubelet/disks}' EMOUNT 'lies in /var/lib/kubelet'
echo "30 22 0:40 / /mnt/ro ro - tmpfs tmpfs ro" >>"$root/proc/self/mountinfo"; mkdir "$root/mnt/ro"
ok "a mountPath on a read-only file system is an error" refused '{strategy: RAID0, mountPath: /mnt/ro}' EMOUNT '/mnt/ro/0 cannot be made on a read-only file system'
mkdir -p "$root/tmp" "$root/srv/open/x"; chmod 1777 "$root/tmp"; chmod 757 "$root/srv/open"; ln -s ../srv/open/x "$root/mnt/through"
ok "a mountPath below a directory that other users can write is an error" refused '{strategy: RAID0, mountPath: /srv/open/new/disks}' EMOUNT 'mountPath: /srv/open is writable by users other than root (mode 0757): a user who can write there could redirect /srv/open/new/disks, and root would write elsewhere'
ok "a mountPath in /tmp is an error despite the sticky bit" refused '{strategy: Mount, mountPath: /tmp/disks}' EMOUNT '/tmp is writable by users other than root (mode 1777)'
ok "a mountPath behind a link to a directory that other users can write is an error" refused '{strategy: RAID0, mountPath: /mnt/through/disks}' EMOUNT '/srv/open is writable by users other than root'
[ "$(id -u)" != 0 ] || { mkdir -p "$root/srv/home"; chown 1000 "$root/srv/home"; ok "a mountPath in a directory of another user is an error" refused "{strategy: RAID0, mountPath: /srv/home}" EMOUNT "/srv/home belongs to user 1000"; }
ok "a mountPath below /proc is an error" refused '{strategy: RAID0, mountPath: /proc/x}' EMOUNT 'spec.instance.localStorage.mountPath: /proc/x lies in /proc'
ok "config check accepts a mountPath below /proc" "$nodestrap" config check --root "$root" -c file:///node.yaml
machine g6-xlarge
ok "a mountPath below /sys is an error before nodestrap reads the disks" eval 'plan "{strategy: RAID0, mountPath: /sys/x}" --skip run; [ $code = 30 ] && says "/sys/x lies in /sys"'
machine g6-xlarge nvme0n1
echo "31 22 0:41 / /var/lib/kubelet/pods/x rw - tmpfs tmpfs rw" >>"$root/proc/self/mountinfo"
ok "a kubelet that runs pods is an error that names a mount and says to reboot" refused '{strategy: RAID0}' EMOUNT 'first at /var/lib/kubelet/pods/x' Reboot
ok "a kubelet that runs pods is not an error if its directory does not move" planned '{strategy: RAID0, disabledMounts: [Kubelet]}' make make
for program in mkfs.xfs cp; do
        machine g6-xlarge nvme0n1; rm "$root"/usr/*bin/$program
        ok "a missing $program is an error" refused '{strategy: RAID0}' ESTORAGETOOL "$program is missing from this image"
done

mkdir "$tmp/none"; : >"$tmp/none/libmount.so.1"      # dlopen finds this first, and it is not a library
machine g6-xlarge nvme0n1
export LD_LIBRARY_PATH=$tmp/none
ok "a missing libmount is an error" eval 'plan "{strategy: RAID0}"; [ $code = 30 ] && says "ESTORAGETOOL) at detect: libmount.so.1, which reads the mounts, cannot be loaded: "'
ok "the error for a missing libmount names the package to install" says "install libmount (Amazon Linux) or libmount1 (Debian)"
ok "a plan without local storage does not need libmount" planned '{}'
unset LD_LIBRARY_PATH

# ---- eight disks ----
eight_disks
ok "eight blank disks become a RAID0 array" planned '{strategy: RAID0}' make make make
ok "eight blank disks become a RAID10 array" planned '{strategy: RAID10}' make make make
rm "$root/usr/sbin/mdadm"
ok "a missing mdadm is an error" refused '{strategy: RAID0}' ESTORAGETOOL 'mdadm is missing from this image'
eight_disks
eight ours
ok "the array of an earlier boot is assembled" planned '{strategy: RAID0}' assemble assemble assemble
ok "an existing RAID0 array is an error for RAID10" refused '{strategy: RAID10}' EARRAY 'that is not raid10' nvme1n1 nvme8n1
host=ip-10-0-0-9: eight ours
ok "an array that was made under another host name is assembled" planned '{strategy: RAID0}' assemble assemble assemble
truncate -s 0 "$root/dev/nvme3n1"; truncate -s 16M "$root/dev/nvme3n1"
ok "a RAID0 array with a blank member is made again" planned '{strategy: RAID0}' remake remake make
ok "the plan says why it makes a new RAID0 array" eval 'plan "{strategy: RAID0}" && tr -s "\n " " " <"$tmp/out" | grep -q "make a new raid0: nvme3n1 blank, data lost"'
secret_on nvme3n1
ok "a RAID0 array with LUKS on one member is an error" refused '{strategy: RAID0}' EDISKUSED nvme3n1 LUKS
eight_disks
level=10 eight ours
truncate -s 0 "$root/dev/nvme3n1"; truncate -s 16M "$root/dev/nvme3n1"
ok "a RAID10 array with a blank member is repaired" planned '{strategy: RAID10}' repair assemble assemble
ok "the repair of the RAID10 array names the blank disk" eval 'plan "{strategy: RAID10}" --output json && python3 -c "import json, sys
print([a for a in json.load(sys.stdin)[\"actions\"] if a.get(\"blank\") == [\"nvme3n1\"]][0])" <"$tmp/out"'
truncate -s 0 "$root/dev/nvme4n1"; truncate -s 16M "$root/dev/nvme4n1"
ok "a RAID10 array is made again if both copies are gone" planned '{strategy: RAID10}' remake remake make
eight_disks
eight ours
member_of nvme1n1 kubernetes 5 0 2; member_of nvme2n1 old:kubernetes 5 1 2
ok "two arrays named kubernetes are an error" refused '{strategy: RAID0}' EARRAY 'two arrays are named kubernetes' nvme1n1 nvme2n1 nvme8n1
member_of nvme1n1 scratch 5 0 2; member_of nvme2n1 scratch 5 1 2
ok "an array with another name is an error" refused '{strategy: RAID0}' EDISKUSED nvme1n1 nvme2n1 scratch
eight_disks
rm -r "$root/sys/block/nvme5n1"
ok "a missing disk is an error with the number from the table of instance types" refused '{strategy: RAID0}' EDISKS '1 of 8 instance stores is missing' 'the table of instance types says 8' nvme8n1
eight ours
ok "the error for a missing disk has its number in the array" refused '{strategy: RAID0}' EDISKS 'the raid0 array kubernetes lacks member 4 of its 8'
done_testing
