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
        try "import-image warns if the AMI has no archive and containerd has no image" warns import
        try "pin-image changes nothing if containerd has no image" ends unchanged pin
        archive $archive $image
        # shellcheck disable=SC2016 # that script's
        mkdir -p failing; printf '#!/bin/sh\n[ -e once ] || [ "$4" != import ] || { : >once; exit 1; }; exec /usr/bin/ctr "$@"\n' >failing/ctr; chmod 755 failing/ctr
        try "import-image fails if the import fails" fails 50 "$archive cannot be imported" import $archive /vmtest/failing:/usr/bin:/bin
        try "a failed import leaves no image" is "$(names)" ""
        try "another run imports the missing image" ends "done" import $archive /vmtest/failing:/usr/bin:/bin
        try "containerd has the imported image" is "$(names)" $image
        try "the imported image is not pinned yet" no pinned $image
        try "pin-image pins the image" ends "done" pin
        try "ctr shows the pinned image" pinned $image
        try "import-image does not import an image that is there" ends unchanged import
        try "pin-image does not pin a pinned image again" ends unchanged pin
        forget; rm -f calls/list
        try "import-image imports the image into a blank store" ends "done" import $archive /vmtest/calls:/usr/bin:/bin
        try "import-image into a blank store runs ctr once" is "$(cat calls/list)" import
        try "import-image changes nothing in the next run" ends unchanged import $archive /vmtest/calls:/usr/bin:/bin
        try "import-image in the next run calls ctr once more, for the list" is "$(xargs <calls/list)" "import ls"
        printf '#!/bin/sh\n[ "$4" != label ] && exec /usr/bin/ctr "$@"\n' >failing/ctr
        try "pin-image fails if the image cannot be pinned" fails 50 "the image $image cannot be pinned, so kubelet may remove it" pin "" /vmtest/failing:/usr/bin:/bin
        try "the archive is moved away" sh -c "mv $archive kept.tar"
        try "import-image without an archive succeeds if the image is there" ends unchanged import
        try "import-image without an archive does not warn if the image is there" no grep -F no-sandbox-archive outcome
        mv /run/containerd/containerd.sock /run/other.sock
        try "import-image warns if containerd listens on another socket" warns import
        try "import-image with that socket finds the image" ends unchanged import $archive "$PATH" socket=/run/other.sock
        try "pin-image with that socket pins the image" ends "done" pin socket=/run/other.sock
        mv /run/other.sock /run/containerd/containerd.sock
        forget
        archive bare.tar "${image%:*}"
        try "import-image imports an archive whose name has no tag" ends "done" import /vmtest/bare.tar
        try "the image of an archive without a tag gets the name with the tag" ctr_images check name==$image
        forget; ctr_images import bare.tar >/dev/null
        try "an image without a tag is in the store" is "$(names)" "${image%:*}"
        try "import-image gives that image the name with the tag, without an archive" ends "done" import
        try "import-image gives the name with the tag only once" ends unchanged import
        forget
        archive other.tar localhost/other:1
        try "import-image fails if the archive lacks the image" fails 50 "lacks the image $image" import /vmtest/other.tar
        head -c 700 kept.tar >torn.tar
        try "import-image fails if the archive is cut off" fails 50 "/vmtest/torn.tar cannot be imported" import /vmtest/torn.tar
        try "import-image fails if the archive is another kind of file" fails 50 "/etc/os-release cannot be imported" import /etc/os-release
        try "import-image fails if the archive is a directory" fails 50 "/etc/eks cannot be imported" import /etc/eks
        try "import-image fails if ctr is missing" fails 50 "ctr is missing; the image needs containerd" import /vmtest/kept.tar /nowhere
        try "import-image without archive and ctr only warns" warns import $archive /nowhere
        mv kept.tar $archive
        mkdir -p hanging; printf '#!/bin/sh\nexec sleep 1000\n' >hanging/ctr; chmod 755 hanging/ctr
        try "import-image fails if ctr hangs" fails 51 "ctr --namespace k8s.io images ls " import $archive /vmtest/hanging:/usr/bin:/bin deadline=2s
}

check_import_for_soci() {
        try "the default snapshotter has the image" sh -c "ctr --namespace k8s.io images import $archive >/dev/null; ctr --namespace k8s.io images check name==$image | grep -E 'complete.* true'"
        try "the snapshotter in place of SOCI does not have the image" sh -c "ctr --namespace k8s.io images check --snapshotter native name==$image | grep -E 'complete.* false'"
        try "import-image for SOCI warns without an archive" warns soci /nowhere.tar
        try "import-image for SOCI imports the archive" ends "done" soci
        try "the snapshotter in place of SOCI has the image after the import" sh -c "ctr --namespace k8s.io images check --snapshotter native name==$image | grep -E 'complete.* true'"
        try "the image for SOCI has the configured name" sh -c "ctr --namespace k8s.io images ls -q | grep -x $image"
        try "import-image for SOCI does not import an image that is there" ends unchanged soci
        forget
        snapshotter=soci
        try "import-image fails if SOCI is not there" fails 50 "$archive cannot be imported for the snapshotter soci" soci
        systemctl stop containerd
        try "import-image fails if containerd does not run" fails 50 "containerd cannot tell if it has the image $image: ctr exited with status 1" import
}
