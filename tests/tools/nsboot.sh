#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1007,SC2034,SC2046,SC2054,SC2166 # A= B= clears; words are split on purpose
# usage: nsboot.sh [OPTION...] SCRIPT [ARGUMENT...]
# Like vmboot.sh, but systemd-nspawn on the kernel of this machine: about 1 s. Boots the same image (made by vmboot.sh --build) through an
# overlay, runs SCRIPT in it as root once multi-user is reached, returns its exit status.
#   -p TREE     directory unpacked over / of the container before systemd starts
#   -d N        N loop devices named /dev/nvme1n1, ... with EC2's by-id links (default 2, sparse, 1 GiB)
#   -i DIR      answer IMDSv2 at 169.254.169.254 from this directory (see imds.py and its IMDS_* variables), from before sysinit.target on
#   -b PATH     bind a file or directory of this machine read-only to the same path (repeatable): a fresh build of the program
#   -S SUITE    Debian suite (default bookworm)       -a PKG,...  more packages       -t SECONDS  time limit (default 300)
#   -o OUT      results: stdout, stderr, rc, journal, console, mdadm.calls, and all that SCRIPT leaves in /vmtest/out
#   --deps      install what is needed on this machine      --help
# Real: systemd as PID 1, D-Bus, units and their order, journald, mounts, xfs, containerd, an own network namespace, sysctl net.*.
# Not real: md (mdadm is a stub that records its arguments and links /dev/md/NAME to the first member), udev, and modules. /sys has the
# devices of this machine, and /proc/sys/vm/nr_hugepages is a plain file. A reboot starts the
# container again; SCRIPT runs in the boot that gets to multi-user, $VMTEST_BOOT counts.
# Plain files stand for /proc/swaps, without swap, and for the kernel settings that kubelet wants of an image.
# Exit status: SCRIPT's; 77 skipped (reason on stderr), 97 no result, 98 time limit, 99 no image.

set -u; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"
TREE= ND=2 IMDS= BINDS=() SUITE=bookworm EXTRA= LIMIT=300 OUT= KEEP=1 W= C= LOOPS=() ARGS=("$@")
case ${1-} in --deps) deps; exit;; --help|'') usage; exit;; esac
while getopts p:d:i:b:S:a:t:o: o; do case $o in
        p) TREE=$(realpath -e "$OPTARG") || exit 2;; d) ND=$OPTARG;; i) IMDS=$(realpath -e "$OPTARG") || exit 2;;
        b) BINDS+=("--bind-ro=$(realpath -e "$OPTARG")") || exit 2;; S) SUITE=$OPTARG;; a) EXTRA=$OPTARG;; t) LIMIT=$OPTARG;; o) OUT=$OPTARG;; *) exit 2;;
esac; done; shift $((OPTIND-1)); SCRIPT=$(realpath -e "${1:?SCRIPT}") || exit 2; shift
root; need systemd-nspawn unshare losetup mount python3
if [ -z "${NSBOOT_ROOTFS:-}" ]; then    # once more, in a mount namespace of its own
        NSBOOT_ROOTFS=$("$here/vmboot.sh" --build -S "$SUITE" ${EXTRA:+-a "$EXTRA"}) || exit; export NSBOOT_ROOTFS
        exec unshare -m --propagation private "$0" "${ARGS[@]}"
fi
HIERARCHIES=; for h in unified systemd pids; do [ ! -d /sys/fs/cgroup/$h ] || HIERARCHIES+=" /sys/fs/cgroup/$h"; done
cleanup() {
        [ -z "$W" ] || { umount -R "$W/m"; rm -rf "$W"; }; for l in ${LOOPS[@]+"${LOOPS[@]}"}; do losetup -d "$l"; done
        [ -z "$C" ] || for h in ${HIERARCHIES:-/sys/fs/cgroup}; do echo $$ >$h/cgroup.procs; find $h/$C -depth -type d -exec rmdir {} +; done
} 2>/dev/null
trap cleanup EXIT; trap 'exit 130' INT TERM
W=$(mktemp -d -p "$BASE"); [ -n "$OUT" ] || { OUT=$W/out; KEEP=; }; mkdir -p "$OUT"; OUT=$(realpath "$OUT"); rm -f "$OUT"/{rc,mdadm.calls}
mkdir "$W"/{u,w,m,b}; mount -t overlay o -o "lowerdir=$NSBOOT_ROOTFS,upperdir=$W/u,workdir=$W/w" "$W/m" || skip "no overlay filesystem"
PLACE=(--register=no)                   # where systemd is PID 1 it places the container; elsewhere nspawn must not litter the root cgroups
if [ ! -d /run/systemd/system ]; then
        PLACE+=(--keep-unit); C=nodestrap-test.$$
        for h in ${HIERARCHIES:-/sys/fs/cgroup}; do mkdir "$h/$C" && echo $$ >"$h/$C/cgroup.procs" || skip "cannot make a cgroup in $h"; done
fi

S=$W/b/etc/systemd/system; mkdir -p "$S/multi-user.target.wants" "$S/sysinit.target.wants" "$W/b/etc/tmpfiles.d" "$W/b/usr/local/sbin" "$W/b/vmtest/out"
cp "$SCRIPT" "$W/b/vmtest/run.sh"; chmod 755 "$W/b/vmtest/run.sh"; echo 0 > "$W/b/vmtest/nr_hugepages"
mkdir "$W/b/vmtest/kernel"; printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' >"$W/b/vmtest/kernel/swaps"
for s in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        mkdir -p "$W/b/vmtest/kernel/sys/$(dirname $s)"; echo "${s#*=}" >"$W/b/vmtest/kernel/sys/${s%=*}"
done
printf '%q ' "$@" > "$W/b/vmtest/args"; [ $# -gt 0 ] || : > "$W/b/vmtest/args"
cat > "$W/b/vmtest/start" <<'I'
#!/bin/bash
cd /vmtest; VMTEST_BOOT=$(cat boot); export VMTEST_BOOT; systemctl is-system-running --wait >out/state
eval "set -- $(cat args)"; bash -c './run.sh "$@"' run.sh "$@" >out/stdout 2>out/stderr </dev/null; rc=$?
echo $rc >out/rc; journalctl -b -o short-monotonic --no-pager >out/journal 2>&1; systemctl exit $rc
I
cat > "$S/vmtest.service" <<'I'
[Unit]
After=multi-user.target
[Service]
Type=exec
ExecStart=/bin/bash /vmtest/start
I
cat > "$S/vmfakes.service" <<'I'
[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mount --bind /vmtest/nr_hugepages /proc/sys/vm/nr_hugepages
ExecStart=/bin/sh -c "cd /vmtest/kernel; find . -type f | while read -r f; do mount --bind $$f /proc/$$f; done"
ExecStart=/bin/sh -c "ip link set lo up; ip addr add 169.254.169.254/32 dev lo"
I
ln -s ../vmtest.service "$S/multi-user.target.wants/"; ln -s ../vmfakes.service "$S/sysinit.target.wants/"
if [ -n "$IMDS" ]; then
        cp -aL "$IMDS" "$W/b/vmtest/imds"; cp "$here/imds.py" "$W/b/vmtest/"; ln -s ../vmimds.service "$S/sysinit.target.wants/"
        mkdir "$S/vmimds.service.d"; env | sed -n 's/^\(IMDS_.*\)/Environment="\1"/p' | { echo '[Service]'; cat; } > "$S/vmimds.service.d/env.conf"
        cat > "$S/vmimds.service" <<'I'
[Unit]
DefaultDependencies=no
After=vmfakes.service
Before=sysinit.target shutdown.target
Conflicts=shutdown.target
[Service]
Type=notify
ExecStart=/usr/bin/python3 /vmtest/imds.py serve 169.254.169.254 80 /vmtest/imds
I
fi
cat > "$W/b/usr/local/sbin/mdadm" <<'I'
#!/bin/bash
# stub: records the call; --create links the array to its first member
{ printf '%q ' "$@"; echo; } >> /vmtest/out/mdadm.calls
case " $* " in *" --create "*|*" -C "*) for a; do case $a in
        /dev/md/*|/dev/md[0-9]*) md=$a;; /dev/*) [ -n "$first" ] || first=$(readlink -f "$a");; esac; done
        mkdir -p /dev/md; ln -sfn "$first" "$md";;
esac
I
chmod 755 "$W/b/usr/local/sbin/mdadm"; ARG=()
for ((i = 1; i <= ND; i++)); do
        truncate -s 1G "$W/d$i"; l=$(losetup -f --show "$W/d$i") || skip "no loop devices"; LOOPS+=("$l"); ARG+=("--bind=$l:/dev/nvme${i}n1")
        n=/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_$(printf 'AWS%05X%012X' 1 $i)
        printf 'L %s - - - - ../../nvme%sn1\nL %s_1 - - - - ../../nvme%sn1\n' $n $i $n $i
done > "$W/b/etc/tmpfiles.d/nvme.conf"
unpack() { tar -C "$1" -cf - . | chroot "$W/m" tar -C / --no-same-owner --keep-directory-symlink -xf -; }     # chroot: absolute links stay inside
unpack "$W/b" || exit 99; [ -z "$TREE" ] || unpack "$TREE" || exit 99

T=$EPOCHREALTIME; boot=0 rc=133; : >"$OUT/console"
while [ $rc = 133 ] && [ $boot -lt 5 ]; do               # what nspawn ends with when the container wants to be started again
        boot=$((boot + 1)); echo $boot >"$W/m/vmtest/boot"
        SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout -k 2 "$LIMIT" systemd-nspawn -q -D "$W/m" --boot "${PLACE[@]}" --private-network \
                --link-journal=no --bind="$OUT:/vmtest/out" ${BINDS[@]+"${BINDS[@]}"} ${ARG[@]+"${ARG[@]}"} </dev/null >>"$OUT/console" 2>&1; rc=$?
done
# SCRIPT's result counts also where the container then did not end by itself: one with systemd 257 was seen to stay behind exit.target.
if [ $rc = 124 ] || [ $rc = 137 ]; then if [ -s "$OUT/rc" ] && grep -q 'Reached target .*exit\.target' "$OUT/console"; then rc=$(cat "$OUT/rc"); else rc=98; fi; elif [ ! -f "$OUT/rc" ]; then
        tail -5 "$OUT/console" >&2; grep -qiE 'failed to|not permitted' "$OUT/console" && [ ! -f "$OUT/state" ] && skip "systemd-nspawn cannot start here"; rc=97; fi
say "exit $rc after $(elapsed $T) s${KEEP:+, results in $OUT}"
cat "$OUT/stdout" 2>/dev/null; cat "$OUT/stderr" >&2 2>/dev/null
if [ $rc != 0 ] && [ -z "$KEEP" ]; then keep_results "$OUT"; fi
exit $rc
