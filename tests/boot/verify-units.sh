#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# systemd's own check of the installed units, in the images of Debian 12 and 13 with their cloud-init, networkd and containerd all
# enabled: no ordering cycle, no unknown setting, no missing unit. A control shows that the check would see the cycle.
set -u; top=$(realpath "$(dirname "$0")/../.."); tools=$top/tests/tools; count=0 bad=0
report() { count=$((count + 1)); if [ "$1" = 0 ]; then echo "ok $count - $2"; else bad=1; echo "not ok $count - $2"; sed 's/^/# /' <<<"$3"; fi; }
W=$(mktemp -d); trap 'umount "$W"/*/m 2>/dev/null; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
make -s -C "$top" install DESTDIR="$W/tree" ${NODESTRAP:+"BINARY=$NODESTRAP"} >&2 || { echo "1..1"; echo "not ok 1 - make install"; exit 1; }

verify() { chroot "$1" systemd-analyze verify --man=no multi-user.target nodestrap-config.service nodestrap-run.service nodestrap-joined.service containerd.service kubelet.service 2>&1; }
prepare() {                             # prepare SUITE ROOTFS -> a copy with everything enabled, mounted at $W/SUITE/m
        local d=$W/$1 m=$W/$1/m s u; mkdir -p "$d"/{u,w,m}; mount -t overlay o -o "lowerdir=$2,upperdir=$d/u,workdir=$d/w" "$m" || return
        cp -a "$W/tree/usr/." "$m/usr/"; cp "$top/tests/boot/lib/tree/usr/bin/kubelet" "$m/usr/bin/"; s=$m/etc/systemd/system
        cp "$top/tests/boot/lib/tree/etc/systemd/system/kubelet.service" "$s/"; mkdir -p "$s"/{multi-user,cloud-init,network-online}.target.wants
        for u in nodestrap-config nodestrap-run nodestrap-joined containerd systemd-networkd; do ln -sf /usr/lib/systemd/system/$u.service "$s/multi-user.target.wants/"; done
        ln -sf ../kubelet.service "$s/multi-user.target.wants/"; ln -sf /usr/lib/systemd/system/cloud-init.target "$s/multi-user.target.wants/"
        ln -sf /usr/lib/systemd/system/systemd-networkd-wait-online.service "$s/network-online.target.wants/"
        for u in "$m"/usr/lib/systemd/system/cloud-{init,init-local,init-network,init-main,config,final}.service; do
                [ ! -e "$u" ] || ln -sf "/usr/lib/systemd/system/${u##*/}" "$s/cloud-init.target.wants/"
        done
}
for suite in bookworm trixie; do
        root=$("$tools/vmboot.sh" --build -S $suite -a cloud-init 2>"$W/log") || {
                [ $? = 77 ] && { echo "1..0 # SKIP $(sed -n 's/.*skip: //p' "$W/log" | tail -1)"; exit 0; }; cat "$W/log" >&2; echo "1..1"; echo "not ok 1 - image"; exit 1; }
        prepare $suite "$root" || { echo "1..0 # SKIP no overlay filesystem"; exit 0; }
        out=$(verify "$W/$suite/m"); rc=$?
        report $rc "$suite: systemd-analyze verify succeeds" "$out"
        ! grep -qE 'cycle|Unknown|Failed|not found|Ignoring|not executable' <<<"$out"; report $? "$suite: it has nothing to say" "$out"
        for control in config run joined; do    # the same units with default dependencies
                unit=$W/$suite/m/usr/lib/systemd/system/nodestrap-$control.service; cp "$unit" "$W/saved"; sed -i '/^DefaultDependencies/d' "$unit"
                out=$(verify "$W/$suite/m"); grep -q 'ordering cycle' <<<"$out"; report $? "$suite: control: nodestrap-$control with default dependencies is a cycle" "$out"
                cp "$W/saved" "$unit"
        done
done
echo "1..$count"; exit $bad
