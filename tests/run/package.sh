#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package from a copy of this tree, then installs, removes and purges it in a root of Debian 12 that has all it
# depends on, once bare and once with a nodeadm of the image's own. The package is left in build/package.
set -u; top=$(realpath "$(dirname "$0")/../.."); count=0 bad=0
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; tail -40 <<<"$output" | sed 's/^/# /'; return 1; fi; }
finish() { echo "1..$count"; exit $bad; }
W=$(mktemp -d); trap 'umount "$W"/*/m 2>/dev/null; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
for c in dpkg-buildpackage dh lintian; do command -v $c >/dev/null || { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] && exit 99; echo "1..0 # SKIP no $c here"; exit; }; done

build() { cd "$W/src" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -us -uc -b; }
mkdir "$W/src"; (cd "$top" && if git rev-parse -q --git-dir >/dev/null 2>&1; then git ls-files -co --exclude-standard; else find . -path ./build -prune -o -type f -print; fi |
        tar -cf - --ignore-failed-read -T -) 2>/dev/null | tar -C "$W/src" -xf -
try "dpkg-buildpackage -us -uc -b" build || finish
try "lintian has nothing to say" lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$W"/nodestrap_*.changes
mkdir -p "$top/build/package" && cp "$W"/nodestrap_*.deb "$top/build/package/"

root=$("$top/tests/tools/vmboot.sh" --build -S bookworm 2>"$W/log") || {
        [ $? = 77 ] || { cat "$W/log" >&2; bad=1; }; count=$((count + 1)); echo "ok $count - install, remove, purge # SKIP $(sed -n 's/.*skip: //p' "$W/log" | tail -1)"; finish; }
prepare() { mkdir -p "$W/$1"/{u,w,m}; mount -t overlay o -o "lowerdir=$root,upperdir=$W/$1/u,workdir=$W/$1/w" "$W/$1/m" && cp "$W"/nodestrap_*.deb "$W/$1/m/tmp/p.deb"; }
everything() { (cd "$m" && find . -xdev -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./tmp -prune -o -printf '%p %l\n' | sort); }
in_root() { chroot "$m" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
in_package() { dpkg-deb -c "$W"/nodestrap_*.deb | sed -n 's|.* \./usr/lib/systemd/system/\(.*[^/]\)$|./\1|p'; }
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }

try "a root of Debian 12" prepare bare; m=$W/bare/m; everything >"$W/before"
try "dpkg -i: nothing else is needed" in_root dpkg -i /tmp/p.deb
try "nodestrap --version says the package's version" is "$(in_root nodestrap --version | grep -o '[0-9][0-9.]*' | head -1)" "$(dpkg-deb -f "$W"/nodestrap_*.deb Version)"
try "nodeadm is a link to it" is "$(in_root readlink -f /usr/bin/nodeadm)" /usr/bin/nodestrap
try "nodeadm-internal is a link to it" is "$(in_root readlink -f /usr/bin/nodeadm-internal)" /usr/bin/nodestrap
try "every unit and drop-in is there" diff <(cd "$top/units" && find . -name '*.service' -o -name '*.conf' | sort) <(in_package | sort)
try "the units are not enabled" is "$(in_root systemctl is-enabled nodestrap-config nodestrap-run nodestrap-joined | xargs)" "disabled disabled disabled"
try "they can be enabled" in_root systemctl enable nodestrap-config nodestrap-run nodestrap-joined
try "they are enabled then" is "$(in_root systemctl is-enabled nodestrap-config nodestrap-run nodestrap-joined | xargs)" "enabled enabled enabled"
try "an upgrade succeeds" in_root dpkg -i /tmp/p.deb
try "an upgrade leaves them enabled" is "$(in_root systemctl is-enabled nodestrap-config nodestrap-run nodestrap-joined | xargs)" "enabled enabled enabled"
mkdir -p "$m/var/lib/nodestrap"; echo '{}' >"$m/var/lib/nodestrap/manifest.json"
try "dpkg --remove" in_root dpkg --remove nodestrap
try "nodeadm is gone" test ! -e "$m/usr/bin/nodeadm" -a ! -L "$m/usr/bin/nodeadm"
try "dpkg --purge" in_root dpkg --purge nodestrap
everything >"$W/after"; try "nothing is left and nothing is missing" diff "$W/before" "$W/after"

try "a root with a nodeadm of its own" prepare own; m=$W/own/m
for n in nodeadm nodeadm-internal; do printf '#!/bin/sh\necho own %s\n' $n >"$m/usr/bin/$n"; chmod 755 "$m/usr/bin/$n"; done; everything >"$W/before"
try "dpkg -i beside it" in_root dpkg -i /tmp/p.deb
try "the image's nodeadm stays" is "$(in_root nodeadm) $(in_root nodeadm-internal)" "own nodeadm own nodeadm-internal"
rm "$m/usr/bin/nodeadm" "$m/usr/bin/nodeadm-internal"
try "asked to, it takes the place" in_root update-alternatives --auto nodeadm
try "nodeadm is a link to it then" is "$(in_root readlink -f /usr/bin/nodeadm) $(in_root readlink -f /usr/bin/nodeadm-internal)" "/usr/bin/nodestrap /usr/bin/nodestrap"
try "dpkg --purge of it" in_root dpkg --purge nodestrap
finish
