#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: containerds.sh
# Prints the path of each containerd for the tests: of the images of bookworm (1.6) and trixie (1.7), of sid (2), of this machine. Exit 1:
# one of the first three is not here, and stderr says why.
set -u; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"; bad=0
case ${1-} in '') ;; *) usage; exit;; esac
for suite in bookworm trixie; do
        if root=$("$here/vmboot.sh" --build -S $suite); then echo "$root/usr/bin/containerd"; else bad=1; fi
done
if root=$("$here/peers.sh" --cached containerd2 sid containerd); then echo "$root/usr/bin/containerd"; else bad=1; fi
[ ! -x /usr/bin/containerd ] || echo /usr/bin/containerd
exit $bad
