#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled joined
# console: NODESTRAP verdict=ok code=OK step=join t=[0-9.]+s plan=sha256:[0-9a-f]+ registered=[0-9.]+s ready=[0-9.]+s
# A whole boot that ends with a node that is Ready: a kubelet registers with an API server by our token, and nodestrap-joined, for which
# nothing waits, says so.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_join

finish
