#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -d 0 -n 2 -m 7G -t 900
# kernel: init_on_alloc=0 nokaslr
# tree: apply_tool
# reserve-pages on a kernel with two NUMA nodes of 3.5 GiB each. It must read back the pages, report those that do not fit, and keep the order.
# Memory that is not cleared when it is moved (init_on_alloc) spares this emulated machine minutes. A page of 1 GiB takes one of the few
# ranges of a node that begin at a multiple of 1 GiB. The kernel keeps the start of a node for unmovable memory and the end for struct page.
# Without nokaslr its own image is anywhere. Node 1 (4.5 to 8 GiB) has two ranges that nothing of that is in.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

applies() {     # EXIT PATTERN... <plan
        local want=$1 p rc miss=0 out; shift
        out=$(/opt/apply-tool 2>&1); rc=$?; printf '%s\n' "$out"
        [ $rc = "$want" ] || { miss=1; echo "exit $rc instead of $want"; }
        for p; do grep -qE -- "$p" <<<"$out" || { miss=1; echo "missing: $p"; }; done
        return $miss
}
N=/sys/devices/system/node/node A=/sys/kernel/mm/hugepages
# pages SIZE_KB: on node 0, on node 1, in all
pages() { echo "$(cat "${N}0/hugepages/hugepages-$1kB/nr_hugepages") $(cat "${N}1/hugepages/hugepages-$1kB/nr_hugepages") $(cat $A/hugepages-"$1"kB/nr_hugepages)"; }
more() { awk -v want="$1" -v have="$2" 'BEGIN { exit !(have > want) }'; }
on_node() { echo "reserve-pages $1 size=$1 count=$3 node=$2 deadline=180s $4"; }
off() { echo "reserve-pages 1Gi size=1Gi count=0"; echo "reserve-pages 2Mi size=2Mi count=0 after=reserve-pages:1Gi"; }

try "(two nodes, no pages)" is "$(echo "${N}"[0-9]) $(pages 2048) $(pages 1048576)" "${N}0 ${N}1 0 0 0 0 0 0"

# ---- explicit ----
try "100 pages of 2Mi are reserved on node 1" applies 0 "^done reserve-pages:2Mi" '^found reserve-pages:2Mi: \{"got": 100, "node": 1, "requested": 100, "size": 2097152\}' < <(on_node 2Mi 1 100)
try "the 100 pages are on node 1 only" is "$(pages 2048)" "0 100 100"
try "a second run on node 1 changes nothing" applies 0 "^unchanged reserve-pages:2Mi" < <(on_node 2Mi 1 100)
try "30 pages of 2Mi are reserved on node 0" applies 0 "^done reserve-pages:2Mi" < <(on_node 2Mi 0 30)
try "node 1 keeps its 100 pages" is "$(pages 2048)" "30 100 130"
try "without a node, 200 pages are reserved over all nodes" applies 0 '"got": 200, "node": null' < <(echo "reserve-pages 2Mi size=2Mi count=200 deadline=180s")
try "all 200 pages exist" is "$(pages 2048 | cut -d' ' -f3)" 200
try "with if-none=yes nodestrap keeps the 200 pages that exist" applies 0 "^unchanged reserve-pages:2Mi" '"got": 200.* "requested": 7,' < <(echo "reserve-pages 2Mi size=2Mi count=7 if-none=yes")
try "the 200 pages still exist after if-none=yes" is "$(pages 2048 | cut -d' ' -f3)" 200

# ---- off ----
try "a count of 0 releases the pages" applies 0 "^unchanged reserve-pages:1Gi" "^done reserve-pages:2Mi" < <(off)
try "no page is left after a count of 0" is "$(pages 2048) $(pages 1048576)" "0 0 0 0 0 0"
try "a second run with a count of 0 changes nothing" applies 0 "^unchanged reserve-pages:1Gi" "^unchanged reserve-pages:2Mi" < <(off)

# ---- pages in use ----
try "10 pages are reserved for a process that will use some" applies 0 "^done" < <(on_node 2Mi 0 10)
mkfifo held release
python3 - <<'P' &
import mmap
m = mmap.mmap(-1, 4 << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)   # MAP_HUGETLB
for i in range(4):
    m[i << 21] = 1
open('held', 'w').close()
open('release').read()
P
holder=$!; cat held
try "pages in use are a warning, not a failure" applies 0 "^done reserve-pages:2Mi" "^warning hugepages-in-use: 4 pages of 2Mi are no longer reserved, but still in use" < <(on_node 2Mi 0 0)
try "the kernel still counts the 4 pages in use" is "$(cat "${N}0/hugepages/hugepages-2048kB/nr_hugepages")" 4
try "a second run with pages in use changes nothing" applies 0 "^unchanged reserve-pages:2Mi" < <(on_node 2Mi 0 0)
echo >release; wait $holder
try "the 4 pages are gone after the process that used them" is "$(pages 2048)" "0 0 0"

# ---- order ----
both() { on_node 1Gi 1 1; on_node 2Mi 1 300 after=reserve-pages:1Gi; }
try "pages of 1Gi, and of 2Mi ordered after them, are reserved" applies 0 "^done reserve-pages:1Gi" "^done reserve-pages:2Mi" < <(both)
try "the page of 1Gi and the 300 pages of 2Mi exist" is "$(pages 1048576) $(pages 2048)" "0 1 1 0 300 300"
try "a second run with both sizes changes nothing" applies 0 "^unchanged reserve-pages:1Gi" "^unchanged reserve-pages:2Mi" < <(both)
off | /opt/apply-tool >/dev/null 2>&1

# ---- what does not fit ----
taskset -c 0 dd if=/dev/zero of=cached bs=1M count=500 status=none    # page cache of that node, some of it not on the disk yet
have=$(awk '/MemFree/ { print int(($4 / 1024 + 150) / 2) }' "${N}0/meminfo")      # 150 MiB of it come from that cache, or from nowhere
try "pages are reserved in place of cached files" applies 0 "^done reserve-pages:2Mi" < <(on_node 2Mi 0 "$have")
try "all requested pages exist in place of cached files" is "$(pages 2048)" "$have 0 $have"
off | /opt/apply-tool >/dev/null 2>&1
rm cached
try "more pages than a node has are an error" applies 31 \
        "^failed reserve-pages:2Mi: NUMA node 0 has [0-9]+ of 8192 huge pages of 2Mi after [2-8] tries with memory compacted between them; [0-9]+ of its [0-9]+ MiB are free" \
        "hugepagesz=2M hugepages=0:8192 to the kernel command line of the image" '"requested": 8192' < <(on_node 2Mi 0 8192)
got=$(pages 2048 | cut -d' ' -f1)
try "more than 1000 pages stay reserved after the error" more 1000 "$got"
try "after the error only node 0 has pages" is "$(pages 2048)" "$got 0 $got"
off | /opt/apply-tool >/dev/null 2>&1
try "with lenient=yes too few pages are a warning" applies 0 "^(done|unchanged) reserve-pages:1Gi" "^warning hugepages-short: NUMA node 1 has [0-3] of 4 huge pages of 1Gi" \
        '"requested": 4' < <(on_node 1Gi 1 4 lenient=yes)
try "without a node, the message says how many pages each node has" applies 31 "^failed reserve-pages:1Gi: this machine has [0-6] of 8 huge pages of 1Gi \(node0: [0-3], node1: [0-3]\) after [2-8] tries" \
        "add hugepagesz=1G hugepages=8 to the" < <(echo "reserve-pages 1Gi size=1Gi count=8 deadline=180s")
off | /opt/apply-tool >/dev/null 2>&1
try "a page size that the kernel lacks is an error that lists its sizes" applies 31 "^failed reserve-pages:16Mi: this kernel has no huge pages of 16Mi; it has 1Gi, 2Mi" < <(on_node 16Mi 0 1)
try "a NUMA node that does not exist is an error that lists the nodes" applies 31 "^failed reserve-pages:2Mi: NUMA node 2 does not exist on this machine; spec.instance.hugePages can use 0, 1" < <(on_node 2Mi 2 1)
try "no page is left at the end" is "$(pages 2048) $(pages 1048576)" "0 0 0 0 0 0"
finish
