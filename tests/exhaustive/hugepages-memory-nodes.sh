#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -d 0 -c 2 -n 3 -m 6G -t 900
# kernel: init_on_alloc=0
# tree: apply_tool
# reserve-pages beside a NUMA node with memory and no CPU, as for the GPU memory of a GB200. The number for all nodes takes pages from it;
# nodestrap does not.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

applies() { local out; out=$(/opt/apply-tool 2>&1); printf '%s\n' "$out"; grep -qE -- "$1" <<<"$out"; }
N=/sys/devices/system/node/node
pages() { cat "$N"{0,1,2}/hugepages/hugepages-2048kB/nr_hugepages | xargs; }
all() { echo "reserve-pages 2Mi size=2Mi count=$1 deadline=180s"; }

try "(the machine has three NUMA nodes, one without a CPU)" is "$(cat "$N"{0,1,2}/cpulist | xargs), $(pages)" "0 1, 0 0 0"
echo 300 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
try "(the kernel takes huge pages from all three nodes)" is "$(pages)" "100 100 100"
try "reserve-pages moves huge pages off the node without CPUs" applies '^done reserve-pages:2Mi' < <(all 300)
try "the other two nodes have 150 huge pages each, and the node without CPUs has none" is "$(pages)" "150 150 0"
try "reserve-pages changes nothing the second time" applies '^unchanged reserve-pages:2Mi' < <(all 300)
taskset -c 1 dd if=/dev/zero of=/dev/shm/filling bs=1M count=900 status=none
try "one node gives the huge pages that the other lacks" applies '^done reserve-pages:2Mi' < <(all 1100)
read -r first second _ <<<"$(pages)"
try "both nodes have 1100 huge pages, the first over 50 more than the second" is "$((first + second)) $((first > second + 50))" "1100 1"
try "the node without CPUs still has no huge pages" is "$(cat "${N}2/hugepages/hugepages-2048kB/nr_hugepages")" 0
try "reserve-pages fails if the two nodes with CPUs lack the pages" applies '^failed reserve-pages:2Mi: this machine has [0-9]+ of 2500 huge pages of 2Mi \(node0: [0-9]+, node1: [0-9]+\) after' < <(all 2500)
try "the node without CPUs has no huge pages after the failure" is "$(cat "${N}2/hugepages/hugepages-2048kB/nr_hugepages")" 0
try "reserve-pages with a count of 0 succeeds" applies '^done reserve-pages:2Mi' < <(all 0)
try "no node has huge pages after a count of 0" is "$(pages)" "0 0 0"
finish
