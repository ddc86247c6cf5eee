#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1007,SC2034,SC2046,SC2054,SC2166 # A= B= clears; words are split on purpose
# usage: vmboot.sh [OPTION...] SCRIPT [ARGUMENT...]
# Boots a Debian guest under QEMU without a network, runs SCRIPT in it as root, returns its exit status. QEMU emulates the processor (TCG)
# where KVM starts no guest: a short boot decides, once after each start of this machine.
#   -p TREE     directory unpacked over / of the guest BEFORE systemd starts, so its units are part of the boot (with -s: after)
#   -d N        N emulated 1 GiB NVMe drives that look like EC2 instance stores (default 2): model, serial AWS..., by-id names
#   -b BYTES    their logical blocks (default 512)
#   -e          one more NVMe drive that looks like an EBS volume; OUT/ebs says "untouched" without a write to it
#   -v NAME[:SIZE][:late]  one more EBS volume, which keeps what it holds: NAME from the launch template (/dev/sdb) in its identify
#               page, serial volN with 17 digits for the Nth -v; SIZE 1G; late: it is attached when the guest says so
#   -w MAC[:late]  one network card (virtio) with this MAC in a network of vpc.py's, may be given nine times; late: it comes when the guest
#               says so. There are no others then, but for eth0 of -i
#   -T TYPE     an instance type, as the firmware of the machine says it (/sys/class/dmi/id/product_name)
#   -i DIR      answer IMDSv2 at 169.254.169.254 from this directory (see imds.py); the guest gets eth0 with 169.254.169.10/24
#   -s          start from a booted snapshot (saved on first use) and hotplug the drives instead of booting
#   -S SUITE    Debian suite of the guest: bookworm (default), trixie, ...      -a PKG,...  more packages in its image
#   -A ARCH     amd64 (default); arm64, or arm64-16k, with Debian's kernel of 16 KiB pages: Debian 13 only, and neither with -s nor with
#               -T, which an arm64 kernel takes from UEFI firmware alone. In it /dev/ttyS0 is a link to its console
#   -n NODES    NUMA nodes (default 1)   -c CPUS (default 2)   -m MEMORY (default 2G)
#   -k SECONDS  power cut: kill QEMU that long after power-on, boot again with the same disks, run SCRIPT again (VMTEST_BOOT=2)
#   -K TEXT     the same at the moment when TEXT appears on the console (in the guest: echo "<1>TEXT" >/dev/kmsg, or TEXT >/dev/ttyS0), in each boot that
#               shows it
#   -o OUT      results: stdout, stderr, rc, journal, console.N, and all that SCRIPT leaves in /vmtest/out
#               (without -o a temporary directory, kept only after a failure)
#   -t SECONDS  time limit of each boot (default 300)
#   -q          QEMU as it is: its own model string, EC2's by-id names made by a udev rule in the guest
#   --deps      install what is needed on this machine      --build  only make the image, print the path of its root directory
#   --accel [KERNEL INITRD]  print kvm or tcg: what guests of amd64 run under here; with an initrd that has /bin/busybox, or that of the image
#   --clean     remove what tests keep in the cache: images, snapshots, packages of other suites, kept failures        --help
# SCRIPT finds its boot number in $VMTEST_BOOT and may say "systemctl reboot": it then runs again with the next number. After
# "echo VMTEST blank-drives >/dev/ttyS0" the next boot has new, empty instance stores (what an EC2 stop/start does). Said the same way,
# attach N and detach N have the Nth volume come and go, and "grow N SIZE" has it larger when it comes the next time; "plug N MAC" and
# "unplug N" have the Nth network card come, with this MAC from then on, and go.
# Exit status: SCRIPT's; 77 skipped (reason on stderr), 96 no power cut happened, 97 no result, 98 time limit or panic, 99 no image.
# Environment: NODESTRAP_TEST_CACHE (default /var/cache/nodestrap-test), NODESTRAP_TEST_REQUIRE=1 (a skip is an error),
# NODESTRAP_TEST_NO_BUILD=1 (skip where the image is not made yet),
# NODESTRAP_TEST_ACCEL (tcg or kvm, which then is not tried), NODESTRAP_TEST_QEMU_ARGS, NODESTRAP_TEST_APPEND (kernel arguments),
# NODESTRAP_TEST_MIRROR, NODESTRAP_TEST_SECURITY_MIRROR (default: the mirror in the apt sources of this machine).

set -u; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"
TREE= ND=2 BLOCK=512 EBS= VOLUMES=() CARDS=() IMDS= SNAP= SUITE=bookworm EXTRA= NODES=1 CPUS=2 MEM=2G CUT= CUTTEXT= OUT= LIMIT=300 STOCK= TYPE=() BUILD= W= P= VPC= ARCH=amd64 ASKS= TRIED=()
case ${1-} in
--deps) deps; exit;;
--clean)                # images and peers.sh's packages have a lock beside them
        root; for f in "$BASE"/*.lock; do rm -rf "${f%.lock}"; done
        rm -rf "$BASE"/{*.lock,image-*,failed.*,tmp.*,qemu-*,apt,accel}; exit;;
--build) BUILD=1; shift;;
--accel)
        ASKS=1; shift
        [ $# -lt 2 ] || [[ $1 = -* ]] || { TRIED=("$(realpath -e "$1")" "$(realpath -e "$2")") || exit 2; shift 2; };;
--help|'') usage; exit;;
esac
while getopts A:p:d:b:ev:w:T:i:sS:a:n:c:m:k:K:o:t:q o; do case $o in
        A) ARCH=$OPTARG;; p) TREE=$(realpath -e "$OPTARG") || exit 2;; d) ND=$OPTARG;; b) BLOCK=$OPTARG;; e) EBS=1;; v) VOLUMES+=("$OPTARG");; w) CARDS+=("$OPTARG");; T) TYPE=(-smbios "type=1,product=$OPTARG");; i) IMDS=$(realpath -e "$OPTARG") || exit 2;; s) SNAP=1;;
        S) SUITE=$OPTARG;; a) EXTRA=,$OPTARG;; n) NODES=$OPTARG;; c) CPUS=$OPTARG;; m) MEM=$OPTARG;; k) CUT=$OPTARG;; K) CUTTEXT=$OPTARG;;
        o) OUT=$OPTARG;; t) LIMIT=$OPTARG;; q) STOCK=1;; *) exit 2;;
esac; done; shift $((OPTIND-1))
[ -n "$BUILD$ASKS" ] || { SCRIPT=$(realpath -e "${1:?SCRIPT}") || exit 2; shift; }
root; [ "$(uname -m)" = x86_64 ] || skip "the guest is x86-64 only"
case $ARCH in
amd64) FLAVOUR='' FOREIGN='' MACHINE=x86_64 KERNELS=linux-image-cloud-amd64;;
arm64|arm64-16k)
        [ -z "$SNAP" ] && [ ${#TYPE[@]} = 0 ] || { say "-s and -T are for amd64"; exit 2; }
        FLAVOUR=${ARCH#arm64} ARCH=arm64 FOREIGN=arm64 SUITE=trixie MACHINE=aarch64 KERNELS="linux-image-cloud-arm64 linux-image-arm64-16k";;
*) say "-A is amd64, arm64 or arm64-16k"; exit 2;;
esac
need mmdebstrap mkfs.ext4 busybox cpio xz modprobe; [ -n "$BUILD" ] || need "qemu-system-$MACHINE" qemu-img socat python3

# ---- the image: made once for each suite, package list and text of this section --------------------------------------------------
PKGS=systemd,systemd-sysv,dbus,udev,mdadm,xfsprogs,e2fsprogs,containerd,runc,kmod,iproute2,python3,libjansson4,libyaml-0-2,libexpat1,zlib1g
PKGS+=,libcurl4,libsystemd0,libblkid1,libmount1,curl,nvme-cli,iptables,procps,strace$EXTRA
MODS="nvme ext4 virtio_blk virtio_pci virtio_net raid0 raid1 raid10 md_mod xfs dummy veth bridge br_netfilter overlay loop nvme_tcp nvmet
 nvmet_tcp fuse autofs4 configfs dm_mod tun ip_tables iptable_nat iptable_filter nf_tables nft_compat nft_chain_nat xt_MASQUERADE
 xt_conntrack xt_comment xt_tcpudp xt_mark crc32c_generic crc32c_intel libcrc32c binfmt_misc efi_pstore
 ib_core ib_uverbs ib_umad rdma_ucm mlx5_ib"
MASK="getty@tty1 serial-getty@ttyS0 serial-getty@ttyAMA0 e2scrub_reap mdmonitor nvmf-autoconnect nvmefc-boot-connections systemd-update-utmp-runlevel modprobe@drm"

root_amd64() {
        mmdebstrap -q --variant=minbase --include="$PKGS" --aptopt='APT::Install-Recommends "false"' "${OLD[@]}" \
                --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
                "$SUITE" rootfs "$SOURCES"
        cp "$(command -v busybox)" busybox
}
# Programs of another architecture cannot run here, and need not: packages are unpacked, and this does the parts of their scripts that a
# guest needs.
root_arm64() {
        local R=rootfs f; mkdir -p debs/partial $R
        apt-get "${APT[@]}" -qqy --no-install-recommends -o Dir::Cache::Archives="$PWD/debs/" --download-only install ${PKGS//,/ } busybox-static \
                $(apt-cache "${APT[@]}" dumpavail | awk -v RS= '/\nEssential: yes/ { print $2 }')
        for f in debs/base-files_*.deb debs/*.deb; do                   # first those that have /bin a link
                dpkg-deb --fsys-tarfile "$f" | tar -C $R --keep-directory-symlink --exclude='./usr/share/man/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*' -xf -
        done
        rm -rf debs; cp $R/usr/bin/busybox busybox
        for f in passwd group; do cp "$R/usr/share/base-passwd/$f.master" "$R/etc/$f"; done
        systemd-sysusers --root="$PWD/$R"; cp $R/usr/share/libc-bin/nsswitch.conf $R/etc/; systemctl --root="$PWD/$R" enable containerd
        ln -s /dev/null $R/etc/systemd/system/systemd-hwdb-update.service
        ln -s mawk $R/usr/bin/awk; for f in iptables iptables-save iptables-restore; do ln -s xtables-nft-multi $R/usr/sbin/$f; done
}
kernel() {      # NAME V END: its modules go to the root, vmlinuz and initrd.cpio with END
        local V=$2 R=rootfs m f
        mkdir k; (cd k; apt-get "${APT[@]}" -qq download "$1" $(apt-cache "${APT[@]}" depends "$1" | awk '/Depends: linux-(modules|binary|base)-/ { print $2 }')
                for f in *.deb; do dpkg -x "$f" .; done); cp "$(find k -type f -name 'vmlinuz*' | head -1)" "vmlinuz$3"
        # Keep only the modules that tests need: all that udev would load at boot costs 5-8 s under TCG.
        m=$(find k -type d -path '*/lib/modules' | head -1); cp -a "$m" $R/usr/lib/; depmod -b $R "$V"
        loads() { for m; do modprobe -d "$PWD/$R" -S "$V" --show-depends $m 2>/dev/null || true; done | awk -v root="$PWD/$R" '
                /^insmod/ && !s[$2]++ { sub("^" root "/", "", $2); sub("^lib/", "usr/lib/", $2); print $2 }'; }
        loads $MODS | sort > keep
        tar -C $R -cf keep.tar -T keep; rm -rf "$R/usr/lib/modules/$V/kernel"; tar -C $R -xf keep.tar; depmod -b $R "$V"
        # A 2-3 MB initrd brings up the virtio root; so only the test's drives are NVMe and the guest can be saved as a snapshot.
        mkdir -p i/bin i/proc i/sys i/dev i/mnt i/m; cp busybox i/bin/
        loads virtio_pci virtio_blk ext4 | while read -r f; do m=${f##*/}; m=${m%.xz}
                case $f in *.xz) xz -dc "$R/$f" > i/m/$m;; *) cp "$R/$f" i/m/$m;; esac; echo $m; done > i/m.list
        mv i/m.list i/m/list
        cat > i/init <<'I'
#!/bin/busybox sh
B=/bin/busybox; $B mount -t proc p /proc; $B mount -t sysfs s /sys; $B mount -t devtmpfs d /dev
for f in $($B cat /m/list); do $B insmod /m/$f; done
for i in $($B seq 300); do for s in /sys/block/vd*/serial; do [ "$($B cat $s 2>/dev/null)" = ROOT ] && d=${s%/serial} && break 2; done; $B sleep 0.1; done
[ -n "$d" ] || exit 1   # a panic, which the caller reports
$B mount -t ext4 -o rw /dev/${d##*/} /mnt; $B mount --move /dev /mnt/dev; $B umount /sys; $B umount /proc
exec $B switch_root /mnt /usr/sbin/vminit
I
        chmod 755 i/init; (cd i; find . | cpio -o -H newc --quiet) > "initrd.cpio$3"; rm -rf k i keep*
}
build() {       # -> $1/{rootfs,root.img,vmlinuz*,initrd.cpio*}; those of a kernel that is not the first end in the last word of its name
        set -e; local D=$1 R=$1/rootfs k K m; cd "$D"; apt_for "$SUITE" ${FOREIGN:+"$FOREIGN"}
        "root_$ARCH"
        for k in $KERNELS; do
                K=$(apt-cache "${APT[@]}" depends "$k" | awk '/Depends: linux-image-/ { print $2; exit }')
                kernel "$K" "${K#linux-image-}" "$([ "$k" = "${KERNELS%% *}" ] || echo "-${k##*-}")"
        done
        cat > $R/usr/sbin/vmlib <<'I'
disk() { for s in /sys/block/vd*/serial; do read -r v <$s; d=${s%/serial}; [ "$v" = $1 ] && echo /dev/${d##*/}; done 2>/dev/null; }
arg() { tr ' ' '\n' </proc/cmdline | sed -n "s/^vmtest.$1=//p"; }
unpack() { tar -C / --no-same-owner --keep-directory-symlink -xf $(disk PAYLOAD) && sync; }
net() { [ ! -e /vmtest/net ] || { modprobe virtio_net; ip link set eth0 up; ip addr add 169.254.169.10/24 dev eth0; }; }
I
        cat > $R/usr/sbin/vminit <<'I'
#!/bin/sh
mount -t proc p /proc; mount -t sysfs s /sys; . /usr/sbin/vmlib
[ ! -e /dev/ttyAMA0 ] || ln -sf ttyAMA0 /dev/ttyS0     # what the console of this architecture is called
case $(arg hotplug)$(arg boot) in 01) unpack; net;; 0*) net;; esac
umount /sys; umount /proc; exec /lib/systemd/systemd
I
        cat > $R/usr/sbin/vmrun <<'I'
#!/bin/bash
. /usr/sbin/vmlib; export VMTEST_BOOT=$(arg boot)
up() { echo "VMTEST $* $(cut -d' ' -f1 /proc/uptime)" >/dev/ttyS0; }
mkdir -p /vmtest/out; cd /vmtest; systemctl is-system-running --wait >out/state; up booted
if [ "$(arg hotplug)" = 1 ]; then
        until [ -n "$(disk PAYLOAD)" ]; do sleep 0.1; done
        unpack; date -s "@$(cat now)" >/dev/null; net; systemctl daemon-reload; udevadm settle
fi
up start; eval "set -- $(cat args)"; bash -c './run.sh "$@"' run.sh "$@" >>out/stdout 2>>out/stderr </dev/null; rc=$?
[ "$(systemctl is-system-running)" != stopping ] || sleep 1000          # it asked for a reboot: the next boot reports
echo $rc >out/rc; journalctl -o short-monotonic --no-pager >out/journal 2>&1
d=$(disk RESULTS); tar -C out -cf $d .; sync $d; up "rc $rc"; systemctl poweroff -ff
I
        chmod 755 $R/usr/sbin/vminit $R/usr/sbin/vmrun
        printf '[Unit]\nAfter=multi-user.target\n[Service]\nType=exec\nExecStart=/usr/sbin/vmrun\n' > $R/etc/systemd/system/vmtest.service
        mkdir -p $R/etc/systemd/system/multi-user.target.wants $R/var/log/journal
        ln -sf ../vmtest.service $R/etc/systemd/system/multi-user.target.wants/
        for m in $MASK; do ln -sf /dev/null $R/etc/systemd/system/$m.service; done; rm -f $R/etc/systemd/system/timers.target.wants/*
        cat > $R/etc/udev/rules.d/61-stock-qemu.rules <<'I'
KERNEL!="nvme*[0-9]n*[0-9]", GOTO="end"
ENV{DEVTYPE}!="disk", GOTO="end"
ENV{ID_MODEL}!="QEMU NVMe Ctrl*", GOTO="end"
ENV{ID_SERIAL_SHORT}=="AWS*", SYMLINK+="disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_$env{ID_SERIAL_SHORT} disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_$env{ID_SERIAL_SHORT}_1"
ENV{ID_SERIAL_SHORT}=="vol*", SYMLINK+="disk/by-id/nvme-Amazon_Elastic_Block_Store_$env{ID_SERIAL_SHORT}"
LABEL="end"
I
        echo vmtest > $R/etc/hostname; : > $R/etc/fstab; : > $R/etc/machine-id; rm -rf $R/var/lib/apt/lists/* $R/var/cache/apt/*.bin
        truncate -s $(($(du -sm rootfs | cut -f1) + 1100))M root.img; mkfs.ext4 -q -F -d rootfs -O ^metadata_csum -J size=8 -m 0 root.img; rm -f busybox
        cd /
}
# ---- end of the image ------------------------------------------------------------------------------------------------------------
# ACCELERATOR: kvm or tcg, under what guests run. A /dev/kvm may be there and start nothing, so the kernel KERNEL boots with INITRD under
# KVM, and its first program says a word. The answer holds until this machine starts again or QEMU is another one.
accelerator() { # KERNEL INITRD
        local word=nodestrap-guest qemu=qemu-system-x86_64 key pid i ended why='the guest says nothing for 10 s'
        ACCELERATOR=tcg
        case ${NODESTRAP_TEST_ACCEL-} in
        tcg|kvm) ACCELERATOR=$NODESTRAP_TEST_ACCEL; return;;
        '') [ $ARCH = amd64 ] || return;;
        *) say "NODESTRAP_TEST_ACCEL is $NODESTRAP_TEST_ACCEL; set tcg or kvm, or unset it"; exit 2;;
        esac
        exec 6>>"$BASE/accel.lock"; flock 6
        key="$(</proc/sys/kernel/random/boot_id) $("$qemu" --version | head -1)"
        if [ "$(sed -n 1p "$BASE/accel" 2>/dev/null)" = "$key" ]; then
                ACCELERATOR=$(sed -n 2p "$BASE/accel"); exec 6>&-; return
        fi
        : >"$W/accel.console"
        (ulimit -c 0; exec "$qemu" -M pc -accel kvm -cpu host -m 256M -nodefaults -display none -no-reboot -serial file:"$W/accel.console" \
                -kernel "$1" -initrd "$2" -append "console=ttyS0 panic=-1 quiet rdinit=/bin/busybox -- echo $word") \
                </dev/null >"$W/accel.said" 2>&1 6>&- 9>&- & pid=$!
        {       # 10 s at most, of which a guest under KVM needs a small part
                for ((i = 0; i < 200; i++)); do
                        kill -0 $pid && ended='' || ended=1     # what it wrote last is still to be read
                        if grep -aqx "$word"$'\r\\?' "$W/accel.console"; then ACCELERATOR=kvm; break; fi
                        if [ -n "$ended" ]; then why=$(head -n 1 "$W/accel.said"); why=${why:-QEMU ends without a word}; break; fi
                        sleep 0.05
                done
                kill -KILL $pid; wait $pid
        } 2>/dev/null
        [ $ACCELERATOR = kvm ] || say "KVM starts no guest here: $why; guests run under TCG"
        printf '%s\n%s\n' "$key" $ACCELERATOR >"$BASE/accel.new" && mv "$BASE/accel.new" "$BASE/accel" || exit 99
        exec 6>&-
}
cleanup() { [ -z "$P" ] || kill -KILL "$P" 2>/dev/null; [ -z "$VPC" ] || kill "$VPC"; [ -z "$W" ] || rm -rf "$W"; }
trap cleanup EXIT; trap 'exit 130' INT TERM
mkdir -p "$BASE" && W=$(mktemp -d -p "$BASE") || { say "the cache $BASE cannot be written; set NODESTRAP_TEST_CACHE to a directory with 4 GB to spare"; exit 99; }
T=$EPOCHREALTIME
if [ ${#TRIED[@]} != 0 ]; then accelerator "${TRIED[@]}"; echo $ACCELERATOR; exit; fi
key=$( { sed -n '/^# ---- the image/,/^# ---- end of/p' "$0"; echo "$SUITE$EXTRA${FOREIGN:+ $FOREIGN}"; } | sha256sum | cut -c1-12); CACHE=$BASE/image-$SUITE${FOREIGN:+-$FOREIGN}-$key
exec 9>"$CACHE.lock"; flock 9
if [ ! -d "$CACHE" ]; then
        [ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ] || skip "no image of $SUITE${FOREIGN:+ for $FOREIGN} here yet (make images makes it)"
        say "making the $SUITE image${FOREIGN:+ for $FOREIGN} in $CACHE"; mkdir "$W/image"
        ( build "$W/image" ) >"$W/log" 2>&1; [ $? = 0 ] || not_made "$W/log" image
        mv "$W/image" "$CACHE"; say "made in $(elapsed $T) s"
        find "$BASE" -maxdepth 1 -name 'image-*.lock' -mtime +7 | while read -r f; do    # unused for a week; the lock stays, someone may wait for it
                (flock -n 8 && rm -rf "${f%.lock}") 8>>"$f"
        done
fi
touch "$CACHE.lock"
[ -z "$BUILD" ] || { echo "$CACHE/rootfs"; exit; }
accelerator "$CACHE/vmlinuz" "$CACHE/initrd.cpio"; [ -z "$ASKS" ] || { echo $ACCELERATOR; exit; }
MIB=$(($(numfmt --from=iec "$MEM") >> 20)); [ -n "$OUT" ] && KEEP=1 || { KEEP=; OUT=$W/out; }; mkdir -p "$OUT"; OUT=$(realpath "$OUT")
rm -f "$OUT"/console.*

# ---- QEMU ------------------------------------------------------------------------------------------------------------------------
if [ -n "$STOCK" ]; then QEMU=qemu-system-$MACHINE; else QEMU=$here/qemu-ec2.sh; export QEMU_EC2=$MACHINE; "$QEMU" --version >/dev/null || skip "no EC2 model strings (-q does without)"; fi
VERSION=$("$QEMU" --version | sed -n '1s/.*version \([^ ]*\).*/\1/p')
# All CPUs take turns in one thread. With a thread each, one may meet the breakpoint of a jump label that another has patched already. The guest
# then dies ("Oops: int3"). Two guests at once on two CPUs take as long either way.
# Some features are slow to emulate, so they are off: vectors, which each switch of tasks saves (xsave), string instructions byte by byte
# (erms), a fifth level of page tables. Checks of each access of the kernel to the memory of a program are slow, too.
ACCEL=(-M pc -accel tcg,thread=single -cpu max,avx=off,avx2=off,xsave=off,erms=off,la57=off,smap=off,pku=off,pks=off)
[ $ACCELERATOR != kvm ] || ACCEL=(-M pc -accel kvm -cpu host)
# no_timer_check: beside other load the kernel may see no tick while it looks for one. It then leaves the timer interrupt in service for
# good, which holds back those of the disks. Under KVM the kernel does not look (arch/x86/kernel/kvm.c).
KARGS="console=ttyS0 no_timer_check"
if [ $ARCH = arm64 ]; then              # pointer authentication and vectors are slow to emulate
        ACCEL=(-M virt,gic-version=3 -accel tcg,thread=single -cpu max,pauth=off,sve=off) KARGS="console=ttyAMA0 8250.nr_uarts=0"
fi
# norandmaps: TCG translates code for each address that it is mapped at. With libc at one address in all programs, half of the work is left.
# init_on_alloc=0: the kernel clears what must be clear and not, beside that, all that it hands out.
KARGS+=" net.ifnames=0 mitigations=off random.trust_cpu=on panic=-1 quiet norandmaps init_on_alloc=0"
# nvme_core.io_timeout: an emulated drive may lose an answer; the kernel looks for it after so many seconds.
KARGS+=" nvme_core.io_timeout=15"
# Images of EKS set these in sysctl.d, and kubelet wants them (protectKernelDefaults), also in a guest from a snapshot.
KARGS+=" sysctl.vm.overcommit_memory=1 sysctl.kernel.panic=10 sysctl.kernel.panic_on_oops=1"
# Modules are loaded when something wants them, and an image has its ldconfig behind it: each of these costs up to 2 s there.
for unit in modprobe@{dm_mod,fuse,loop,efi_pstore} ldconfig systemd-pstore; do KARGS+=" systemd.mask=$unit.service"; done
NUMA=(); [ "$NODES" -gt 1 ] && for ((i = 0; i < NODES; i++)); do    # more nodes than CPUs: the last ones are memory only
        a=$((i * CPUS / NODES)) b=$(((i + 1) * CPUS / NODES - 1)); [ "$CPUS" -ge "$NODES" ] || { a=$i; b=$i; }
        size=$((MIB / NODES)); [ $i -gt 0 ] || size=$((MIB - MIB / NODES * (NODES - 1)))
        c=; [ $a -ge "$CPUS" ] || c=,cpus=$a-$b
        NUMA+=(-object "memory-backend-ram,id=m$i,size=${size}M" -numa "node,nodeid=$i,memdev=m$i$c")
done
CACHING=unsafe; [ -z "$CUT$CUTTEXT" ] || CACHING=writeback              # with a power cut the guest's flushes must count
qemu() {        # CONSOLE ROOT HOTPLUG ARGUMENT...; runs in the background, so $! is QEMU itself
        local console=$1 img=$2 plug=$3; shift 3; exec 9>&-
        exec "$QEMU" "${ACCEL[@]}" -smp "$CPUS" -m "${MIB}M" "${NUMA[@]}" "${TYPE[@]}" -nodefaults -display none -no-reboot -serial file:"$console" \
                -drive if=none,id=root,file="$img",format=qcow2,cache=$CACHING -device virtio-blk-pci,drive=root,serial=ROOT,disable-legacy=on \
                "${NET[@]}" -monitor unix:"$W/mon",server,nowait -kernel "$CACHE/vmlinuz$FLAVOUR" -initrd "$CACHE/initrd.cpio$FLAVOUR" \
                -append "$KARGS vmtest.hotplug=$plug vmtest.boot=$BOOT ${NODESTRAP_TEST_APPEND:-}" \
                "$@" ${NODESTRAP_TEST_QEMU_ARGS:-}
}
# Commands for the QEMU monitor on stdin; ends when the last one is done. A connection that ends before QEMU had the time to take it is
# lost with all that was written to it.
hmp() {
        while [ ! -S "$W/mon" ]; do sleep 0.02; kill -0 "$P" 2>/dev/null || return; done
        rm -f "$W/said"
        {
                cat; echo info status
                for ((i = 0; i < 2400; i++)); do        # 2 minutes at most
                        if grep -qs 'VM status' "$W/said" || ! kill -0 "$P" 2>/dev/null; then break; fi
                        sleep 0.05
                done
        } | socat -t 1 - UNIX-CONNECT:"$W/mon" >"$W/said"
        grep -aiE '^(error|.*could not)' "$W/said" >&2
}
OWN=(-netdev "user,id=n0,restrict=on,net=169.254.169.0/24,host=169.254.169.1,dhcpstart=169.254.169.10${IMDS:+,guestfwd=tcp:169.254.169.254:80-cmd:$W/imds}"
        -device virtio-net-pci,netdev=n0,romfile=)
uptime_of() { tr -d '\r' <"$1" 2>/dev/null | sed -n "s/.*VMTEST $2 //p" | tail -1 | grep . || echo -; }

# A snapshot goes on only on the machine and with the kernel that it was made on.
SNAPFILE=$CACHE/snap-$VERSION-$MIB-$CPUS-$NODES-$(sha256sum <<<"${ACCEL[*]} $KARGS ${NODESTRAP_TEST_APPEND-}" | cut -c1-8).qcow2 BOOT=1
if [ -n "$SNAP" ] && [ ! -f "$SNAPFILE" ]; then         # boot once without drives (QEMU cannot save an NVMe device), save
        say "saving a booted snapshot"; t=$EPOCHREALTIME; qemu-img create -q -f qcow2 -b "$CACHE/root.img" -F raw "$W/snap"
        NET=("${OWN[@]/,guestfwd*/}"); qemu "$W/console" "$W/snap" 1 & P=$!
        until grep -q 'VMTEST booted' "$W/console" 2>/dev/null; do sleep 0.2; kill -0 $P 2>/dev/null || { P=; tail "$W/console" >&2; exit 98; }; done
        { sleep 0.5; echo 'savevm booted'; } | hmp; kill $P; wait $P; P=; rm -f "$W/mon"; mv "$W/snap" "$SNAPFILE"; say "saved in $(elapsed $t) s"
fi
flock -u 9

# ---- this run's disks ------------------------------------------------------------------------------------------------------------
mkdir -p "$W/t/vmtest"; [ -z "$TREE" ] || cp -a "$TREE/." "$W/t/"; cp "$SCRIPT" "$W/t/vmtest/run.sh"; chmod 755 "$W/t/vmtest/run.sh"
printf '%q ' "$@" > "$W/t/vmtest/args"; [ $# -gt 0 ] || : > "$W/t/vmtest/args"; date +%s > "$W/t/vmtest/now"
if [ -n "$IMDS" ]; then
        : > "$W/t/vmtest/net"; ln -s "$IMDS" "$W/imds.d"; ln -s "$here/imds.py" "$W/imds.py"    # short names: QEMU splits at commas and spaces
        printf '#!/bin/sh\nexec python3 %s/imds.py stdio %s/imds.d 2>/dev/null\n' "$W" "$W" > "$W/imds"; chmod 755 "$W/imds"
fi
tar -C "$W/t" -cf "$W/payload" .; truncate -s %1M "$W/payload"; truncate -s 64M "$W/results"; rm -rf "$W/t"
model() { [ -n "$STOCK" ] || printf '%s' "$1"; }
volume() {      # INDEX: the line of a volume
        local n=$(($1 + 1)) name=${VOLUMES[$1]%%:*}
        printf 'nvme,id=volume%d,serial=vol%017d%-40s%-32s|%s\n' $n $n "$(model 'Amazon Elastic Block Store')" "$(model "$name")" "$W/v$n.raw"
}
# The network end of every card is there from the start: a card that comes or goes is the device alone. A place of its own on the bus has it
# keep its name with net.ifnames=1.
NET=(); [ ${#CARDS[@]} != 0 ] && [ -z "$IMDS$SNAP" ] || NET=("${OWN[@]}")
if [ ${#CARDS[@]} != 0 ]; then
        [ ${#CARDS[@]} -le 9 ] || { say "at most nine cards"; exit 2; }
        for i in "${!CARDS[@]}"; do
                NET+=(-netdev "dgram,id=w$((i + 1)),local.type=unix,local.path=$W/w$((i + 1)).qemu,remote.type=unix,remote.path=$W/w$((i + 1)).vpc")
        done
        (exec 9>&-; exec python3 "$here/vpc.py" "$W" ${#CARDS[@]} "$TREE/vmtest/interfaces" >"$OUT/vpc") & VPC=$!
        until grep -qs listening "$OUT/vpc"; do sleep 0.02; kill -0 $VPC 2>/dev/null || { say "no network"; exit 97; }; done
fi
card() { printf 'virtio-net-pci,id=card%d,netdev=w%d,mac=%s,addr=0x%x,romfile=\n' $(($1 + 1)) $(($1 + 1)) "${CARDS[$1]%:late}" $(($1 + 17)); }
drives() {      # lines "device|file"; instance stores keep their serial until they are blanked
        for ((i = 1; i <= ND; i++)); do truncate -s 1G "$W/d$i.raw"
                printf 'nvme,logical_block_size=%d,physical_block_size=%d,serial=AWS%05X%012X%s|%s\n' "$BLOCK" "$BLOCK" "$BLANKED" $i "$(model 'Amazon EC2 NVMe Instance Storage')" "$W/d$i.raw"; done
        if [ -n "$EBS" ]; then truncate -s 1G "$W/ebs.raw"; echo "nvme,serial=vol0123456789abcdef0$(model 'Amazon Elastic Block Store')|$W/ebs.raw"; fi
        for i in "${!ATTACHED[@]}"; do volume "$i"; done
        for i in RESULTS PAYLOAD; do echo "virtio-blk-pci,serial=$i,disable-legacy=on|$W/${i,,}"; done
}
# Requests of the guest on the console of this boot that are not done yet (ASKED lines are). A drive that comes while the
# guest runs comes through the monitor.
obey() {
        local what n size all; mapfile -t all < <(tr -d '\r' <"$C" | grep -aoE 'VMTEST (attach [0-9]|detach [0-9]|grow [0-9] [0-9]+[MG]|blank-drives|unplug [0-9]|plug [0-9] [0-9a-f:]{17})')
        for ((; ASKED < ${#all[@]}; ASKED++)); do
                read -r _ what n size <<<"${all[ASKED]}"; say "the guest says: ${all[ASKED]#VMTEST }"
                case $what in
                attach) ATTACHED[n - 1]=1; [ -z "$P" ] || volume $((n - 1)) | plug "a$BOOT.$ASKED" | hmp;;
                detach) unset "ATTACHED[n - 1]"; [ -z "$P" ] || echo "device_del volume$n" | hmp;;
                plug)   CARDS[n - 1]=$size PLUGGED[n - 1]=1; [ -z "$P" ] || echo "device_add \"$(card $((n - 1)))\"" | hmp;;
                unplug) unset "PLUGGED[n - 1]"; [ -z "$P" ] || { echo "device_del card$n" | hmp; unplugged "card$n"; };;
                grow)   truncate -s "$size" "$W/v$n.raw";;
                blank-drives) BLANK=1;;
                esac
        done
}
plug() {        # ID: the monitor's commands for these lines
        local dev file n=0
        while IFS='|' read -r dev file; do n=$((n + 1))
                printf 'drive_add 0 "if=none,id=%s,format=raw,discard=unmap,cache=%s,file=%s"\ndevice_add "%s,drive=%s"\n' "$1.$n" "$CACHING" "$file" "$dev" "$1.$n"; done
}
unplugged() {   # the guest has let go of it, so that what it ended in is free for another
        for ((i = 0; i < 100; i++)); do echo 'info network' | hmp; grep -aq "^$1:" "$W/said" || return; sleep 0.1; done
        say "$1 is still there"
}
PLUGGED=(); for i in "${!CARDS[@]}"; do [[ ${CARDS[i]} == *:late ]] || PLUGGED[i]=1; done
ATTACHED=() BLANKED=1; for i in "${!VOLUMES[@]}"; do
        IFS=: read -r _ size late <<<"${VOLUMES[i]}"; [ "$size" != late ] || { size=; late=late; }
        truncate -s "${size:-1G}" "$W/v$((i + 1)).raw"; [ -n "$late" ] || ATTACHED[i]=1; done
drives > /dev/null; [ -z "$EBS" ] || cksum < "$W/ebs.raw" > "$W/ebs.before"
fresh_root() { if [ -n "$SNAP" ]; then cp --reflink=auto "$SNAPFILE" "$W/root"; else qemu-img create -q -f qcow2 -b "$CACHE/root.img" -F raw "$W/root"; fi; }
fresh_root
# A restored guest may get no tick on one of its CPUs any more: its kernel says so, and nothing that waits there goes on. Until a script has
# run in it, it is restored once more.
lost_tick() { [ -n "$SNAP" ] && [ $BOOT = 1 ] && [ $LOST -lt 3 ] && grep -aq "timer wakeup didn't happen" "$C" && ! grep -aq 'VMTEST start' "$C"; }

# The state of its CPUs and interrupts: a guest that stands still says no more itself.
state_of_guest() { printf 'info %s\n' 'registers -a' lapic pic irq block | hmp; cp "$W/said" "$OUT/standstill"; }

# ---- one or more boots -----------------------------------------------------------------------------------------------------------
T=$EPOCHREALTIME; DONE= CUTS=0 LOST=0
for ((BOOT = 1; BOOT <= 20; BOOT++)); do
        C=$OUT/console.$BOOT A=() n=0 t=$EPOCHREALTIME ASKED=0 BLANK=; : > "$C"; rm -f "$W/mon"; drives > "$W/drives"
        while IFS='|' read -r dev file; do n=$((n + 1))
                A+=(-drive "if=none,id=x$n,format=raw,discard=unmap,cache=$CACHING,file=$file" -device "$dev,drive=x$n"); done < "$W/drives"
        for i in "${!PLUGGED[@]}"; do A+=(-device "$(card "$i")"); done
        if [ -n "$SNAP" ] && [ $BOOT = 1 ]; then qemu "$C" "$W/root" 1 -loadvm booted & P=$!; { plug x <"$W/drives"; for i in "${!PLUGGED[@]}"; do echo "device_add \"$(card "$i")\""; done; sleep 0.5; } | hmp
        else qemu "$C" "$W/root" 0 "${A[@]}" & P=$!; fi
        cut= again=
        while kill -0 $P 2>/dev/null; do
                up=$(((${EPOCHREALTIME/./} - ${t/./}) / 1000))
                if [ $BOOT = 1 -a -n "$CUT" -a "$up" -ge "$(awk -v s="${CUT:-0}" 'BEGIN { print int(s * 1000) }')" ] ||
                                { [ -n "$CUTTEXT" ] && grep -aqF -- "$CUTTEXT" "$C"; }; then cut=1 CUTS=$((CUTS + 1)); kill -KILL $P; say "power cut after $(elapsed $t) s"; break; fi
                if lost_tick; then again=1 LOST=$((LOST + 1)); kill -KILL $P; say "the guest's clock stood still after $(elapsed $t) s, before SCRIPT; it is restored again"; break; fi
                [ $up -lt $((LIMIT * 1000)) ] || { say "boot $BOOT passed $LIMIT s; end of its console:"; tail -5 "$C" >&2; DONE=98; state_of_guest; kill -KILL $P; break; }
                [ ${#VOLUMES[@]}${#CARDS[@]} = 00 ] || obey
                sleep 0.05
        done
        wait $P 2>/dev/null; q=$?; P=
        if [ -n "$again" ]; then fresh_root; BOOT=0; continue; fi
        [ -z "$DONE" ] || break
        say "boot $BOOT: multi-user at $(uptime_of "$C" booted), script at $(uptime_of "$C" start), $(elapsed $t) s in all"
        obey; [ -z "$cut" ] || continue
        [ $q = 0 ] || { say "QEMU ended with $q"; DONE=98; break; }
        ! grep -aq 'Kernel panic' "$C" || { grep -a -A8 'Kernel panic' "$C" >&2; DONE=98; break; }
        if [ -n "$(head -c 1 "$W/results" | tr -d '\0')" ]; then
                [ -z "$CUT$CUTTEXT" ] || [ $CUTS -gt 0 ] || { say "the guest ended before the power cut"; DONE=96; }
                tar -C "$OUT" -xf "$W/results" || DONE=97
                break
        fi
        [ -z "$BLANK" ] || { rm -f "$W"/d*.raw; BLANKED=$((BOOT + 1)); say "instance stores blanked"; }
done
if [ -n "$EBS" ]; then          # as it was, and not one block of the sparse file was ever needed
        if cksum < "$W/ebs.raw" | cmp -s - "$W/ebs.before" && [ "$(stat -c %b "$W/ebs.raw")" = 0 ]; then echo untouched
        else echo "written: $(stat -c %b "$W/ebs.raw") blocks, $(cksum < "$W/ebs.raw")"; fi > "$OUT/ebs"
fi
[ -f "$OUT/rc" ] || DONE=${DONE:-97}; RC=${DONE:-$(cat "$OUT/rc" 2>/dev/null)}; RC=${RC:-97}
say "exit $RC after $(elapsed $T) s${KEEP:+, results in $OUT}"
cat "$OUT/stdout" 2>/dev/null; cat "$OUT/stderr" >&2 2>/dev/null
if [ "$RC" != 0 ] && [ -z "$KEEP" ]; then keep_results "$OUT"; fi
exit "$RC"
