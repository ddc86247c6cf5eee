#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Facts 0, 1.2: whether this host runs fabric manager; 1 skips the unit, and where it cannot tell it starts (1.2.4).
. /usr/lib/fakes/lib.sh
! tray || exit 1
[ -z "$(devices 10DE 680)" ] || exit 0
for d in $(devices 15B3 ''); do grep -qs SW_MNG "/sys/bus/pci/devices/$d/vpd" && exit 0; done
exit 1
