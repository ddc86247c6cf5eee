#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# vpc: --cards 1 --count 1
# tree: al2023 vpc enabled hook_enabled joined_enabled
# console: two-bootstrappers: nodeadm-config.service and nodeadm-run.service are enabled, too
# Both bootstrappers are enabled, or one is started by hand after the other. Only the first one runs, and it keeps this node.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/al2023.sh

check_both
