#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 400
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# boot/interfaces.sh with other numbers.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh
export FIRST=udev

check_instance 32 --cards 32 --ipv6 --subnets 3
check_again "32 interfaces"
# one card, which the metadata does not mention, on an unknown instance type: nodestrap asks again at each try
instance_new --cards 1 --count 4 --prefixes 2 --addresses 3 --ipv6
try "one card: udev-net-manager adds all interfaces" instance_up
check_interfaces "one card"
check_instance 2 --cards 2 --ipv6-only --prefixes 2
check_late_metadata
check_late_primary
check_only_ipv6
check_efa_only
check_drop_ins
check_renamed
check_removed ens9

finish
