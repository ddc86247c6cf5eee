#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package from a copy of this tree. Installs, removes and purges it in a root of Debian 12 with all dependencies: once
# bare, and once with nodeadm and the units of the EKS image. The package is left in build/package. Another user
# builds it a second time, elsewhere, from files of another day, with dpkg-buildpackage itself: the bytes are the same. TWICE= leaves that out.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; tail -40 <<<"$output" | sed 's/^/# /'; return 1; fi; }
finish() { echo "1..$count"; exit $bad; }
W=$(mktemp -d); chmod 711 "$W"; trap 'wait; umount "$W"/*/m 2>/dev/null; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }
for c in git dpkg-buildpackage dh lintian; do command -v $c >/dev/null || { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && exit 99; echo "1..0 # SKIP no $c here"; exit; }; done

COMMIT=$(git -c safe.directory="$top" -C "$top" describe --always --exclude='*' --dirty --abbrev=12); export COMMIT
build_again() {
        find . -exec touch -h -d 2001-02-03 {} + && chown -R 65534:65534 .. && umask 077 && unshare -u sh -c 'hostname elsewhere && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' sh \
                env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent COMMIT="$COMMIT" TZ=Asia/Tokyo LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS="nocheck parallel=1" dpkg-buildpackage -us -uc -b
}
mkdir -p "$W/src"; "$top/conf/packaging/sources.sh" | tar -C "$W/src" -xf - || exit
again=$W/again/deeper/tree building=''
if [ -n "${TWICE-1}" ]; then
        mkdir -p "$again"/build{,-arm64}; cp -r "$W/src/." "$again"; touch "$again"/build{,-arm64}/nodestrap
        (cd "$again" && build_again >"$W/again/log" 2>&1; echo $? >"$W/again/rc") & building=$!
fi

# The packed files: of a clone of another user, of an unpacked release, and of a clone that git cannot read.
files() { find . \( -name .git -o -path './build*' \) -prune -o -type f -printf '%P\n' | LC_ALL=C sort; }
packed() { rm -rf "$W/packed" && mkdir "$W/packed" && "$1/conf/packaging/sources.sh" | tar -C "$W/packed" -xf - && diff -r "$W/src" "$W/packed"; }
cp -r "$W/src" "$W/clone"; mkdir "$W/clone/build"; echo secret | tee "$W/clone/notes.tmp" >"$W/clone/build/core"
git -C "$W/clone" init -q && git -C "$W/clone" add -A && chown -R 65534:65534 "$W/clone"
try "the sources of a clone of another user are the files that git knows" packed "$W/clone"
try "git refuses to read the clone of another user" sh -c '! HOME=/nonexistent git -C "$1" status' sh "$W/clone"
rm "$W/clone/notes.tmp"; mkdir "$W/bin"; for c in realpath dirname find sort tar rm mkdir diff grep; do ln -s "$(command -v $c)" "$W/bin/"; done
without_git() { local PATH=$W/bin; packed "$W/clone" 2>"$W/said" && grep 'git is missing' "$W/said"; }
try "without git the sources are all files but build folders, and a message says so" without_git
rm -r "$W/clone/.git"; echo gitdir: /nonexistent >"$W/clone/.git"
try "the sources of an unpacked release are all files but build folders" packed "$W/clone"
rm "$W/clone/.git"; mkdir "$W/clone/.git"; echo token >"$W/clone/.git/config"
try "sources.sh fails with a fatal error in a clone that git cannot read" bash -c '! said=$("$1/conf/packaging/sources.sh" 2>&1 >/dev/null) && grep "^fatal: " <<<"$said"' sh "$W/clone"

try "deb.sh builds the Debian package" "$top/conf/packaging/deb.sh" -o "$W" || finish
try "lintian finds no error and no warning" lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$W"/*.deb
dpkg-deb -x "$W"/nodestrap_*.deb "$W/unpacked"; doc=$W/unpacked/usr/share/doc/nodestrap
try "the package has every manual page" is "$(cd "$W/unpacked/usr/share/man" && find . -type f | sort | xargs)" "$(cd "$top/debian" && for p in *.1 *.5 *.7 *.8; do echo "./man${p##*.}/$p.gz"; done | sort | xargs)"
try "the package has each schema and example of the tree" sh -c 'cd "$1" && for s in *.schema.json; do cmp "$s" "$2/conf/$s" || exit; done && [ "$(ls -- *.schema.json)" = "$(cd "$2/conf" && ls -- *.schema.json)" ] && diff -r examples "$2/conf/examples"' sh "$doc" "$top"
try "the package has the files that README shows" sh -c 'cd "$1" && grep -qF examples/p5-48xlarge.userdata README.md && ! grep -nE "conf/examples|debian/boot" README.md && grep -oE "(examples/[a-z0-9-]+\.(userdata|svg)|\(boot\.svg\))" README.md | tr -d "()" | xargs ls >/dev/null' sh "$doc"
if python3 -c 'import jsonschema' 2>/dev/null; then try "the bill of materials is well formed and true" python3 "$top/tests/oracles/spdx.py" "$W/unpacked" "$top"
else count=$((count + 1)); echo "ok $count - the bill of materials is well formed and true # SKIP no python3-jsonschema here"; fi
mkdir -p "$top/build/package" && cp "$W"/*.deb "$top/build/package/"

# The build directory, its name, user, host, umask, zone, jobs and the times of the files differ.
same_packages() { local f; for f in "$W"/*.deb; do cmp "$f" "$again/../${f##*/}" || { diff <(dpkg-deb -c "$f") <(dpkg-deb -c "$again/../${f##*/}"); return 1; }; done; }
same_objects() {
        local o; for o in src/main.o conf/gpus.o tests/unit/test-toml.o; do
                make -s -C "$W/src" O=plain "plain/$o" && (cd "$again" && umask 077 && make -s O="$W/again/objects" "$W/again/objects/$o") && cmp "$W/src/plain/$o" "$W/again/objects/$o" || return
        done
}
repeated() {
        [ -n "$building" ] || return
        wait $building; try "another user can build the package elsewhere" sh -c 'cat "$1/log"; exit "$(cat "$1/rc")"' sh "$W/again"
        try "the package of the other user has the same bytes" same_packages
        try "the second build keeps the build folders of earlier builds" ls "$again"/build{,-arm64}/nodestrap
        try "git would track no file that the second build made" is "$(cd "$again" && git init -q 2>/dev/null; git -c safe.directory="$again" ls-files -o --exclude-standard | diff - <(cd "$W/src" && files) | head)" ''
        try "plain make compiles the same objects in both trees" same_objects
}
root=$("$top/tests/tools/vmboot.sh" --build -S bookworm 2>"$W/log") || {
        [ $? = 77 ] || { cat "$W/log" >&2; bad=1; }; count=$((count + 1)); echo "ok $count - dpkg installs, removes and purges the package # SKIP $(sed -n 's/.*skip: //p' "$W/log" | tail -1)"; repeated; finish; }
prepare() { mkdir -p "$W/$1"/{u,w,m}; mount -t overlay o -o "lowerdir=$root,upperdir=$W/$1/u,workdir=$W/$1/w" "$W/$1/m" && cp "$W"/nodestrap_*.deb "$W/$1/m/tmp/p.deb"; }
everything() { (cd "$m" && find . -xdev -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./tmp -prune -o -printf '%p %l\n' | sort); }
in_root() { chroot "$m" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
in_package() { dpkg-deb -c "$W"/nodestrap_*.deb | sed -n "s|.* \./usr/lib/$1/\(.*[^/]\)\$|./\1|p" | sort; }
in_tree() { (cd "$top/units/$1" && shift && find . "$@" | sort); }
says() { local output; output=$(in_root dpkg -i /tmp/p.deb 2>&1) || { echo "$output"; return 1; }; is "$(sed -n 's/^nodestrap: //p' <<<"$output")" "$1"; }  # WORDS: dpkg -i succeeds, and the package prints these

try "a root of Debian 12 is prepared" prepare bare; m=$W/bare/m; everything >"$W/before"
try "dpkg -i needs nothing else and prints no advice" says ''
try "nodestrap --version has the commit" grep -qF "$COMMIT" <<<"$(in_root nodestrap --version --output json)"
try "nodestrap --version has the version of the package" is "$(in_root nodestrap --version | grep -o '[0-9][0-9.]*' | head -1)" "$(dpkg-deb -f "$W"/nodestrap_*.deb Version)"
explained() { in_root nodestrap explain EFABRIC | grep -q '^    Do: '; }
try "explain finds the texts of the manual" explained
started() { in_root nodestrap config example p5en.48xlarge >"$m/tmp/p5en" && in_root nodestrap config check --strict /tmp/p5en && grep -q 'expectedDevices: 16' "$m/tmp/p5en"; }
try "config example prints an example that config check accepts" started
try "nodeadm is a link to nodestrap" is "$(in_root readlink -f /usr/bin/nodeadm)" /usr/bin/nodestrap
try "nodeadm-internal is a link to nodestrap" is "$(in_root readlink -f /usr/bin/nodeadm-internal)" /usr/bin/nodestrap
try "the package has every unit and drop-in" diff <(in_tree . -path ./systemd -prune -o -name '*.service' -print -o -name '*.path' -print -o -name '*.timer' -print -o -name '*.target' -print -o -name '*.conf' -print) <(in_package systemd/system)
try "the package has the files for udev and networkd" diff <(in_tree systemd -type f) <(in_package nodestrap/systemd)
try "the package has the udev rule" is "$(in_package udev/rules.d)" ./90-nodestrap.rules
state() { in_root systemctl is-enabled $units | sort -u; }
units="nodestrap-boot-hook nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined"
try "the units are not enabled" is "$(state)" disabled
try "presets do not enable the units" in_root systemctl preset $units
try "the units are still disabled" is "$(state)" disabled
try "systemctl enables the units" in_root systemctl enable $units
try "the units are enabled" is "$(state)" enabled
recipe() { # of an image that lacks kubelet: it says so, and leaves nothing of its own
        cp "$top"/conf/examples/{image.sh,plain-proxy.userdata} "$m/tmp/"
        unshare -m sh -c 'mount -t proc proc "$1/proc" && chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin PACKAGE=none USERDATA=/tmp/plain-proxy.userdata TYPES=m5.large bash /tmp/image.sh; rc=$?; rmdir "$1/run/mount"; exit $rc' sh "$m" >"$W/recipe" 2>&1      # libmount's
        [ $? = 70 ] && tail -1 "$W/recipe" | grep -q '^nodestrap: failed (70 EIMAGE) at doctor' && [ ! -e "$m/run/image" ] || { cat "$W/recipe"; return 1; }
}
try "the recipe of an image without kubelet fails at doctor with EIMAGE" recipe
link=$(cd "$m" && find etc -name nodestrap-boot-hook.service)
for file in udev/rules.d/90-nodestrap.rules systemd/system/{nodeadm-boot-hook,udev-net-manager@}.service.d/10-nodestrap.conf; do
        try "$file names the link that systemctl enable makes" grep -qF "/$link" "$m/usr/lib/$file"
done
try "an upgrade succeeds" in_root dpkg -i /tmp/p.deb
try "an upgrade leaves the units enabled" is "$(state)" enabled
mkdir -p "$m/var/lib/nodestrap"; echo '{}' >"$m/var/lib/nodestrap/manifest.json"
try "dpkg --remove succeeds" in_root dpkg --remove nodestrap
try "dpkg --remove takes the links of nodeadm away" is "$(find "$m/usr/bin" "$m/etc/alternatives" -name 'nodeadm*')" ''
try "dpkg --purge succeeds" in_root dpkg --purge nodestrap
everything >"$W/after"; try "after a purge no file is left and none is missing" diff "$W/before" "$W/after"

# The EKS image: its nodeadm is a file, and its units are enabled.
own() { [ "$(in_root nodeadm --version; in_root nodeadm-internal --version; cat "$m"/run/somebody/*)" = $'nodeadm --version\nnodeadm-internal --version' ] && rm -r "$m/run/somebody"; }
ours() { is "$(in_root readlink -f /usr/bin/nodeadm /usr/bin/nodeadm-internal | xargs)" "/usr/bin/nodestrap /usr/bin/nodestrap" && in_root nodeadm config check --help >/dev/null && ! in_root nodeadm wait --help; }
theirs="nodeadm-boot-hook nodeadm-config nodeadm-run"
enabled() { is "$(in_root systemctl is-enabled $theirs | sort -u) $(state)" "$*"; }    # THEIRS OURS
try "a root with the nodeadm of an image is prepared" prepare own; m=$W/own/m; cp -a "$top/tests/fakes/al2023/rootfs/." "$m/"; mkdir -p "$m/etc/eks/nodeadm.d" "$m"/run/systemd/{networkd.conf.d,network/99-default.link.d}
in_root systemctl -q enable $theirs; everything >"$W/before"
try "dpkg -i says that nodeadm boots the image and how to change that" says "nodeadm boots this image. To have nodestrap do it: systemctl disable $theirs && systemctl enable nodestrap-boot-hook nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined
or keep the units and let nodestrap replace the nodeadm program: nodestrap-nodeadm(7)"
try "the nodeadm of the image stays" own
try "an upgrade beside nodeadm prints no advice" says ''
try "the nodeadm of the image is still there after an upgrade" own
try "the package enables and disables no unit" enabled enabled disabled
in_root dpkg --purge nodestrap >/dev/null 2>&1; everything >"$W/after"; try "after a purge beside nodeadm no file is left and none is missing" diff "$W/before" "$W/after"

kubelet="kubelet.service is enabled: a boot would start it before the node is configured. nodestrap starts it in time: systemctl disable kubelet"
in_root systemctl -q disable nodeadm-boot-hook; in_root systemctl -q enable kubelet
try "dpkg -i again names the commands where nodeadm boots the image and kubelet is enabled" says "nodeadm boots this image. To have nodestrap do it: systemctl disable nodeadm-config nodeadm-run && systemctl enable nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined
or keep the units and let nodestrap replace the nodeadm program: nodestrap-nodeadm(7)
$kubelet"
try "an upgrade after that advice does not repeat it" says ''
in_root systemctl -q enable $units
try "dpkg -i names the command where units of nodestrap and of nodeadm are enabled" says "the units of two bootstrappers are enabled, and nodestrap will own the boot; to stop its warning: systemctl disable nodeadm-config nodeadm-run
$kubelet"
in_root systemctl -q disable kubelet
try "systemctl replaces the units of nodeadm by those of nodestrap" in_root sh -c "systemctl disable $theirs && systemctl enable $units"
try "an upgrade with units of nodestrap prints no advice" says ''
try "an upgrade leaves all units as they are" enabled disabled enabled
try "systemctl enables the units of nodeadm again" in_root sh -c "systemctl disable $units && systemctl enable $theirs"
everything | grep -vE 'nodestrap|alternatives/nodeadm|/usr/lib/systemd/system/[a-z@-]*.service.d ' >"$W/after"
try "the image is then as before, but for the files of the package" diff <(grep -vE '/usr/lib/systemd/system/[a-z@-]*.service.d ' "$W/before") "$W/after"
in_root systemctl -q disable $theirs; in_root systemctl -q enable $units
mkdir -p "$m"/etc/modprobe.d "$m"/etc/systemd/system/containerd.service.d; cp -rT "$m"/usr/lib/nodestrap/systemd "$m"/run/systemd; touch "$m"/etc/modprobe.d/zz-nodestrap-nvidia.conf "$m"/etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf
try "dpkg --remove with enabled nodestrap units names the command for nodeadm" sh -c 'chroot "$1" dpkg --remove nodestrap 2>&1 | grep "systemctl enable $2"' sh "$m" "$theirs"
try "an admin enables the units of nodeadm" in_root systemctl enable $theirs
try "dpkg --purge after that removal succeeds" in_root dpkg --purge nodestrap
everything >"$W/after"; try "after dpkg --purge everything is as it was before" diff "$W/before" "$W/after"

# A nodeadm that is a link, as an image may have it: alternatives would take it for one of its own.
try "a root whose nodeadm is a link is prepared" prepare links; m=$W/links/m; mkdir -p "$m/opt/eks"; for n in nodeadm nodeadm-internal; do ln -s /opt/eks/$n "$m/usr/bin/$n"; done; everything >"$W/before"
try "dpkg -i beside links succeeds" in_root dpkg -i /tmp/p.deb
try "dpkg -i keeps the links of the image" is "$(in_root readlink /usr/bin/nodeadm /usr/bin/nodeadm-internal | xargs)" "/opt/eks/nodeadm /opt/eks/nodeadm-internal"
try "dpkg --purge beside links succeeds" in_root dpkg --purge nodestrap
everything >"$W/after"; try "a purge leaves the links" diff "$W/before" "$W/after"; m=$W/own/m

try "dpkg -i before a swap succeeds" in_root dpkg -i /tmp/p.deb
try "update-alternatives gives nodestrap the name nodeadm" in_root sh -c "for n in nodeadm nodeadm-internal; do mv /usr/bin/\$n /usr/bin/\$n.aws && update-alternatives --install /usr/bin/\$n \$n /usr/bin/\$n.aws 10 || exit; done"
try "both nodeadm names lead to nodestrap" ours
try "an upgrade after the swap succeeds" in_root dpkg -i /tmp/p.deb
try "an upgrade leaves both names to nodestrap" ours
try "update-alternatives gives both names back to the image" in_root sh -c "update-alternatives --set nodeadm /usr/bin/nodeadm.aws && update-alternatives --set nodeadm-internal /usr/bin/nodeadm-internal.aws"
try "both programs belong to the image" own
try "an upgrade after the way back succeeds" in_root dpkg -i /tmp/p.deb
try "an upgrade does not swap the programs again" own
try "update-alternatives --auto swaps the programs again" in_root sh -c "update-alternatives --auto nodeadm && update-alternatives --auto nodeadm-internal"
try "both nodeadm names lead to nodestrap again" ours
try "dpkg --purge after the swap succeeds" in_root dpkg --purge nodestrap
try "after dpkg --purge the nodeadm of the image is in its place" own
repeated; finish
