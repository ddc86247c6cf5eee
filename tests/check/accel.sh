#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The accelerator of guests (vmboot.sh --accel): a boot decides, not a file, and the decision holds until this machine starts again. A guest
# that cannot start ends with a reason. QEMU is a script here, but for the last lines.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2034,SC2317  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
tools=$(realpath "$here/../tools")
unset "${!NODESTRAP_TEST_@}"; export NODESTRAP_TEST_CACHE=$tmp/cache
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
if [ "$(id -u)" != 0 ] || [ "$(uname -m)" != x86_64 ]; then echo '1..0 # SKIP root on x86-64 alone starts guests'; exit; fi
missing=''; for program in mmdebstrap mkfs.ext4 busybox cpio xz modprobe; do command -v $program >/dev/null || missing+=" $program"; done
[ -z "$missing" ] || { echo "1..0 # SKIP vmboot.sh needs$missing"; exit; }

mkdir -p "$tmp/bin"; : >"$tmp/kernel"; : >"$tmp/initrd"
# It does what $tmp/does says, in a shell, with the file of its serial console in $console, and counts how often it was started.
cat >"$tmp/bin/qemu-system-x86_64" <<X
#!/bin/bash
[ "\$*" != --version ] || { cat "$tmp/version"; exit; }
echo "\$*" >>"$tmp/starts"
while [ \$# -gt 0 ]; do case \$1 in -serial) console=\${2#file:};; esac; shift; done
. "$tmp/does"
X
chmod 755 "$tmp/bin/qemu-system-x86_64"; echo 'QEMU emulator version 7.2.22' >"$tmp/version"
fakes() { cat >"$tmp/does"; : >"$tmp/starts"; rm -rf "$tmp/cache"; }
accel() { PATH=$tmp/bin:$PATH "$tools/vmboot.sh" --accel "$tmp/kernel" "$tmp/initrd" 2>"$tmp/err"; }
# says WORD [PATTERN] : and a message that matches, or none
says() {
        local word; word=$(accel)
        if [ "$word" = "$1" ] && if [ -n "${2-}" ]; then grep -qE -- "$2" "$tmp/err"; else [ ! -s "$tmp/err" ]; fi; then return; fi
        echo "is \"$word\", want \"$1\" and \"${2-}\":"; cat "$tmp/err"; false
}
starts() { local n; n=$(wc -l <"$tmp/starts"); [ "$n" = "$1" ] || { echo "started $n times, want $1"; false; }; }

fakes <<<'printf "nodestrap-guest\r\n" >>"$console"; exec sleep 600'
ok 'vmboot.sh chooses KVM if its guest says the word' says kvm
ok 'vmboot.sh starts the guest under KVM' grep -q -- '-accel kvm -cpu host' "$tmp/starts"
ok 'vmboot.sh keeps its decision' says kvm
ok 'vmboot.sh keeps its decision without another start' starts 1
echo 'QEMU emulator version 10.0.2' >"$tmp/version"
ok 'vmboot.sh decides again for another QEMU' says kvm
ok 'vmboot.sh starts another QEMU once to decide' starts 2
sed -i '1s/^[^ ]*/another-boot/' "$tmp/cache/accel"
ok 'vmboot.sh decides again after a start of this machine' says kvm
ok 'vmboot.sh starts QEMU once more after a start of this machine' starts 3
fakes <<<'printf "nodestrap-guest\n" >>"$console"'
ok 'a word that comes just before the guest ends counts' says kvm
fakes <<<'printf "nodestrap-guest\r\n" >>"$console"; exec sleep 600'
at_once() { local i; for i in 1 2 3 4; do accel >"$tmp/once.$i" & done; wait; [ "$(sort -u "$tmp"/once.*)" = kvm ]; }
ok 'four vmboot.sh in parallel choose KVM' at_once
ok 'four vmboot.sh in parallel start one guest' starts 1

fakes <<<'exec sleep 600'
ok 'vmboot.sh chooses TCG if the guest hangs' says tcg 'KVM starts no guest here: the guest says nothing for 10 s; guests run under TCG'
ok 'vmboot.sh does not repeat its message about the guest that hangs' says tcg
ok 'vmboot.sh leaves no QEMU whose guest hangs' eval '! pgrep -f "accel kvm.*$tmp/kernel"'
fakes <<<'echo "[    0.000000] Command line: rdinit=/bin/busybox -- echo nodestrap-guest" >>"$console"; exit 1'
ok 'the command line of a kernel is not the word of the guest' says tcg 'QEMU ends without a word'
fakes <<<'echo "qemu: error: failed to set MSR 0x10a" >&2; kill -ABRT $$'
ok 'vmboot.sh chooses TCG if QEMU dies' says tcg 'KVM starts no guest here: qemu: error: failed to set MSR 0x10a; guests run under TCG'
rm "$tmp/cache/accel"; accel >/dev/null
ok 'vmboot.sh has one line about a QEMU that dies' eval '[ "$(wc -l <"$tmp/err")" = 1 ]'
for why in 'No such file or directory' 'Permission denied'; do
        fakes <<<"echo 'Could not access KVM kernel module: $why' >&2; exit 1"
        ok "vmboot.sh chooses TCG without a /dev/kvm: $why" says tcg "KVM starts no guest here: Could not access KVM kernel module: $why"
done
for word in tcg kvm; do
        fakes <<<'exit 1'
        ok "NODESTRAP_TEST_ACCEL=$word decides" eval "[ \"\$(NODESTRAP_TEST_ACCEL=$word accel)\" = $word ]"
        ok 'vmboot.sh starts no guest if NODESTRAP_TEST_ACCEL decides' starts 0
done
wrong() { NODESTRAP_TEST_ACCEL=xen accel; [ $? = 2 ] && grep 'set tcg or kvm, or unset it' "$tmp/err"; }
ok 'vmboot.sh refuses another word in NODESTRAP_TEST_ACCEL' wrong

# ---- the real QEMU, where /dev/kvm is not there or is a file ----
hidden() { # COMMAND : what the namespace does to /dev/kvm
        rm -rf "$tmp/cache"
        unshare -m --propagation private sh -c "$1"' && exec "$2" --accel "$3" "$3"' sh "$1" "$tools/vmboot.sh" "$tmp/kernel" 2>"$tmp/err" | grep -qx tcg && grep -q 'KVM starts no guest here' "$tmp/err" || { cat "$tmp/err"; false; }
}
if ! command -v qemu-system-x86_64 >/dev/null; then skip 'the real QEMU' 'no qemu-system-x86_64 here'
elif ! unshare -m --propagation private true 2>/dev/null; then skip 'the real QEMU' 'no mount namespace here'
else
        ok 'vmboot.sh chooses TCG if the real QEMU has no /dev/kvm' hidden "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9"
        [ ! -e /dev/kvm ] || ok 'vmboot.sh chooses TCG if the real QEMU has a /dev/kvm that is a file' hidden "mount --bind $tmp/initrd /dev/kvm"
fi

# ---- a cache that cannot be made ----
no_cache() { NODESTRAP_TEST_CACHE=$tmp/kernel/none "$tools/vmboot.sh" --accel "$tmp/kernel" "$tmp/initrd" 2>"$tmp/err"; [ $? = 99 ] && grep 'cannot be written; set NODESTRAP_TEST_CACHE' "$tmp/err"; }
ok 'vmboot.sh fails if it cannot make its cache' no_cache
done_testing
