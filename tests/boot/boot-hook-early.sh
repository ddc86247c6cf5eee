#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# tree: enabled hook_early
# Debian's cloud-init is before sysinit.target, so that the network comes before the bus.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/hook.sh

check_hook_early
check_cloud_init

finish
