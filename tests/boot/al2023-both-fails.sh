#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# spec: {instance: {localStorage: {strategy: RAID5}}}
# vpc: --cards 1 --count 1
# tree: al2023 vpc enabled hook_enabled
# console: NODESTRAP verdict=failed code=
# Both bootstrappers are enabled, and nodestrap finds an error in its configuration. nodeadm does not start the node instead.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

check_both_ours_fails
