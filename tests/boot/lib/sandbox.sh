# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/boot/import-image*.sh. After import-image the sandbox image is in the store of containerd, wherever it was before. It has
# the name in the configuration. After pin-image it is pinned. containerd and ctr are the real ones; in the place of SOCI stands a snapshotter
# that containerd brings and that is not its default.
. /vmtest/guest.sh

image=localhost/kubernetes/pause:latest archive=/etc/eks/pause.tar
pin() { echo "pin-image $image ${1-}" | timeout 180 env PATH="${2-$PATH}" /opt/apply-tool >outcome 2>&1; rc=$?; cat outcome; return $rc; }
import() { echo "import-image ${1-$archive} with=$image ${3-}" | timeout 180 env PATH="${2-$PATH}" /opt/apply-tool >outcome 2>&1; rc=$?; cat outcome; return $rc; }
soci() { import "${1-$archive}" "$PATH" "snapshotter=${snapshotter-native} words=--local,--discard-unpacked-layers=false ${2-}"; }
ends() { local want=$1; shift; "$@"; grep -qE "^$want (import|pin)-image" outcome; }
fails() { local code=$1 text=$2; shift 2; "$@"; is "$rc" "$code" && grep -F -- "$text" outcome; }
warns() { ends unchanged "$@" && is "$rc" 0 && grep -F "no-sandbox-archive" outcome; }
ctr_images() { ctr --connect-timeout 120s --namespace k8s.io images "$@"; }
names() { ctr_images ls -q | grep -v ^sha256: | sort | xargs; }
pinned() { ctr_images ls "name==$1" | tee -a out/images | grep -E "^$1 .*io\.cri-containerd\.pinned=pinned"; }
forget() { local name; for name in $(ctr_images ls -q); do ctr_images rm --sync "$name" >/dev/null; done; }
archive() { python3 archive.py "$@"; }

check_import() {
        mkdir -p /etc/eks calls; systemctl start containerd
        # shellcheck disable=SC2016 # that script's
        printf '#!/bin/sh\necho "$4" >>calls/list; exec /usr/bin/ctr "$@"\n' >calls/ctr; chmod 755 calls/ctr
        try "an AMI without the archive, whose containerd has no such image, gets a warning" warns import
        try "nothing is pinned then" ends unchanged pin
        archive $archive $image
        # shellcheck disable=SC2016 # that script's
        mkdir -p failing; printf '#!/bin/sh\n[ -e once ] || [ "$4" != import ] || { : >once; exit 1; }; exec /usr/bin/ctr "$@"\n' >failing/ctr; chmod 755 failing/ctr
        try "an import that fails is a failure" fails 50 "$archive cannot be imported" import $archive /vmtest/failing:/usr/bin:/bin
        try "nothing was imported so far" is "$(names)" ""
        try "another run imports what is missing" ends "done" import $archive /vmtest/failing:/usr/bin:/bin
        try "containerd has it" is "$(names)" $image
        try "it is not pinned yet" no pinned $image
        try "is pinned" ends "done" pin
        try "as ctr says" pinned $image
        try "what is there is not imported again" ends unchanged import
        try "and what is pinned not pinned again" ends unchanged pin
        forget; rm -f calls/list
        try "a blank store gets it, too" ends "done" import $archive /vmtest/calls:/usr/bin:/bin
        try "by one call" is "$(cat calls/list)" import
        try "the next run asks" ends unchanged import $archive /vmtest/calls:/usr/bin:/bin
        try "once" is "$(xargs <calls/list)" "import ls"
        printf '#!/bin/sh\n[ "$4" != label ] && exec /usr/bin/ctr "$@"\n' >failing/ctr
        try "a pin that fails" fails 50 "the image $image cannot be pinned, so kubelet may remove it" pin "" /vmtest/failing:/usr/bin:/bin
        try "without an archive nothing is missed then" sh -c "mv $archive kept.tar"
        try "and nobody warned" ends unchanged import
        try "not even of it" no grep -F no-sandbox-archive outcome
        mv /run/containerd/containerd.sock /run/other.sock
        try "a containerd that listens elsewhere does not answer" warns import
        try "and is asked there" ends unchanged import $archive "$PATH" socket=/run/other.sock
        try "also to pin it" ends "done" pin socket=/run/other.sock
        mv /run/other.sock /run/containerd/containerd.sock
        forget
        archive bare.tar "${image%:*}"
        try "an archive of the name without a tag" ends "done" import /vmtest/bare.tar
        try "gives the name with it" ctr_images check name==$image
        forget; ctr_images import bare.tar >/dev/null
        try "an image that is there without a tag" is "$(names)" "${image%:*}"
        try "is given it, whether there is an archive or not" ends "done" import
        try "once" ends unchanged import
        forget
        archive other.tar localhost/other:1
        try "an archive with another image is a failure that says so" fails 50 "lacks the image $image" import /vmtest/other.tar
        head -c 700 kept.tar >torn.tar
        try "so is one that is cut off" fails 50 "/vmtest/torn.tar cannot be imported" import /vmtest/torn.tar
        try "one that is something else" fails 50 "/etc/os-release cannot be imported" import /etc/os-release
        try "and one that is a directory" fails 50 "/etc/eks cannot be imported" import /etc/eks
        try "an image without ctr" fails 50 "ctr is missing; the image needs containerd" import /vmtest/kept.tar /nowhere
        try "without the archive, too, is only warned of" warns import $archive /nowhere
        mv kept.tar $archive
        mkdir -p hanging; printf '#!/bin/sh\nexec sleep 1000\n' >hanging/ctr; chmod 755 hanging/ctr
        try "a ctr that hangs" fails 51 "ctr --namespace k8s.io images ls " import $archive /vmtest/hanging:/usr/bin:/bin deadline=2s
}

check_import_for_soci() {
        try "what the default snapshotter has" sh -c "ctr --namespace k8s.io images import $archive >/dev/null; ctr --namespace k8s.io images check name==$image | grep -E 'complete.* true'"
        try "SOCI does not have" sh -c "ctr --namespace k8s.io images check --snapshotter native name==$image | grep -E 'complete.* false'"
        try "without the archive that is a warning" warns soci /nowhere.tar
        try "with it, it is imported" ends "done" soci
        try "SOCI has it" sh -c "ctr --namespace k8s.io images check --snapshotter native name==$image | grep -E 'complete.* true'"
        try "under that name" sh -c "ctr --namespace k8s.io images ls -q | grep -x $image"
        try "what is there is not imported again" ends unchanged soci
        forget
        snapshotter=soci
        try "a SOCI that is not there fails the step" fails 50 "$archive cannot be imported for the snapshotter soci" soci
        systemctl stop containerd
        try "so does a containerd that does not run" fails 50 "containerd cannot tell if it has the image $image: ctr exited with status 1" import
}
