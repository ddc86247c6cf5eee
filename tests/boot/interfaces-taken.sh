#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 180
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# systemd-networkd 257 has given all interfaces what the image's own file says, a route of the subnet in the main table among it, before
# theirs come: nothing of that is left. IPv4 alone: what router advertisements had told stays in the main table of 257, now and then.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh

comes_to_all() { local name; for name; do comes_to "$name" configured || return; done; }
# shellcheck disable=SC2046 # names
taken() { links && systemctl start systemd-networkd && comes_to_all $(names) && add $(names); }
instance_new --cards 4 --count 4 --subnets 2
try "the image's file has them all, then they were added" taken
check_interfaces "taken over"
instance_new --cards 2 --count 2
try "both at about the same time" instance_up
check_interfaces "at the same time"

finish
