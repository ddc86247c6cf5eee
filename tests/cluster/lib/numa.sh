#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: numa.sh COUNT ARGUMENT…    by settings.sh, where root/ has a kubelet and what is planned for it
# The real kubelet runs with these arguments beside a containerd, and finds COUNT NUMA nodes. The first one has all CPUs and all memory, the
# others have none, as on a GB200. It counts what lies in /sys/devices/system/node, and in this namespace of mounts that is made here.
# Exit 0: it has made its managers of CPUs, memory and devices; 1: it has ended. Its log is in log.
[ $$ = 1 ] || exec unshare --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
set -u; count=$1; shift
reaches() {     # WORDS FILE COMMAND…: until it prints WORDS, or nothing for a minute, or ends
        local words=$1 file=$2 line from; shift 2; : >"$file"
        exec {from}< <(exec "$@" 2>&1 </dev/null)
        while read -r -t 60 line <&"$from"; do
                printf '%s\n' "$line" >>"$file"
                [[ $line != *"$words"* ]] || { cat <&"$from" >>"$file" & return 0; }
        done
        tail -2 "$file" | cut -c1-1000; return 1
}
mkdir -p containerd root/{proc,sys,dev,run/containerd}; mount -t tmpfs nodes containerd; mkdir containerd/nodes
for ((i = 0; i < count; i++)); do
        node=containerd/nodes/node$i; mkdir $node
        echo "Node $i MemTotal: $((i ? 0 : 16000000)) kB" >$node/meminfo
        yes 10 | head -"$count" | xargs >$node/distance
done
for cpu in /sys/devices/system/cpu/cpu[0-9]*; do ln -s "../../cpu/${cpu##*/}" containerd/nodes/node0/; done
for i in proc sys dev; do mount --rbind /$i root/$i || exit; done
mount --bind containerd/nodes root/sys/devices/system/node || exit
printf 'version = 2\nroot = "%s/root"\nstate = "%s/state"\n[grpc]\naddress = "%s/root/run/containerd/containerd.sock"\n' "$PWD/containerd" "$PWD/containerd" "$PWD" >containerd/config.toml
reaches 'containerd successfully booted' containerd/log containerd --config containerd/config.toml &&
        reaches 'Attempting to sync node with API server' log chroot root /usr/bin/kubelet "$@" --fail-cgroupv1=false --fail-swap-on=false
