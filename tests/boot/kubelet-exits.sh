#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled joined_enabled kubelet_exits
# console: NODESTRAP verdict=failed code=EKUBELET
# A kubelet that exits at once is a failed boot, not a success that restarts for ever.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

try "the run phase exits with 50" exited nodestrap-run 50
try "nodestrap-run.service failed" failed nodestrap-run
try "containerd is active" active containerd
try "the root cause is the last line" in_journal '^nodestrap: failed \(50 EKUBELET\).*kubelet|failed \(50 EKUBELET\).*kubelet'
try "nodestrap-joined does not start for a node that cannot join" is "$(property nodestrap-joined ExecMainStartTimestampMonotonic) $(property nodestrap-joined ActiveState)" "0 inactive"
try "status.json has the verdict failed" grep -qE '"verdict": *"failed"' /run/nodestrap/status.json

finish
