#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: network
# environment: IMDS_LOG=/vmtest/requests
# Interfaces that a CNI attaches, that have settings of the image, that get other names, that go; with systemd-networkd 252.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/network.sh

check_cni
check_efa_only
check_drop_ins
check_renamed
check_removed ens9

finish
