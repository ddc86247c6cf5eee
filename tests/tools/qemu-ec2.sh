#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: qemu-ec2.sh QEMU-ARGUMENT...
# Runs the copy of qemu-system-x86_64, or of -$QEMU_EC2, that patchq.py makes (0.3 s, kept in the cache until QEMU changes). There -device
# nvme,serial= takes 20 characters of serial followed by the model: see patchq.py. Exit 77: this QEMU cannot be patched.
set -u; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"
case ${1-} in --deps) deps; exit;; --help) usage; exit;; esac
qemu=qemu-system-${QEMU_EC2:-x86_64}; need "$qemu" python3
orig=$(realpath "$(command -v "$qemu")")
copy=$BASE/qemu-$(cat "$here/patchq.py" <(stat -c '%n %s %Y' "$orig") | sha256sum | cut -c1-12)
if [ ! -x "$copy" ]; then
        mkdir -p "$BASE"; t=$(mktemp -p "$BASE"); trap 'rm -f "$t"' EXIT
        python3 "$here/patchq.py" "$orig" "$t" || skip "this QEMU cannot be patched for EC2 model strings"
        chmod 755 "$t"; mv "$t" "$copy"
fi
# outside /usr/bin the binary finds neither its modules (Debian's TCG is one) nor its firmware
for d in /usr/lib/*/qemu; do [ -d "$d" ] && export QEMU_MODULE_DIR=$d; done
exec "$copy" -L /usr/share/qemu -L /usr/share/seabios -L /usr/lib/ipxe/qemu "$@"
