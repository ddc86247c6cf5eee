# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What is said, disabled and taken away when the package goes. Both packages have this text in their scripts; dpkg knows a purge, and rpm,
# which knows none, takes away at once what dpkg takes away then.

# Before the files go.
hand_back() {
        command -v systemctl >/dev/null || return 0
        # Who enabled our units in an image that has nodeadm disabled nodeadm's: without either no boot makes a node of it.
        theirs=''
        for phase in boot-hook config run; do
                if systemctl --quiet is-enabled nodestrap-$phase.service 2>/dev/null &&
                        [ "$(systemctl is-enabled nodeadm-$phase.service 2>/dev/null)" = disabled ]; then theirs="$theirs nodeadm-$phase"; fi
        done
        [ -z "$theirs" ] || echo "nodestrap: nodeadm's units are disabled; systemctl enable$theirs gives the node back to them" >&2
        # Links to units that are about to go would be all that is left of them.
        systemctl --quiet --no-reload disable nodestrap-boot-hook.service nodestrap-config.service nodestrap-devices.service \
                nodestrap-run.service nodestrap-joined.service nodestrap-event.path nodestrap-trim.timer || :
}

# What a boot wrote for containerd and kubelet stays: they may be running with it. What bears our name goes.
clear_away() {
        rm -rf /var/lib/nodestrap /run/nodestrap /run/eks-bootstrapper /etc/eks/nodeadm/udev-net-manager/by-mac
        rm -f /etc/modprobe.d/zz-nodestrap-nvidia.conf /etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf
        rm -f /run/systemd/networkd.conf.d/80-nodestrap.conf /run/systemd/network/99-default.link.d/80-nodestrap.conf
}

# An empty folder goes with the package, also one that the image had before, and without this one nodeadm fails.
leave_folder() {
        [ ! -e /etc/systemd/system/nodeadm-run.service ] || mkdir -p /etc/eks/nodeadm.d
}
