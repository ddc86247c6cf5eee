#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init,systemd-resolved
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# vpc: --cards 2 --count 2
# tree: enabled hook_enabled vpc resolved
# console: NODESTRAP verdict=ok
# All of our units, networkd, resolved and cloud-init, which runs before sysinit.target and D-Bus; and a unit behind the network that
# basic.target waits for. systemd breaks no cycle, and the configuration phase finds the network ready.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_interfaces_first resolv-monitor.path systemd-resolved.service
check_node
check_cloud_init

finish
