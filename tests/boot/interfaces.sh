#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 180
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# 8 network cards, and what else an image and a CNI do with interfaces, with systemd-networkd 257.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh

check_instance 8 --cards 8 --ipv6 --subnets 2
check_again "8 interfaces"
check_instance 2 --cards 1 --prefixes 2 --addresses 3 --ipv6
check_efa_only
check_cni
check_drop_ins
check_renamed
check_removed ens9

finish
