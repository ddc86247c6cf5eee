#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 600
# kube: 1.37.0
# tree: enabled joined_enabled kube
# spec: {cluster: {expectDevices: true}, instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 64}]}}}
# console: NODESTRAP verdict=ok code=OK step=join
# A machine that expects its devices (cluster.expectDevices), with a real kubelet: nodestrap-joined waits until pods can get all that init
# counted. The devices are huge pages, which kubelet offers by itself; tests/cluster/plugins.sh has GPUs.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/ready.sh
. /vmtest/ready.sh

condition() { host kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='NodestrapReady')]$1}{\"\\n\"}"; }
has() { is "$(condition .status) $(condition .reason)" "$1"; }
allocatable() { is "$(host kubectl get node $NODE -o 'jsonpath={.status.allocatable.hugepages-2Mi}{"\n"}')" "$1"; }
lacks() { nodestrap wait --timeout 20s 2>out/wait; is $? 60 && grep -E "$1" out/wait || { cat out/wait; return 1; }; }
metric() { grep -E "^nodestrap_devices\{.*resource=\"hugepages-2Mi\".*\} " /run/nodestrap/joined.prom | sort; }
try "the Node is Ready" node_ready
try "kubelet offers the huge pages" within 60 allocatable 128Mi
try "nodestrap-joined succeeds" joins
try "the Node says NodestrapReady" within 60 has "True NodestrapDone"
try "metrics have both numbers" is "$(metric | sed 's/.*kind="\([a-z]*\)".* /\1 /' | xargs)" "allocatable 134217728 expected 134217728"

# Another program takes pages back, and kubelet offers what it finds at its next start.
echo 32 >/proc/sys/vm/nr_hugepages; systemctl restart kubelet
try "kubelet offers fewer huge pages" within 120 allocatable 64Mi
try "a wait says so, with both numbers" lacks 'failed \(60 EDEVICES\) at join: .* is Ready, but pods can get 64 ?Mi?B? of 128'
tail -1 out/wait | sed 's/^/# /'
try "the Node says that, too" within 60 has "False EDEVICES"
try "kubelet continues" is "$(property kubelet ActiveState)" active
# shellcheck disable=SC2046 # sources are words
try "the pages come back" nodestrap init --skip config $(sources)
systemctl restart kubelet
try "kubelet offers all of them again" within 120 allocatable 128Mi
try "a wait is well" nodestrap wait --timeout 1m
try "the Node says NodestrapReady again" within 60 has "True NodestrapDone"
finish
