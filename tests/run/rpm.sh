#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the RPM from a copy of this tree, compares it with the Debian package and unpacks it into a root of Debian 12. There rpm installs,
# upgrades and erases it with its scripts: bare, beside the units and the nodeadm of the EKS image, and without systemctl and
# update-alternatives. It is left in build/package. That for aarch64 is in tests/arm64/package.sh.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; tail -40 <<<"$output" | sed 's/^/# /'; return 1; fi; }
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
finish() { echo "1..$count"; exit $bad; }
W=$(mktemp -d); trap 'umount "$W"/*/m 2>/dev/null; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
for c in rpm rpmbuild rpm2cpio cpio readelf; do command -v $c >/dev/null || { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && exit 99; echo "1..0 # SKIP no $c here"; exit; }; done
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }
spec=$top/conf/packaging/nodestrap.spec
unpack() { mkdir -p "$2" && rpm2cpio "$1" >"$2.cpio" && (cd "$2" && cpio -idm --quiet <"$2.cpio"); }

try "the RPM spec and debian/changelog have the same version" is "$(awk '/^Version:/ { print $2 }' "$spec")" "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")"
# The program of the Debian package, if that was made of this tree; else it is built here.
deb=$(ls -t "$top"/build/package/nodestrap_*_amd64.deb 2>/dev/null | head -1) built=()
[ -z "$deb" ] || [ -z "$(cd "$top" && find Makefile README.md conf debian src units -newer "$deb" -type f | head -1)" ] || deb=
[ -z "$deb" ] || { dpkg-deb -x "$deb" "$W/deb" && built=(--define "binary $W/deb/usr/bin/nodestrap"); }
try "rpm.sh builds the RPM" "$top/conf/packaging/rpm.sh" -o "$W/out" -- --without check "${built[@]}" || finish
rpm=$(echo "$W"/out/nodestrap-*.x86_64.rpm); mkdir -p "$top/build/package"; cp "$W"/out/* "$top/build/package/"
try "rpm2cpio and cpio unpack the RPM" unpack "$rpm" "$W/tree"
again() { cd / && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 HOME="$W/nobody" unshare -u sh -c 'hostname elsewhere && exec "$@"' sh "$top/conf/packaging/rpm.sh" -o "$W/again" -- --define "binary $W/tree/usr/bin/nodestrap" && cmp "$rpm" "$W/again/${rpm##*/}"; }
try "rpm.sh packs the same bytes on another host, in another zone, with another umask" again    # the program: package.sh

# ---- what is in it ------------------------------------------------------------------------------------------------------------------
own='/usr/(bin/nodestrap|libexec/nodestrap/nodestrap-(prove|read-ahead|pre-pull)) /usr/share/doc/nodestrap/(changelog\.gz|copyright|nodestrap\.spdx\.json|nodestrap\.fc) /usr/share/lintian(/.*)? /usr/share/licenses(/.*)?'
texts() { (cd "$1" && find . -mindepth 1 \( -type d -printf '%P %m %y\n' -o -printf '%P %m ' -exec sha256sum {} \; \) |
        sed 's| \./.*||; s|^|/|; s|zsh/vendor-completions|zsh/site-functions|' | grep -vE "^(${own// /|}) " | sort); }
if [ -n "$deb" ]; then
        gzip -d "$W"/{tree,deb}/usr/share/man/man?/*.gz
        # An RPM brings no directory that belongs to other packages.
        try "the RPM has the same units, links and texts as the Debian package" diff <(texts "$W/deb" | grep -v 'd$') <(texts "$W/tree" | grep -v 'd$')
        gzip -9n "$W"/tree/usr/share/man/man?/*
else skip "the RPM has the same files as the Debian package" "none in build/package, or an older one: make package builds both"; fi
files() { rpm -qp --qf '[%{FILENAMES} %{FILEMODES:perms}\n]' "$1"; }
try "only root may write, and no file is setuid" is "$(files "$rpm" | grep -vE ' (d|-)rw[x-]r-[x-]r-[x-]$')" ''
requires=$(rpm -qpR "$rpm"; rpm -qp --recommends "$rpm")
loaded() { { readelf -d "$W/tree/usr/bin/nodestrap" | sed -n 's/.*NEEDED.*\[\(lib.*\)\]/\1/p'; grep -rhoE '"lib[a-z]+\.so\.[0-9]"' "$top/src" | tr -d '"' | grep -v -e libnvidia -e libcuda; } | sort -u; }
try "the RPM requires the libraries that nodestrap links and loads" is "$(loaded | while read -r l; do grep -qxF "$l()(64bit)" <<<"$requires" || echo "$l"; done)" ''
try "the RPM recommends mdadm, xfsprogs and kmod, but not dosfstools" is "$(for p in mdadm xfsprogs kmod dosfstools; do grep -x $p <<<"$requires"; done | xargs)" "mdadm xfsprogs kmod"
unknown=unknown; ! rpm -q rpm >/dev/null 2>&1 || unknown=''
if python3 -c 'import jsonschema' 2>/dev/null; then try "the bill of materials is well formed, and names no Debian packages" python3 "$top/tests/oracles/spdx.py" "$W/tree" "$top" "$unknown"
else skip "the bill of materials is well formed, and names no Debian packages" "no python3-jsonschema here"; fi
# Each file has a line that says what label the policy gives it.
unlabelled() { python3 - "$top/conf/packaging/nodestrap.fc" <<'P' 3< <(rpm -qp --qf '[%{FILENAMES} %{FILEMODES:perms}\n]' "$rpm")
import os, re, sys
lines = [l.split() for l in open(sys.argv[1]) if l.strip() and l[0] != '#']
for path, mode in (l.split() for l in os.fdopen(3)):
    kind = '-d' if mode[0] == 'd' else '--'
    if not any(re.fullmatch(l[0], path) and (len(l) == 2 or l[1] == kind) for l in lines): print(path)
for l in lines:
    if not re.fullmatch(r'system_u:object_r:[a-z_]+_t:s0', l[-1]) or len(l) == 3 and l[1] not in ('--', '-d', '-l'): print(*l)
P
}
try "nodestrap.fc names the SELinux type of each file" is "$(unlabelled)" ''

# ---- a root of its own --------------------------------------------------------------------------------------------------------------
root=$("$top/tests/tools/vmboot.sh" --build -S bookworm 2>"$W/log") || {
        [ $? = 77 ] || { cat "$W/log" >&2; bad=1; }; skip "rpm installs, upgrades and erases the package" "$(sed -n 's/.*skip: //p' "$W/log" | tail -1)"; finish; }
prepare() { mkdir -p "$W/$1"/{u,w,m}; mount -t overlay o -o "lowerdir=$root,upperdir=$W/$1/u,workdir=$W/$1/w" "$W/$1/m" &&
        mkdir -p "$W/$1/m"/usr/share/{licenses,man/man{1,5,7,8}}; }      # as every root with rpm has
# Names, kinds, modes, links and bytes.
everything() { (cd "$m" && find . -xdev \( -path ./var/log -o -path ./tmp \) -prune -o \( -type l -printf '%p %l\n' -o -type f -cnewer "$W/begun" -printf '%p %m ' -exec sha256sum {} \; -o -printf '%p %m\n' \) | sort); }
in_root() { chroot "$m" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
rpm_() { rpm --root "$m" --dbpath /tmp/rpmdb --force-debian --nodeps "$@"; }
said() { "$@" >"$W/said" 2>&1; }
silent() { said "$@" && is "$(cat "$W/said")" ''; }
telling() { local text=$1; shift; said "$@" && is "$(cat "$W/said")" "$text"; }
units="nodestrap-boot-hook nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined" theirs="nodeadm-boot-hook nodeadm-config nodeadm-run"
state() { in_root systemctl is-enabled $units | sort -u; }
touch -d '1 second ago' "$W/begun"

try "a root of Debian 12 is prepared" prepare unpacked; m=$W/unpacked/m; cp -r "$W/tree/." "$m/"
try "the unpacked nodestrap runs and has the version of the RPM" is "$(in_root nodestrap --version | grep -o '[0-9][0-9.]*' | head -1)" "$(rpm -qp --qf '%{VERSION}' "$rpm")"
explained() { in_root nodestrap explain EFABRIC | grep -q "^    Do: "; }
try "explain finds the texts of the manual" explained
started() { in_root nodestrap config example p5en.48xlarge >"$m/tmp/p5en" && in_root nodestrap config check --strict /tmp/p5en && grep -q 'expectedDevices: 16' "$m/tmp/p5en"; }
try "config example prints an example that config check accepts" started
for f in "$m"/usr/share/doc/nodestrap/examples/*.userdata; do
        try "config check accepts the example ${f##*/}" in_root nodestrap config check --strict -c "file://${f#"$m"}"
done
planned() { unshare -n chroot "$m" nodestrap plan -c file:///usr/share/doc/nodestrap/examples/p6e-gb200.userdata --instance-type p6e-gb200.36xlarge \
        --kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04; }
try "nodestrap makes a plan" sh -c 'grep -q kubelet <<X
$1
X' sh "$(planned 2>&1)"
try "the RPM has every manual page" is "$(cd "$m/usr/share/man" && printf "%s\n" man?/*odestrap* man?/*NodeConfig* | sort | xargs)" "$(cd "$top/debian" && for p in *.1 *.7 *.8 *.5; do echo "man${p##*.}/$p.gz"; done | sort | xargs)"
try "the RPM has the schema that nodestrap prints" diff <(in_root nodestrap config schema) "$m/usr/share/doc/nodestrap/nodeconfig.schema.json"
settings=$(sed -z "s/.*ExecStart=[^']*'//; s/'.*//; s/[\\]\n//g; s/[$][$]/$/g" "$m/usr/lib/systemd/system/nodestrap-network-settings.service")
labelled() { rm -f "$m/tmp/labelled"; in_root sh -c "$settings" && is "$(cat "$m/tmp/labelled" 2>/dev/null)" "$1"; }
printf '#!/bin/sh\necho "$@" >/tmp/labelled\n' >"$m/usr/sbin/restorecon"; chmod 755 "$m/usr/sbin/restorecon"
try "without SELinux the package labels nothing" labelled ''
try "the files for udev and networkd are in place" sh -c 'cd "$1/usr/lib/nodestrap/systemd" && find . -type f | while read -r f; do cmp "$f" "$1/run/systemd/$f" || exit; done' sh "$m"
mkdir -p "$m/sys/fs/selinux"; echo 0 >"$m/sys/fs/selinux/enforce"
try "the package labels nothing where SELinux is permissive" labelled ''
printf 1 >"$m/sys/fs/selinux/enforce"
try "the package labels the folders where SELinux enforces" labelled "-R /run/systemd/network /run/systemd/networkd.conf.d"
rm "$m/usr/sbin/restorecon"; try "the settings unit succeeds without restorecon" labelled ''
tmpfiles() { local want=$1; shift; systemd-tmpfiles --root="$m" --create "$@" nodestrap.conf && is "$(cd "$m" && find run/systemd/resolved.conf.d -printf '%m %u' 2>/dev/null)" "$want"; }
try "the folder for the DNS of the cluster is not there before a boot" tmpfiles ''
try "a boot makes that folder" tmpfiles '755 root' --boot

try "a root without nodeadm is prepared" prepare bare; m=$W/bare/m; everything >"$W/before"
try "rpm -i prints nothing in a root without nodeadm" silent rpm_ -i "$rpm"
try "nodeadm and nodeadm-internal are links to nodestrap" is "$(in_root readlink -f /usr/bin/nodeadm /usr/bin/nodeadm-internal | xargs)" "/usr/bin/nodestrap /usr/bin/nodestrap"
try "rpm -V finds no changed file" is "$(rpm_ -V nodestrap)" ''
try "the units are not enabled" is "$(state)" disabled
in_root systemctl -q preset $units
try "presets do not enable the units" is "$(state)" disabled
in_root systemctl -q enable $units; everything >"$W/installed"
rpm -qp --qf '%{POSTIN}\n' "$rpm" >"$m/tmp/post"
try "a second %post succeeds" in_root sh /tmp/post 2
try "a second %post changes nothing" diff "$W/installed" <(everything)
try "rpm.sh builds a second release" "$top/conf/packaging/rpm.sh" -o "$W/next" -- --define "binary $W/tree/usr/bin/nodestrap" --define 'release 2'
try "rpm -U succeeds and prints nothing" silent rpm_ -U "$W"/next/*.rpm
try "rpm -U installs the second release" is "$(rpm --root "$m" --dbpath /tmp/rpmdb -q --qf '%{VERSION}-%{RELEASE}' nodestrap)" "$(rpm -qp --qf '%{VERSION}' "$rpm")-2"
try "an update changes nothing else" diff <(grep -vF spdx.json "$W/installed") <(everything | grep -vF spdx.json)
mkdir -p "$m/var/lib/nodestrap"; echo '{}' >"$m/var/lib/nodestrap/manifest.json"
try "rpm -e succeeds and prints nothing" silent rpm_ -e nodestrap
try "after rpm -e no file is left and none is missing" diff "$W/before" <(everything)

# The EKS image: its nodeadm is a file, and its units are enabled.
own() { [ "$(in_root nodeadm --version; in_root nodeadm-internal --version; cat "$m"/run/somebody/*)" = $'nodeadm --version\nnodeadm-internal --version' ] && rm -r "$m/run/somebody"; }
try "a root with the nodeadm of an image is prepared" prepare own; m=$W/own/m; cp -a "$top/tests/fakes/al2023/rootfs/." "$m/"; mkdir -p "$m/etc/eks/nodeadm.d" "$m"/run/systemd/{networkd.conf.d,network/99-default.link.d}
in_root systemctl -q enable $theirs kubelet; everything >"$W/before"
advice="nodestrap: nodeadm boots this image. To have nodestrap do it: systemctl disable $theirs && systemctl enable $units
nodestrap: or keep the units and let nodestrap replace the nodeadm program: nodestrap-nodeadm(7)
nodestrap: kubelet.service is enabled: a boot would start it before the node is configured. nodestrap starts it in time: systemctl disable kubelet"
try "rpm -i beside nodeadm says how to switch to nodestrap" telling "$advice" rpm_ -i "$rpm"
try "the nodeadm of the image stays" own
try "an upgrade beside nodeadm prints nothing" silent rpm_ -U "$W"/next/*.rpm
try "the nodeadm of the image is still there after an upgrade" own
try "rpm -e beside nodeadm succeeds and prints nothing" silent rpm_ -e nodestrap
try "after rpm -e beside nodeadm the image is as before" diff "$W/before" <(everything)
rpm_ -i "$rpm" >/dev/null 2>&1
sed -n 's/.*: \(systemctl .*\)$/\1/p' <<<"$advice" >"$m/tmp/advice"
try "the commands of the advice succeed" in_root sh -e /tmp/advice
try "the commands enable nodestrap and disable nodeadm and kubelet" is "$(in_root systemctl is-enabled $theirs kubelet | sort -u) $(state)" "disabled enabled"
try "an upgrade with enabled nodestrap units prints nothing" silent rpm_ -U "$W"/next/*.rpm
try "an upgrade leaves the nodestrap units enabled" is "$(in_root systemctl is-enabled $theirs kubelet | sort -u) $(state)" "disabled enabled"
mkdir -p "$m"/etc/modprobe.d "$m"/etc/systemd/system/containerd.service.d; cp -rT "$m"/usr/lib/nodestrap/systemd "$m"/run/systemd; touch "$m"/etc/modprobe.d/zz-nodestrap-nvidia.conf "$m"/etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf
try "rpm -e says how to enable the units of nodeadm" telling "nodestrap: the nodeadm units are disabled; to hand the node back to nodeadm: systemctl enable $theirs" rpm_ -e nodestrap
in_root systemctl -q enable $theirs kubelet
try "the commands of the message restore the image" diff "$W/before" <(everything)

# A nodeadm that is a link, as an image may have it: alternatives would take it for one of its own.
mkdir -p "$m/opt/eks"; for n in nodeadm nodeadm-internal; do mv "$m/usr/bin/$n" "$m/opt/eks/$n"; ln -s /opt/eks/$n "$m/usr/bin/$n"; done
everything >"$W/before"
rpm_ -i "$rpm" >/dev/null 2>&1
try "a link of the image stays" is "$(in_root readlink /usr/bin/nodeadm /usr/bin/nodeadm-internal | xargs)" "/opt/eks/nodeadm /opt/eks/nodeadm-internal"
rpm_ -e nodestrap
try "after rpm -e an image with links is as before" diff "$W/before" <(everything)

try "a root without systemctl and update-alternatives is prepared" prepare less; m=$W/less/m; mv "$m/usr/bin/systemctl" "$m/usr/bin/update-alternatives" "$m/tmp"; everything >"$W/before"
try "rpm -i says for both names that update-alternatives is missing" sh -c 'rpm=$1; shift; "$@" "$rpm" 2>&1 | grep -c "^nodestrap: no alternative for nodeadm.*, since update-alternatives failed: .*not found" | grep -x 2' sh "$rpm" rpm --root "$m" --dbpath /tmp/rpmdb --force-debian --nodeps -i
try "nodestrap runs without update-alternatives" in_root nodestrap --version
try "rpm -e without update-alternatives prints nothing" silent rpm_ -e nodestrap
try "rpm -e without update-alternatives leaves no file" diff "$W/before" <(everything)

finish
