#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0 -t 400
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# boot/interfaces-bookworm.sh with other numbers.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh

check_instance 32 --cards 32 --ipv6 --subnets 3
check_again "32 interfaces"
check_instance 16 --cards 16 --device-0 --ipv6-only
check_instance 8 --cards 8 --subnets 4
# one card, which the metadata does not mention, on an unknown instance type: nodestrap asks again at each try
instance_new --cards 1 --count 4 --prefixes 2 --addresses 3 --ipv6
try "one card: udev-net-manager adds all interfaces" instance_up
check_interfaces "one card"
check_instance 2 --cards 2 --ipv6-only --prefixes 2

finish
