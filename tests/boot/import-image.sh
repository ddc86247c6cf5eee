#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# tree: apply_tool
# The sandbox image is in containerd's store when the step has ended, wherever it was before; ctr and containerd are the real ones.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

image=localhost/kubernetes/pause
import() { echo "import-image ${2-/etc/eks/pause.tar} state=$1 with=$image" | PATH=${3-$PATH} /opt/apply-tool >outcome 2>&1; rc=$?; cat outcome; return $rc; }
ends() { local want=$1; shift; "$@"; grep -q "^$want import-image" outcome; }
fails() { local code=$1 text=$2; shift 2; "$@"; is "$rc" "$code" && grep -F -- "$text" outcome; }
images() { ctr --connect-timeout 20s --namespace k8s.io images ls -q | grep -v ^sha256:; }
archive() { python3 archive.py "$@"; }

mkdir -p /etc/eks; systemctl start containerd
try "an image without the archive needs nothing" ends unchanged import make
archive /etc/eks/pause.tar $image:0.1.0
try "a store that was not touched is not asked" ends unchanged import keep
try "nothing was imported so far" is "$(images)" ""
try "what is missing is imported" ends "done" import make
try "containerd has it" is "$(images)" $image:0.1.0
try "what is there is not imported again" ends unchanged import make
archive other.tar localhost/other:1
try "an archive with another image" sh -c "ctr --namespace k8s.io images rm $image:0.1.0 >/dev/null"
try "is a failure that says so" fails 50 "the image $image is not in it" import make /vmtest/other.tar
head -c 700 /etc/eks/pause.tar >torn.tar
try "so is one that is cut off" fails 50 "/vmtest/torn.tar holds no image that containerd takes" import make /vmtest/torn.tar
try "and an image without ctr" fails 50 "ctr cannot be started: No such file or directory" import make /etc/eks/pause.tar /nowhere
systemctl stop containerd
try "and a containerd that does not run" fails 50 "whether containerd has the image $image is not known: ctr exited with status 1" import make

finish
