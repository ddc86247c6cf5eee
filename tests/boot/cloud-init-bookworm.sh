#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# tree: enabled
# console: NODESTRAP verdict=ok
# Real cloud-init of Debian 12, whose network stage has another name, and containerd 1.6.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_node
check_cloud_init

finish
