#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1007 # A= B= clears
# usage: cross.sh [-x] COMMAND [ARGUMENT...]
#        cross.sh --build
# Runs COMMAND in a root of Debian 12 for x86-64, with arm64 as a foreign architecture. It has the cross compiler and the libraries of both, so
# programs for arm64 build there as fast as for this machine. COMMAND begins in the directory where it was called. It finds this tree, the
# cache and the build cache of ccache at their places. Files elsewhere vanish when it ends.
#   -x       programs for arm64 run, too: the kernel gives them to the qemu-user of Debian 13 (that of Debian 12 does not know openat2)
#   --build  only make the root and print its path
#   cross.sh make CC=aarch64-linux-gnu-gcc
# Exit status: COMMAND's; 77 skipped (reason on stderr), 99 no root.
# Environment: as vmboot.sh, and all of it is COMMAND's.
set -u; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"; top=$(realpath "$here/../..")
BUILD= EMULATE= W=
case ${1-} in --deps) deps; exit;; --build) BUILD=1; shift;; ''|-h|--help) usage; exit;; -x) EMULATE=1; shift;; esac
[ -n "${CROSS_SPACE-}$BUILD" ] || CROSS_SPACE=1 exec unshare -m --propagation private "$0" ${EMULATE:+-x} "$@"
unset CROSS_SPACE; root; [ "$(uname -m)" = x86_64 ] || skip "the root is for x86-64 only"
need mmdebstrap

# ---- the root: made once for each text of this section ------------------------------------------------------------------------------
TOOLS=gcc,libc6-dev,make,git,ca-certificates,crossbuild-essential-arm64,build-essential,debhelper,lintian,rpm,fakeroot,ccache
TOOLS+=,python3,python3-jsonschema,python3-yaml,faketime,man-db,bash-completion,systemd,dbus,containerd,curl,iproute2,procps,kmod
TOOLS+=,xz-utils,openssl,socat,mdadm,xfsprogs,e2fsprogs,xxd
LIBRARIES="libjansson-dev libyaml-dev libexpat1-dev zlib1g-dev libsystemd-dev libssl-dev libcurl4-openssl-dev libblkid-dev libmount-dev
 libc6-dev libasan8 libubsan1 pkg-config"
build() {       # -> $1/rootfs
        set -e; local D=$1 l; cd "$D"; apt_for bookworm
        for l in $LIBRARIES; do TOOLS+=,$l:amd64,$l:arm64; done
        mmdebstrap -q --variant=minbase --architectures=amd64,arm64 --include="$TOOLS" --aptopt='APT::Install-Recommends "false"' "${OLD[@]}" \
                --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' bookworm rootfs "$SOURCES"
        mkdir m; rm -rf rootfs/var/lib/apt/lists/* rootfs/var/cache/apt/*.bin
}
# ---- end of the root ----------------------------------------------------------------------------------------------------------------
key=$(sed -n '/^# ---- the root/,/^# ---- end of/p' "$0" | sha256sum | cut -c1-12); CACHE=$BASE/image-cross-$key
remove() { { ! mountpoint -q "$CACHE/m" || umount -lR "$CACHE/m"; } && rm -rf ${W:+"$W"}; }     # mounts in $W are of the tree and the cache
trap remove EXIT; trap 'exit 130' INT TERM
mkdir -p "$BASE"
exec 9>"$CACHE.lock"; flock 9
if [ ! -d "$CACHE" ]; then
        [ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ] || skip "no root for cross builds here yet (make images makes it)"
        W=$(mktemp -d -p "$BASE"); T=$EPOCHREALTIME; say "making the root for cross builds in $CACHE"; mkdir "$W/image"
        ( build "$W/image" ) >"$W/log" 2>&1; [ $? = 0 ] || not_made "$W/log" root
        mv "$W/image" "$CACHE"; say "made in $(elapsed "$T") s"
fi
touch "$CACHE.lock"; flock -u 9; exec 9>&-
[ -z "$BUILD" ] || { echo "$CACHE/rootfs"; exit; }

# ---- programs for arm64 -------------------------------------------------------------------------------------------------------------
# The kernel opens the emulator at its registration (F), so it need not be in the root. The registration has a name for each cache. The
# first user registers it again, whatever a killed one has left; the last one takes it back. Since Linux 6.7 it
# also forgets with the last mount of binfmt_misc, which is in a namespace of this run. All containers share the kernel, but each may have a
# cache of its own at this path. So the name is that of the file that counts the users.
MISC=/proc/sys/fs/binfmt_misc NAME='' LOCK=$BASE/arm64.lock USERS=$BASE/arm64-users.lock
MAGIC='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
MASK='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
forget() { [ ! -e "$MISC/$NAME" ] || echo -1 >"$MISC/$NAME"; }
emulate() {
        local qemu; qemu=$("$here/peers.sh" --cached qemu-user trixie qemu-user) || exit
        [ -d $MISC ] || modprobe -q binfmt_misc
        [ -e $MISC/register ] || mount -t binfmt_misc cross $MISC || skip "no binfmt_misc here"
        exec 9>"$LOCK" 8>"$USERS"; flock 9
        NAME=nodestrap-arm64-$(stat -L -c %d-%i /proc/self/fd/8); trap release EXIT
        if flock -n 8; then
                forget; printf %s ":$NAME:M::$MAGIC:$MASK:$qemu/usr/bin/qemu-aarch64:FP" >$MISC/register ||
                        skip "the kernel will not be told of an emulator (binfmt_misc)"
        fi
        flock -s 8; exec 9>&-
        "$CACHE/rootfs/lib/ld-linux-aarch64.so.1" --version >/dev/null 2>&1 || skip "the kernel does not give programs for arm64 to the emulator (binfmt_misc)"
}
release() {
        remove; exec 9>"$LOCK"; flock 9
        exec 7>/proc/self/fd/8 8>&-     # what COMMAND has left running still uses it
        if flock -n 7; then forget; fi
}
[ -z "$EMULATE" ] || emulate

# ---- COMMAND, on a layer of memory over the root ------------------------------------------------------------------------------------
P=/usr/sbin:/usr/bin:/sbin:/bin KEPT='' m=$CACHE/m; W=$(mktemp -d -p "$BASE"); chmod 1777 "$W"
case :$PATH: in *:/usr/lib/ccache:*) P=/usr/lib/ccache:$P KEPT=${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ccache}; mkdir -p "$KEPT";; esac
set -e; mount -t tmpfs -o mode=755 cross "$m"; mkdir "$m"/u "$m"/w "$m"/m
mount -t overlay -o "lowerdir=$CACHE/rootfs,upperdir=$m/u,workdir=$m/w" cross "$m/m"
for d in /proc /sys /dev; do mount --rbind $d "$m/m$d"; done
mount --bind "$W" "$m/m/tmp"; mount -t tmpfs -o mode=755 run "$m/m/run"
for d in "$top" "$BASE" ${KEPT:+"$KEPT"} "$PWD"; do mkdir -p "$m/m$d"; mount --bind "$d" "$m/m$d"; done
set +e
unset TMPDIR; [ -z "$EMULATE" ] || export NODESTRAP_TRANSLATED=qemu-user
PATH=$P chroot "$m/m" sh -c 'cd "$1" && shift && exec "$@"' cross.sh "$PWD" "$@"
