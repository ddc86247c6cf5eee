# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Messages, disabling and cleanup for package removal. Both packages have this text in their scripts. dpkg has a purge; rpm,
# which has none, removes at once the files that dpkg removes on purge.

# Before the files go.
hand_back() {
        command -v systemctl >/dev/null || return 0
        # A person who enabled our units in an image with nodeadm has disabled the nodeadm units: without both, no boot makes a node.
        theirs=''
        for phase in boot-hook config run; do
                if systemctl --quiet is-enabled nodestrap-$phase.service 2>/dev/null &&
                        [ "$(systemctl is-enabled nodeadm-$phase.service 2>/dev/null)" = disabled ]; then theirs="$theirs nodeadm-$phase"; fi
        done
        [ -z "$theirs" ] || echo "nodestrap: the nodeadm units are disabled; to hand the node back to nodeadm: systemctl enable$theirs" >&2
        # Otherwise dangling links to removed units would stay behind.
        systemctl --quiet --no-reload disable nodestrap-boot-hook.service nodestrap-config.service nodestrap-devices.service \
                nodestrap-run.service nodestrap-joined.service nodestrap-event.path nodestrap-trim.timer || :
}

# What a boot wrote for containerd and kubelet stays: they may use it. Our own files go.
clear_away() {
        rm -rf /var/lib/nodestrap /run/nodestrap /run/eks-bootstrapper /etc/eks/nodeadm/udev-net-manager/by-mac
        rm -f /etc/modprobe.d/zz-nodestrap-nvidia.conf /etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf
        rm -f /run/systemd/networkd.conf.d/80-nodestrap.conf /run/systemd/network/99-default.link.d/80-nodestrap.conf
}

# The package manager removes an empty folder, even one that the image had before; without this one, nodeadm fails.
leave_folder() {
        [ ! -e /etc/systemd/system/nodeadm-run.service ] || mkdir -p /etc/eks/nodeadm.d
}
