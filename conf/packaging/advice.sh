# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Tells an image builder, after installation into a root, if another program would start the node as well, or
# start it too early. It speaks once, and after an upgrade only if our units are enabled: only then is a boot affected. It enables and
# disables nothing. Both packages have this text in their scripts.
advise() {      # "upgrade", or nothing for the first installation
        command -v systemctl >/dev/null || return 0
        theirs='' ours='' both=''
        for phase in boot-hook config run; do
                [ "$(systemctl is-enabled nodestrap-$phase.service 2>/dev/null)" != enabled ] || ours="$ours nodestrap-$phase"
                [ "$(systemctl is-enabled nodeadm-$phase.service 2>/dev/null)" = enabled ] || continue
                theirs="$theirs nodeadm-$phase"
                case "$ours " in *" nodestrap-$phase "*) both="$both nodeadm-$phase";; esac
        done
        if [ -n "$both" ]; then
                echo "nodestrap: the units of two bootstrappers are enabled, and nodestrap will own the boot; to stop its warning: systemctl disable$both" >&2
        elif [ -n "$theirs" ] && [ -z "$1" ]; then
                new='nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined'
                case $theirs in *boot-hook*) new="nodestrap-boot-hook $new";; esac
                echo "nodestrap: nodeadm boots this image. To have nodestrap do it: systemctl disable$theirs && systemctl enable $new" >&2
                echo "nodestrap: or keep the units and let nodestrap replace the nodeadm program: nodestrap-nodeadm(7)" >&2
        fi
        if { [ -n "$ours" ] || [ -z "$1" ]; } && [ "$(systemctl is-enabled kubelet.service 2>/dev/null)" = enabled ]; then
                echo "nodestrap: kubelet.service is enabled: a boot would start it before the node is configured. nodestrap starts it in time: systemctl disable kubelet" >&2
        fi
}
