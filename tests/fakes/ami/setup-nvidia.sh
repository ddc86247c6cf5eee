#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Facts 7.2: nvidia first, then the others; on the first boot it enables the daemons and starts them without waiting.
. /usr/lib/fakes/lib.sh
scripted setup-fails && { event "driver-failed"; die "$(script setup-fails)"; }
pause "$(script driver-takes 10)"
modprobe nvidia && modprobe nvidia-uvm && event "driver-loaded-by-the-ami" || exit 1
units="nvidia-persistenced.service nvidia-fabricmanager.service set-nvidia-clocks.service"
# shellcheck disable=SC2086 # units are words
systemctl enable $units && systemctl start --no-block $units
