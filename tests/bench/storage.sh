#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/bench/storage.sh NODESTRAP BUILD [RUNS [DISKS…]]
# Instance stores, from "disks present" to "mounts active": AWS's own sequence of commands (storage/peer.sh) and nodestrap, in one
# virtual machine for each number of disks. Emulated, so only the ratio says something. Prints medians of RUNS (3), and keeps the results of
# the machine below BUILD/storage.N. A missed target is printed; it is not a failure.
set -u; here=$(dirname "$(realpath "$0")"); tests=${here%/*}
nodestrap=$(realpath "$1") build=$(realpath "$2") runs=${3:-3}; shift; shift; shift || :
[ $# -gt 0 ] || set -- 1 3 8 24
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
cp -a "$tests/boot/lib/tree" "$W/tree" && mkdir -p "$W/tree/vmtest" && cp "$here"/storage/peer.sh "$build/processes" "$W/tree/vmtest/" &&
        echo 2.1.5 >"$W/tree/etc/eks/containerd-version.txt" &&        # as in an AMI; without this file nodestrap calls containerd
        make -s -C "$tests/.." install DESTDIR="$W/tree" BINARY="$nodestrap" || exit 1

for n; do
        out=$build/storage.$n; rm -rf "$out"; mkdir -p "$out"
        "$tests/tools/vmboot.sh" -s -d "$n" -t 600 -i "$tests/fixtures/imds-m5" -p "$W/tree" -o "$out" "$here/storage/guest.sh" "$runs" >/dev/null 2>"$W/err"; rc=$?
        if [ $rc = 77 ]; then echo "storage: skipped, $(sed -n 's/.*skip: //p' "$W/err" | tail -1)"; exit 0; fi
        [ $rc = 0 ] || { echo "storage: $n disks: exit $rc" >&2; tail -20 "$W/err" >&2; exit 1; }
        sed "s/^/$n /" "$out/stdout" >>"$W/runs"
done
# DISKS WHO WHICH WALL PROCESSES ELSEWHERE STORAGE
sort -n -k1,1 -s "$W/runs" | awk '
        function median(list,   v, n, i, j, t) {
                n = split(list, v)
                for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
                return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        { k = $1 SUBSEP $2 SUBSEP $3; if (!($1 in seen)) { seen[$1]; order[++disks] = $1 }
          wall[k] = wall[k] " " $4; processes[k] = processes[k] " " $5; elsewhere[k] = elsewhere[k] " " $6; part[k] = part[k] " " $7 }
        function row(n, which,   p, o, theirs, ours) {
                p = n SUBSEP "peer" SUBSEP which; o = n SUBSEP "ours" SUBSEP which
                theirs = median(part[p]); ours = median(part[o])
                printf "%5d  %-5s %9.2f s %9.2f s %6.2f %9.2f s %8d + %-3d %7d + %-3d %s\n", n, which, theirs, ours, ours / theirs, median(wall[o]),
                        median(processes[p]), median(elsewhere[p]), median(processes[o]), median(elsewhere[o]), verdict(ours / theirs, median(processes[o]))
        }
        function verdict(ratio, started) { return ratio > 0.5 ? "OVER 0.5" : started > 4 ? "OVER 4 processes" : "ok" }
        END {
                printf "disks  run       AWS mounts  ours mounts  ratio  ours whole  processes AWS       ours\n"
                for (i = 1; i <= disks; i++) { row(order[i], "first"); row(order[i], "again") }
                print "       mounts: until the last mount is active; whole: with the start of containerd and kubelet; processes: started by it + programs that systemd and udev executed"
        }'
