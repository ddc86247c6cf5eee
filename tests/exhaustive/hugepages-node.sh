#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -d 0 -n 2 -m 6G -t 900
# imds: imds-m5
# spec: {instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 100, numaNode: 0}, {size: 2Mi, count: 50, numaNode: 1}]}}}
# kernel: init_on_alloc=0
# tree: enabled counting_kubelet containerd_version
# console: NODESTRAP verdict=ok
# Huge pages of a NodeConfig, from power-on on a machine with two NUMA nodes of 3 GiB. kubelet counts them once, so it starts when they are
# there. If the kernel cannot give them all, the configuration decides.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

spec() { printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {instance: {hugePages: {mode: explicit, onShortfall: %s, pages: [{size: 2Mi, count: %s, numaNode: 1}]}}}\n' "$1" "$2" >/etc/eks/nodeadm.d/50-spec.yaml; }
# shellcheck disable=SC2046 # sources are words
again() { nodestrap init --skip config $(sources) 2>out/again; }
status() { python3 -c 'import json, sys; print(*(json.load(open("/run/nodestrap/status.json"))[k] for k in sys.argv[1:]))' "$@"; }
found() { python3 -c 'import json, sys; f = next(a["found"] for a in json.load(open("/run/nodestrap/status.json"))["runs"]["devices,run"]["actions"] if a["id"] == sys.argv[1]); print(f["requested"], "short" if f["got"] < f["requested"] else "all")' "reserve-pages:2Mi on node $1"; }

try "the run phase succeeds" exited nodestrap-run 0
try "kubelet found the pages of both nodes when it started" is "$(cat /run/pages-at-kubelet)" "100 50"
try "status.json has the requested and the reserved pages" is "$(found 0), $(found 1)" "100 all, 50 all"
kubelet=$(property kubelet MainPID)
try "a second run succeeds" again
try "the second run says that there is nothing to change" grep -q 'ok: nothing to change' out/again
try "the second run leaves kubelet alone" is "$(property kubelet MainPID)" "$kubelet"

systemctl stop kubelet
# At most what the node has in all, since a plan refuses more, and more than the kernel has left.
most=$(awk '/MemTotal/ { print int($4 / 2048) - 1 }' /sys/devices/system/node/node1/meminfo)
spec fail "$most"
try "init fails if the NUMA node lacks the requested huge pages" no again
try "status.json has the code EHUGEPAGES, the exit status 31 and the step" is "$(status verdict code exit step)" "failed EHUGEPAGES 31 reserve-pages:2Mi on node 1"
try "the message has size, node and the requested number" grep -E '^(<[0-9]>)?nodestrap: failed \(31 EHUGEPAGES\) at reserve-pages:2Mi on node 1: .*'"$most" out/again
try "kubelet stays down after the failure" no active kubelet
try "status.json has the requested pages, and fewer reserved ones" is "$(found 1)" "$most short"

spec warn "$most"
try "init succeeds with onShortfall: warn" again
try "status.json has the verdict ok with onShortfall: warn" is "$(status verdict code)" "ok OK"
try "the output names the step that got too few huge pages" grep -q 'reserve-pages:2Mi on node 1' out/again
try "kubelet runs with onShortfall: warn" active kubelet

finish
