#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Loads nvidia first, then all others but nvidia_peermem. So nvidia_drm is loaded, which prevents a reset of the GPUs. On the first boot it
# enables the daemons and starts them without waiting. In the third generation it also brings their units, into /etc/systemd/system
# (awslabs/amazon-eks-ami#2795), and the modules. The path unit of the toolkit watches their list. With script refresh-gives-up, the CDI
# writer fails so often that systemd does not start it again.
. /usr/lib/fakes/lib.sh
# Its unit is started again when it has failed (Restart=on-failure): script setup-fails-times. systemctl(1) enable fails where a unit is masked,
# and so does all of it. Other installers reload systemd at any moment: script reloads, so often.
tries=$(cat $FAKES/setup-tries 2>/dev/null || echo 0); echo $((tries + 1)) >$FAKES/setup-tries
[ "$tries" -ge "$(script setup-fails-times 0)" ] || { event "setup-failed"; die "no tree yet"; }
scripted setup-fails && { event "driver-failed"; die "$(script setup-fails)"; }
current=/opt/nvidia/current
pause "$(script driver-takes 10)"
[ ! -d $current/units ] || { depmod_runs; pause "$(script modules-take 0)"; }
if scripted refresh-gives-up; then until systemctl -q is-failed nvidia-cdi-refresh.service; do sleep .1; depmod_runs; done; fi
modprobe nvidia && modprobe nvidia-uvm && modprobe nvidia-modeset && modprobe nvidia-drm && event "driver-loaded-by-the-ami" || exit 1
units="nvidia-persistenced.service nvidia-fabricmanager.service set-nvidia-clocks.service"
if [ -d $current/units ]; then
        [ ! -e $current/.daemons-installed ] || exit 0
        cp $current/units/* /etc/systemd/system/ && systemctl daemon-reload && : >$current/.daemons-installed || exit
fi
# shellcheck disable=SC2086 # units are words
systemctl enable $units || { event "enable-refused"; exit 1; }
# shellcheck disable=SC2086
systemctl start --no-block $units && event "daemons-installed"
reload() { local i; for ((i = 0; i < $1; i++)); do systemctl daemon-reload; done; event "reloaded $1 times"; }
! scripted reloads || reload "$(script reloads)"
