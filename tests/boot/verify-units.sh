#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# systemd checks the installed units in the images of Debian 12 and 13: no ordering cycle, no unknown setting, no missing unit. cloud-init,
# networkd, resolved and containerd are enabled, a unit behind the network holds basic.target, and others are ordered as in the GPU images
# of EKS. Controls show that the check would see the cycle. Then the rights of each, in tenths of the exposure by `systemd-analyze
# security`. The limit is a tenth more than systemd 252 counts, which counts up to 0.2 more than 257.
# The exposure is a sum. tests/check/protections.sh compares the settings one by one, tests/boot/protections.sh what the kernel holds.
set -u; top=$(realpath "$(dirname "$0")/../.."); tools=$top/tests/tools; count=0 bad=0
report() { count=$((count + 1)); if [ "$1" = 0 ]; then echo "ok $count - $2"; else bad=1; echo "not ok $count - $2"; sed 's/^/# /' <<<"$3"; fi; }
W=$(mktemp -d); trap 'umount "$W"/*/m 2>/dev/null; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
make -s -C "$top" install DESTDIR="$W/tree" ${NODESTRAP:+"BINARY=$NODESTRAP"} >&2 || { echo "1..1"; echo "not ok 1 - make install"; exit 1; }

verify() { chroot "$1" systemd-analyze verify --man=no multi-user.target nodestrap-boot-hook.service nodestrap-network-settings.service nodestrap-udev-net-manager@eth0.service \
                nodestrap-config.service nodestrap-devices.service nodestrap-run.service nodestrap-joined.service nodestrap-event.path nodestrap-event.service nodestrap-failed.target nodestrap-power.service nodestrap-pre-pull.service nodestrap-prove@60.service nodestrap-read-ahead.service nodestrap-trim.timer nodestrap-trim.service containerd.service kubelet.service 2>&1; }
gpu_unit() {                            # gpu_unit ROOT NAME LINE... : an enabled oneshot with these lines in [Unit]
        local m=$1 name=$2; shift 2
        { printf '[Unit]\nDescription=Stub of %s\n' "$name"; printf '%s\n' "$@"; printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n'; } >"$m/usr/lib/systemd/system/$name.service"
        ln -sf "/usr/lib/systemd/system/$name.service" "$m/etc/systemd/system/multi-user.target.wants/"
}
gpu_units_1() {                         # awslabs/amazon-eks-ami 81fec2e: templates/al2023/runtime/gpu
        gpu_unit "$1" nvidia-kmod-load Wants=network-online.target After=network-online.target 'Before=nvidia-fabricmanager.service nvidia-persistenced.service'
        gpu_unit "$1" nvidia-persistenced; gpu_unit "$1" nvidia-fabricmanager After=network-online.target; gpu_unit "$1" nvidia-imex After=network-online.target
        gpu_unit "$1" set-nvidia-clocks After=nvidia-persistenced.service Requires=nvidia-persistenced.service
}
gpu_units_2() {                         # its revisions of the second half of 2026
        gpu_unit "$1" nvidia-driver-resolve DefaultDependencies=no After=local-fs.target RefuseManualStart=yes
        gpu_unit "$1" nvidia-setup Requires=nvidia-driver-resolve.service After=nvidia-driver-resolve.service RefuseManualStart=yes RefuseManualStop=yes \
                'Before=nvidia-persistenced.service nvidia-fabricmanager.service'
        gpu_unit "$1" set-nvidia-clocks 'After=nvidia-persistenced.service nvidia-setup.service' Requires=nvidia-persistenced.service
        gpu_unit "$1" nvidia-package-install Before=cloud-final.service After=nvidia-setup.service; rm "$1"/usr/lib/systemd/system/nvidia-kmod-load.service
        rm "$1"/etc/systemd/system/multi-user.target.wants/nvidia-kmod-load.service
}
gpu_units_3() {                         # those of autumn 2026 (#2795, #2841), and the toolkit's (NVIDIA/nvidia-container-toolkit:deployments/systemd; 1.18.2 has After=multi-user.target)
        gpu_unit "$1" nvidia-ldcache-update After=nvidia-driver-resolve.service RefuseManualStart=yes
        for word in bin lib64 share; do gpu_unit "$1" nvidia-usr-copy@$word After=nvidia-driver-resolve.service Before=nvidia-setup.service RefuseManualStart=yes; done
        gpu_unit "$1" nvidia-cdi-refresh 'ConditionPathExists=|/usr/bin/nvidia-smi' After=multi-user.target
        printf '[Path]\nPathChanged=/usr/bin/nvidia-ctk\n' >"$1/usr/lib/systemd/system/nvidia-cdi-refresh.path"
        ln -sf /usr/lib/systemd/system/nvidia-cdi-refresh.path "$1/etc/systemd/system/multi-user.target.wants/"
}
prepare() {                             # prepare SUITE ROOTFS -> a copy with everything enabled, mounted at $W/SUITE/m
        local d=$W/$1 m=$W/$1/m s u; mkdir -p "$d"/{u,w,m}; mount -t overlay o -o "lowerdir=$2,upperdir=$d/u,workdir=$d/w" "$m" || return
        cp -a "$W/tree/usr/." "$m/usr/"; cp "$top/tests/boot/lib/tree/usr/bin/kubelet" "$m/usr/bin/"; s=$m/etc/systemd/system
        cp "$top/tests/boot/lib/tree/etc/systemd/system/kubelet.service" "$s/"; mkdir -p "$s"/{multi-user,cloud-init,network-online}.target.wants
        for u in nodestrap-boot-hook nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined containerd systemd-networkd; do ln -sf /usr/lib/systemd/system/$u.service "$s/multi-user.target.wants/"; done
        ln -sf ../kubelet.service "$s/multi-user.target.wants/"; ln -sf /usr/lib/systemd/system/cloud-init.target "$s/multi-user.target.wants/"
        ln -sf /usr/lib/systemd/system/systemd-networkd-wait-online.service "$s/network-online.target.wants/"
        mkdir -p "$s"/{paths,sysinit}.target.wants; ln -sf /usr/lib/systemd/system/systemd-resolved.service "$s/sysinit.target.wants/"
        printf '[Unit]\nWants=network-online.target\nAfter=network-online.target\n[Path]\nPathChanged=/run/systemd/resolve/resolv.conf\nUnit=resolv-changed.service\n' >"$s/resolv-monitor.path"
        printf '[Service]\nType=oneshot\nExecStart=/bin/true\n' >"$s/resolv-changed.service"; ln -sf ../resolv-monitor.path "$s/paths.target.wants/"
        for u in "$m"/usr/lib/systemd/system/cloud-{init,init-local,init-network,init-main,config,final}.service; do
                [ ! -e "$u" ] || ln -sf "/usr/lib/systemd/system/${u##*/}" "$s/cloud-init.target.wants/"
        done
}
exposed() { chroot "$1" systemd-analyze security --offline=true --no-pager --threshold="$2" "/usr/lib/systemd/system/$3" 2>&1; }        # not more than that
for suite in bookworm trixie; do
        root=$("$tools/vmboot.sh" --build -S $suite -a cloud-init,systemd-resolved 2>"$W/log") || {
                [ $? = 77 ] && { echo "1..0 # SKIP $(sed -n 's/.*skip: //p' "$W/log" | tail -1)"; exit 0; }; cat "$W/log" >&2; echo "1..1"; echo "not ok 1 - image"; exit 1; }
        prepare $suite "$root" || { echo "1..0 # SKIP no overlay filesystem"; exit 0; }
        out=$(verify "$W/$suite/m"); rc=$?
        report $rc "$suite: systemd-analyze verify succeeds" "$out"
        ! grep -qE 'cycle|Unknown|Failed|not found|Ignoring|not executable' <<<"$out"; report $? "$suite: systemd-analyze verify prints no warning" "$out"
        unit=$W/$suite/m/usr/lib/systemd/system; ln -s nodestrap-udev-net-manager@.service "$unit/nodestrap-udev-net-manager@eth0.service"
        while read -r level name; do
                out=$(exposed "$W/$suite/m" "$level" "$name.service"); report $? "$suite: the exposure of $name is $level at most" "$out"
        done <<<$'41 nodestrap-config\n56 nodestrap-devices\n58 nodestrap-run\n39 nodestrap-boot-hook\n35 nodestrap-network-settings\n40 nodestrap-udev-net-manager@eth0\n32 nodestrap-joined\n32 nodestrap-event\n32 nodestrap-power\n22 nodestrap-trim\n31 nodestrap-read-ahead'
        sed '/^CapabilityBoundingSet/d' "$unit/nodestrap-run.service" >"$unit/control.service"; out=$(exposed "$W/$suite/m" 58 control.service)
        [ $? != 0 ]; report $? "$suite: control: the exposure of nodestrap-run with all capabilities is above the limit" "$out"; rm "$unit/control.service" "$unit/nodestrap-udev-net-manager@eth0.service"
        for generation in 1 2 3; do
                gpu_units_$generation "$W/$suite/m"; out=$(verify "$W/$suite/m")
                report $? "$suite: systemd-analyze verify succeeds with the units of a GPU image, generation $generation" "$out"
                ! grep -qE 'cycle|Unknown|Failed|not found|Ignoring|not executable' <<<"$out"; report $? "$suite: systemd-analyze verify prints no warning for the units of a GPU image, generation $generation" "$out"
                [ "$(chroot "$W/$suite/m" systemd-analyze verify --man=no nvidia-fabricmanager.service nvidia-imex.service 2>&1)" = "" ]; report $? "$suite: systemd-analyze verify prints nothing for fabric manager and IMEX, generation $generation" "$out"
        done
        out=$(chroot "$W/$suite/m" systemd-analyze verify --man=no nvidia-cdi-refresh.service nvidia-cdi-refresh.path 2>&1)
        [ "$out" = "" ]; report $? "$suite: systemd-analyze verify prints nothing for the units of the toolkit" "$out"
        unit=$W/$suite/m/usr/lib/systemd/system/nvidia-setup.service; cp "$unit" "$W/saved"; sed -i '/^RefuseManualStart/a Before=nodestrap-config.service' "$unit"
        out=$(verify "$W/$suite/m"); grep -q 'ordering cycle' <<<"$out"; report $? "$suite: control: the driver unit before nodestrap-config is a cycle" "$out"; cp "$W/saved" "$unit"
        for control in boot-hook config run joined; do    # the same units with default dependencies
                unit=$W/$suite/m/usr/lib/systemd/system/nodestrap-$control.service; cp "$unit" "$W/saved"; sed -i '/^DefaultDependencies/d' "$unit"
                out=$(verify "$W/$suite/m"); grep -q 'ordering cycle' <<<"$out"; report $? "$suite: control: nodestrap-$control with default dependencies is a cycle" "$out"
                cp "$W/saved" "$unit"
        done
done
echo "1..$count"; exit $bad
