#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs for arm64 on x86-64: the root for cross builds and its emulator, of which the kernel has only one (tests/tools/cross.sh). Some
# settings of a run for x86-64 must not reach one for arm64.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2034,SC2317  # tmp and here are its; what eval and sh get is expanded there
. "$(dirname "$0")/../mock/lib.sh"
top=$(realpath "$here/../..") tools=$top/tests/tools
unset MAKEFLAGS MAKELEVEL MFLAGS SAN O CC CFLAGS
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; false; }; }

# ---- variables that a build for arm64 does not inherit ----
mkdir -p "$tmp/tree/tests/"{run,tools,vm} "$tmp/bin"
cp "$top"/tests/run/{arm64,boot}.sh "$tmp/tree/tests/run/"
printf '#!/bin/sh\n[ "$*" != "-x true" ] || exit 0\n{ echo "$*"; env; } >"%s"\nexit 1\n' "$tmp/said" >"$tmp/tree/tests/tools/cross.sh"
printf '# run: vmboot.sh -A arm64\n' >"$tmp/tree/tests/vm/a.sh"
chmod 755 "$tmp/tree/tests/tools/cross.sh"
foreign=(SAN=1 O=out CC=clang AR=llvm-ar NM=nm CFLAGS=-O1 CPPFLAGS=-DA LDFLAGS=-s LDLIBS=-la PKG_CONFIG=pkgconf MAKEFLAGS=-n)
handed_on() { grep -E "^($(printf '%s|' "${foreign[@]%%=*}")none)=" "$tmp/said"; }
env -u VERSION "${foreign[@]}" "$tmp/tree/tests/run/arm64.sh" SAN=1 check >/dev/null
ok "a build for arm64 does not inherit the variables of make" eval '! handed_on'
ok 'arm64.sh passes its arguments to the build for arm64' grep -q ' CC=aarch64-linux-gnu-gcc .*SAN=1 check$' "$tmp/said"
ok 'arm64.sh passes no VERSION if it has none' eval '! grep ^VERSION= "$tmp/said"'
ok 'the Makefile passes its VERSION to arm64.sh' eval 'make -s -n -C "$top" O="$tmp/none" VERSION=1.2.3-4-gabc check-arm64 2>&1 | grep -E "VERSION=1.2.3-4-gabc .*tests/run/arm64.sh"'
rm "$tmp/said"; env "${foreign[@]}" NODESTRAP=/bin/true "$tmp/tree/tests/run/boot.sh" "$tmp/tree/tests/vm/a.sh" >/dev/null 2>&1
ok 'the programs of a guest do not inherit the variables of make' eval 'grep -q " O=build-arm64 " "$tmp/said" && ! handed_on'

# ---- the root, and the emulator ----
if ! { root=$("$tools/cross.sh" --build) && qemu=$("$tools/peers.sh" --cached qemu-user trixie qemu-user) && "$tools/cross.sh" -x true; } 2>"$tmp/err"; then
        why=$(sed -n 's/.*skip: //p' "$tmp/err" | tail -1)
        if [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] && [ -n "$why" ]; then skip 'cross.sh builds its root' "$why"; else ok 'cross.sh builds its root' eval 'cat "$tmp/err"; false'; fi
        done_testing; exit
fi
export NODESTRAP_TEST_NO_BUILD=1 NODESTRAP_TEST_REQUIRE=0
image=$(dirname "$root") arm=/lib/ld-linux-aarch64.so.1
mkdir -p "$tmp"/{cache,desk,home,a,b,broken}
for d in a b broken; do mkdir "$tmp/$d/${image##*/}" "$tmp/$d/qemu-user"; done
mkdir -p "$tmp/fake/usr/bin" && cp /bin/false "$tmp/fake/usr/bin/qemu-aarch64"
# CACHE QEMU COMMAND...: as in a container, with a cache of its own that lies where those of others do
inside='mount --bind "$2/$1" "$2/cache" && mount --bind "$3" "$2/cache/${3##*/}" && mount --bind "$4" "$2/cache/qemu-user" && cd "$2/desk" && shift 4 && exec "$@"'
in_cache() { local cache=$1 emulator=$2; shift 2; NODESTRAP_TEST_CACHE=$tmp/cache unshare -m --propagation private bash -c "$inside" bash "$cache" "$tmp" "$image" "$emulator" "$@"; }
cross() { local cache=$1; shift; in_cache "$cache" "$qemu" "$tools/cross.sh" "$@"; }

ok 'a program for arm64 runs' cross a -x "$arm" --version
mkfifo "$tmp/desk/began" "$tmp/desk/go"; exec 7<>"$tmp/desk/began" 8<>"$tmp/desk/go"
{ cross a -x sh -c "$arm --version && echo >began && read -r _ <go && $arm --version"; echo "$?" >"$tmp/rc"; echo >&7; } >"$tmp/out" 2>&1 & first=$!
read -r _ <&7
ok 'a program for arm64 runs with another cache at the same path' cross b -x "$arm" --version
echo >&8; wait "$first"
ok 'the end of the second run does not take the emulator from the first' eval '[ "$(cat "$tmp/rc")" = 0 ] || { cat "$tmp/out"; false; }'
entries() { cross a -x sh -c 'ls /proc/sys/fs/binfmt_misc' | grep -c "^nodestrap-arm64-$(stat -c %d-%i "$tmp/$1/arm64-users.lock")\$"; }
ok 'a run has one emulator in the kernel' eval 'is "$(entries a)" 1'
ok 'the emulator goes with the last run of its cache' eval 'is "$(entries b)" 0'
ok 'a cache below /tmp keeps no temporary file' eval 'is "$(find "$tmp/a" "$tmp/b" -name "tmp.*")" ""'
ok 'cross.sh prints nothing on stderr' eval 'cross a true 2>"$tmp/err" && is "$(cat "$tmp/err")" ""'
# Since Linux 6.7 a user namespace has a binfmt_misc of its own, so this changes nothing outside.
own='mount -t binfmt_misc own /proc/sys/fs/binfmt_misc && exec "$@"'
if unshare -Urm sh -c "$own" sh true 2>/dev/null; then
        in_cache broken "$tmp/fake" unshare -Urm sh -c "$own" sh "$tools/cross.sh" -x true >"$tmp/out" 2>"$tmp/err"; rc=$?
        ok 'cross.sh skips with a message if the emulator runs nothing' eval 'is "$rc" 77 && grep -q "skip: the kernel does not give programs for arm64" "$tmp/err"'
else skip 'cross.sh skips with a message if the emulator runs nothing' 'no binfmt_misc of its own here'; fi
case $top/ in
/root/*) skip 'cross.sh works with ccache and without HOME' 'the tree lies below it';;
*) ok 'cross.sh works with ccache and without HOME' in_cache a "$qemu" bash -c 'mount --bind "$0" /root && exec env -u HOME -u CCACHE_DIR -u XDG_CACHE_HOME PATH="/usr/lib/ccache:$PATH" "$@"' \
        "$tmp/home" "$tools/cross.sh" true;;
esac
done_testing
