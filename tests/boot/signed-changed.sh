#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled kubelet_enabled
# signed: --cluster example
# changed: s/registryPullQPS: 7/registryPullQPS: 8/
# console: NODESTRAP verdict=failed code=ESIGNATURE
# console: failed \(11 ESIGNATURE\) at decode: user-data: was changed after it was signed, or its signature names boot.pub, but another private key made it
# User data of which one digit was changed after it was signed.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the configuration phase exits with 11" exited nodestrap-config 11
try "kubelet was not started, although it is enabled" never_started
try "containerd was not started, although it is enabled" is "$(property containerd ActiveState)" inactive
try "nodestrap writes no kubelet configuration" no test -e /etc/kubernetes/kubelet/config.json
try "nodestrap keeps no serial" no test -e /var/lib/nodestrap/serials.json
try "config verify fails with the same message" sh -c "nodestrap config verify 2>out/verify; [ \$? = 11 ] && grep -F '(11 ESIGNATURE) at verify: user-data: was changed' out/verify"
try "nodestrap wait fails at once with ESIGNATURE" wait_is_told "11 ESIGNATURE at "

finish
