#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# 32 network cards in two subnets, and what may be late, with systemd-networkd 252.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh

check_instance 32 --cards 32 --subnets 2
check_again "32 interfaces"
check_restart "32 interfaces" 31
check_instance 1 --cards 1
check_late_metadata
check_late_primary
check_only_ipv6

finish
