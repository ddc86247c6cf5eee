#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# The boot hook with the networkd of Debian 13, which PID 1 can reload.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/hook.sh

check_hook reloaded

finish
