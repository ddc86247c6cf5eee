# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What whoever builds an image is told when the package has been put into a root where something else would start the node as well, or
# start it too early. Said once, and after an upgrade only where our units are enabled: then a boot meets it. Nothing is enabled or
# disabled here. Both packages have this text in their scripts.
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
                echo "nodestrap: the units of two bootstrappers are enabled, and a boot will be nodestrap's; so that it need not warn of it: systemctl disable$both" >&2
        elif [ -n "$theirs" ] && [ -z "$1" ]; then
                new='nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined'
                case $theirs in *boot-hook*) new="nodestrap-boot-hook $new";; esac
                echo "nodestrap: nodeadm boots this image. To have nodestrap do it: systemctl disable$theirs && systemctl enable $new" >&2
                echo "nodestrap: or leave the units and let nodestrap take the place of nodeadm's program: nodestrap-nodeadm(7)" >&2
        fi
        if { [ -n "$ours" ] || [ -z "$1" ]; } && [ "$(systemctl is-enabled kubelet.service 2>/dev/null)" = enabled ]; then
                echo "nodestrap: kubelet.service is enabled: a boot would start it before the node is configured. It is started when its turn has come: systemctl disable kubelet" >&2
        fi
}
