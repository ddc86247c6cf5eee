#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init -t 120
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# tree: enabled
# console: NODESTRAP verdict=ok
# Real cloud-init of Debian 13, its Ec2 data source at the same metadata service.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_node
check_cloud_init

finish
