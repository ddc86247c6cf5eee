#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# The boot hook with the networkd of Debian 12, which can be reloaded over D-Bus alone.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/hook.sh

check_hook restarted

finish
