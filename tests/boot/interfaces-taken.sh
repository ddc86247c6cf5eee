#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# Before our files come, systemd-networkd 257 has set up all interfaces by the file of the image. The main table has a route of the subnet
# then. Nothing of that is left. IPv4 only, because 257 sometimes leaves routes of router advertisements in the main table.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh

comes_to_all() { local name; for name; do comes_to "$name" configured || return; done; }
# shellcheck disable=SC2046 # names
taken() { links && systemctl start systemd-networkd && comes_to_all $(names) && add $(names); }
both_up() { links && systemctl start systemd-networkd && comes_to_all eth0 eth1; }
instance_new --cards 4 --count 4 --subnets 2
try "the file of the image already has the interfaces that udev adds" taken
check_interfaces "taken over"
instance_new --cards 2 --count 2
try "systemd-networkd and both interfaces come up at about the same time" instance_up
check_interfaces "at the same time"

# networkd keeps an address over a reload, and cannot give its lease back until it asks again. If it starts again in between, it makes the
# same address once more, and the route of the subnet stays in the main table.
instance_new --cards 2 --count 2 --subnets 2
try "the file of the image has both interfaces" both_up
: >$VPC/hold/eth1
add eth1 & adding=$!
try "eth1 does not get its address again yet" comes_to eth1 configuring
# its own file is read by then: what else there is to do is done here first
try "udev-net-manager for eth0 still runs" eval 'add eth0 && kill -0 $adding'
rm $VPC/hold/eth1
wait $adding
try "udev-net-manager for eth1 succeeds after eth1 has its address" is $? 0
check_interfaces "an address that was kept"

finish
