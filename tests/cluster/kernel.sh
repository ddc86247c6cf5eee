#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.33.13/kubelet
# cluster: down no-controllers
# The real kubelet ends where there is swap, and where the kernel has other settings than protectKernelDefaults wants; the program says so before.
# Both read the same /proc, with files over it. kubelet runs below root, beside a containerd of its own.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
wants containerd

VERSION=$("$KUBE/kubelet" --version | sed 's/.* v//') titles=$(head -n 1 /proc/swaps)
mkdir -p root/{tmp,usr/bin,proc,sys,dev,run/containerd,var/lib/kubelet} kernel/{vm,kernel/keys}
cp "$KUBE/kubelet" root/usr/bin/
for place in proc sys dev; do mount --rbind /$place root/$place; done; mount -t tmpfs kubelet root/var/lib/kubelet
printf '%s\n' "$titles" >kernel/swaps; mount --bind kernel/swaps root/proc/swaps; mount --bind kernel/swaps /proc/swaps
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        echo "${setting#*=}" >"kernel/${setting%=*}"
        for proc in root/proc /proc; do mount --bind "kernel/${setting%=*}" "$proc/sys/${setting%=*}"; done
done
printf 'version = 2\nroot = "%s/ctd/root"\nstate = "%s/ctd/state"\n[grpc]\n  address = "%s/root/run/containerd/containerd.sock"\n' "$PWD" "$PWD" "$PWD" >containerd.toml
containerd -c containerd.toml >containerd.log 2>&1 & containerd=$!

within() { local n; for ((n = $1 * 5; n > 0; n--)); do "${@:2}" && return; sleep 0.2; done; echo "not within $1 s"; return 1; }
facts=(--kubelet-version "$VERSION" --containerd-version 1.7)
plans() {       # SETTINGS: planned for this machine, its files below root
        { sed '/^  kubelet:/,$d' "$tests/cases/max-pods-set/userdata"; printf '  kubelet: {config: {maxPods: 5%s}}\n' "$1"; } >userdata
        "$NODESTRAP" plan -c file://userdata "${facts[@]}" --output json --write-to planned >plan.json && cp -a planned/. root/ && cp "$CLUSTER/pki/ca.crt" root/etc/kubernetes/pki/ca.crt
}
warns() { plans "$1" && grep -E -- "$2" plan.json; }
is_silent() { plans "$1" && no grep -E 'kubelet does not start' plan.json; }
# Until its last word: without /etc/passwd it ends once it has made all its managers, and before it starts one of them.
over() { grep -q '"command failed"\|"Failed to start ContainerManager"' log || ! kill -0 $kubelet 2>/dev/null; }
runs() {
        local arguments kubelet; read -ra arguments < <(sed -n 's/^NODEADM_KUBELET_ARGS=//p' root/etc/eks/kubelet/environment)
        : >log          # the one that is in the background may empty it after the first look
        chroot root /usr/bin/kubelet "${arguments[@]}" --fail-cgroupv1=false >log 2>&1 </dev/null & kubelet=$!
        within 60 over; kill $kubelet 2>/dev/null; wait $kubelet; return 0
}
ends_with() {   # PATTERN
        runs; grep -E -- "$1" log || { grep '^[EF]' log | tail -3 | cut -c1-600; return 1; }
}
# It listens some time before it answers.
answers() { runs; ! grep -q 'validate service connection' log; }
further='"command failed" err="failed to run Kubelet: failed to create kubelet: create user namespace manager: .*/etc/passwd'
try "without swap a plan says nothing" is_silent ''
try "a containerd answers for kubelet" within 60 answers
try "kubelet continues after the warning" ends_with "$further"
echo '/dev/zram0 partition 1048572 0 100' >>kernel/swaps
try "with swap a plan says that kubelet does not start" warns '' '"kubelet does not start with swap \(/dev/zram0, in /proc/swaps\)'
try "kubelet exits with swap on" ends_with '"command failed" err="failed to run Kubelet: running with swap on is not supported'
try "with failSwapOn: false a plan says nothing" is_silent ', failSwapOn: false'
try "kubelet continues with failSwapOn: false" ends_with "$further"
printf '%s\n' "$titles" >kernel/swaps

echo 0 >kernel/kernel/panic
try "with another setting a plan says that kubelet does not start" warns '' '"kubelet does not start: protectKernelDefaults requires other kernel settings \(kernel\.panic is 0 and not 10\)'
echo root:x:0:0:root:/root:/bin/sh >root/etc/passwd; cp root/etc/passwd root/etc/group
try "kubelet exits at another value of kernel.panic" ends_with '"Failed to start ContainerManager" err="invalid kernel flag: kernel/panic, expected value: 10, actual value: 0"'
rm root/etc/passwd
try "with protectKernelDefaults: false a plan says nothing" is_silent ', protectKernelDefaults: false'
try "kubelet continues without protectKernelDefaults" ends_with "$further"

kill $containerd; wait $containerd 2>/dev/null
finish
