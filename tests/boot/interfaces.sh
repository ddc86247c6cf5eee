#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# 8 network cards with both families, few interfaces with many addresses, and a CNI, with systemd-networkd 257.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh
export FIRST=udev

check_instance 8 --cards 8 --ipv6 --subnets 2
check_again "8 interfaces"
check_restart "8 interfaces" 7
check_instance 2 --cards 2 --prefixes 2 --addresses 3 --ipv6
check_cni

finish
