#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# spec: {featureGates: {FastImagePull: true}}
# tree: enabled containerd2 soci_that_is_deaf
# console: NODESTRAP verdict=failed
# console: NODESTRAP verdict=ok
# A failed import of the sandbox image for SOCI keeps kubelet down and is in the verdict. Without the archive the node starts with a
# warning, as under nodeadm.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

image=localhost/kubernetes/pause:latest
status_has() { grep -F "$1" /run/nodestrap/status.json; }
kept_down() {
        try "nodestrap-run.service failed" failed nodestrap-run
        try "nodestrap-run.service exits with 50" exited nodestrap-run 50
        try "the verdict names the step" in_journal 'NODESTRAP verdict=failed code=ECOMMAND step=import-image:/etc/eks/pause.tar'
        try "the journal has the command to try" in_journal '/etc/eks/pause.tar cannot be imported for the snapshotter soci \(try `ctr --namespace k8s.io images import --snapshotter soci'
        try "containerd runs" active containerd
        try "containerd.service requires SOCI" sh -c "systemctl show -P Requires containerd | grep -w soci-snapshotter.service"
        try "kubelet was never started" never_started
}
if [ "$VMTEST_BOOT" = 1 ]; then
        kept_down >out/first
        rm /etc/eks/pause.tar
        systemctl reboot
        exit
fi
cat out/first
try "without the archive: nodestrap-run.service is active" active nodestrap-run
try "without the archive: status.json has a warning" status_has no-sandbox-archive
try "without the archive: the journal says that no pod starts" in_journal "containerd does not have the image $image where SOCI finds it; without that image no pod starts here"
try "without the archive: kubelet is active" active kubelet

finish
