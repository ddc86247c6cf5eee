#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 0 -a cloud-init -t 600
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# tree: enabled networkd
# console: NODESTRAP verdict=ok
# From power-on, with bookworm's kernel, systemd, cloud-init and containerd, over a network that networkd brings up; then a reboot.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_two_boots

finish
