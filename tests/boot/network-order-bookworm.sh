#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0 -a cloud-init,systemd-resolved
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# vpc: --cards 2 --count 2
# tree: enabled hook_enabled vpc resolved
# console: NODESTRAP verdict=ok
# network-order.sh with cloud-init 22.4 and systemd 252, whose networkd reads its files again only when asked over D-Bus.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_interfaces_first resolv-monitor.path systemd-resolved.service
check_node
check_cloud_init

finish
