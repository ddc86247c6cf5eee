# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # tests is control-plane.sh's
# Sourced by tests/cluster/state-*.sh behind host.sh: the real kubelet and the state files of an earlier boot, before and after init. Both
# run below root: init with a machine of tests/fixtures, kubelet with the kernel of this machine and a containerd that the test starts.
# Others source it for a kubelet that goes on: machine_starts, init, kubelet_begins. cni/ has the network of their pods, containerd.more more
# tables for the configuration of containerd.
VERSION=$("$KUBE/kubelet" --version | sed 's/.* v//') STATES=root/var/lib/kubelet
NONE='{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'

within() { local end=$((SECONDS + $1)); shift; until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done; }
machine_starts() {
        local setting
        mkdir -p root/run/containerd root/usr/bin root/tmp && "$tests/fixtures/expand.sh" m5-large root && cp "$KUBE/kubelet" root/usr/bin/ && mkdir -p root/{sys,proc,dev}
        echo root:x:0:0::/root:/bin/sh >root/etc/passwd; echo "Kubernetes v$VERSION" >root/etc/eks/kubelet-version.txt; cp /sys/devices/system/cpu/online root/sys/devices/system/cpu/online
        # kubelet compares these settings of the kernel, and ends or changes them (protectKernelDefaults).
        for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
                mkdir -p "kernel/${setting%/*}"; echo "${setting#*=}" >"kernel/${setting%=*}"
        done
        printf 'version = 2\nroot = "%s/containerd"\nstate = "%s/containerd.run"\n[grpc]\n  address = "%s/root/run/containerd/containerd.sock"\n[plugins."io.containerd.grpc.v1.cri".cni]\n  conf_dir = "%s/cni"\n' \
                "$PWD" "$PWD" "$PWD" "$PWD" >containerd.toml
        [ ! -e containerd.more ] || cat containerd.more >>containerd.toml
        containerd -c containerd.toml >containerd.log 2>&1 &
        within 60 test -S root/run/containerd/containerd.sock || { tail -5 containerd.log; return 1; }
}
init() {        # SETTINGS: a run phase of the same boot
        { user_data; printf '  kubelet: {config: {%s}}\n' "$1"; } >root/node.yaml
        nodestrap init -c file:///node.yaml --root "$PWD/root" >init.log 2>&1 || { cat init.log; return 1; }
}
boots() { rm -rf root/run/nodestrap root/run/nodeadm root/run/eks; init "$1"; }
# kubelet_begins [FLAG…]: in the background as $pid, with the planned arguments, and others for the cgroups of this machine
# shellcheck disable=SC2016,SC2120 # for that shell, and for scripts that have some
kubelet_begins() {
        local arguments; rm -f log; read -ra arguments < <(sed -n 's/^NODEADM_KUBELET_ARGS=//p' root/etc/eks/kubelet/environment)
        unshare --mount bash -c 'mount --rbind root root || exit; for d in sys proc dev; do mount --rbind /$d root/$d || exit; done
                (cd kernel && find . -type f) | while read -r f; do mount --bind "kernel/$f" "root/proc/sys/$f" || exit; done; exec chroot root /usr/bin/kubelet "$@"' kubelet "${arguments[@]}" --v=2 --fail-cgroupv1=false \
                --fail-swap-on=false --cgroup-driver=cgroupfs --cgroups-per-qos=false --enforce-node-allocatable= --kube-reserved-cgroup= --system-reserved-cgroup= "$@" >log 2>&1 </dev/null &
        pid=$!
}
kubelet() {             # it starts its managers, or ends
        local pid r; kubelet_begins
        began_or_ended() { grep -q 'Starting Kubelet Plugin Manager' log 2>/dev/null || ! kill -0 $pid 2>/dev/null; }
        within 120 began_or_ended; grep -q 'Starting Kubelet Plugin Manager' log; r=$?
        kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
        return $r
}
starts() { kubelet || { grep -E '^[EF]|^Error' log | tail -4 | cut -c1-600; tail -2 log | cut -c1-600; return 1; }; }
ends() { no kubelet && grep -E -- "$1" log; }
gone() { is "$(grep -c "removed /var/lib/kubelet/$1 of an earlier boot: $2" init.log)" 1 && no test -e "$STATES/$1"; }
stayed() { no grep 'of an earlier boot' init.log && cmp "$STATES/$1" "$1"; }
leaves() { cp "$STATES/$1" "$1"; }
put() { rm -f "$STATES/$1"; printf %s "$2" >"$STATES/$1"; }
# kubelet ends at the file with these words; init removes it, and kubelet starts.
mended() { # NAME WORDS STATE WHY SETTINGS
        try "$1: kubelet ends at it" ends "$2" || tail -3 log | cut -c1-300 | sed 's/^/# /'
        try "$1: a boot takes it away" boots "$5"
        try "$1: the journal has the reason" gone "$3" "$4"
        try "$1: kubelet starts" starts
}
# The control is init itself, in the boot in which kubelet may have run: nothing goes.
check_states() { # [dra]: this kubelet reads the state of DRA
        local pinned='cpuManagerPolicy: static' memory='memoryManagerPolicy: Static, kubeReserved: {memory: %s}, evictionHard: {memory.available: 100Mi}, reservedMemory: [{numaNode: 0, limits: {memory: %s}}]' few many
        # shellcheck disable=SC2059
        few=$(printf "$memory" 500Mi 600Mi) many=$(printf "$memory" 600Mi 700Mi)
        try "the machine starts" machine_starts || return
        try "the first boot succeeds" boots ''
        try "kubelet starts" starts
        try "its state is known" is "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["policyName"])' $STATES/cpu_manager_state)" none
        leaves cpu_manager_state; leaves memory_manager_state
        try "a reboot succeeds" boots ''
        try "the reboot keeps the state of CPUs" stayed cpu_manager_state
        try "the state of the memory manager stays" stayed memory_manager_state

        try "an init with another policy succeeds in the same boot" init "$pinned"
        try "an init in the same boot keeps the state" stayed cpu_manager_state
        mended "policy none" 'configured policy .?"static.?" differs from state checkpoint policy .?"none' cpu_manager_state "it has a different policy" "$pinned"
        leaves cpu_manager_state
        try "a reboot with pinned CPUs" boots "$pinned"
        try "the reboot keeps the state that kubelet takes" stayed cpu_manager_state
        try "kubelet starts" starts
        put cpu_manager_state "${NONE/1353318690/1}"
        mended "a wrong checksum" 'checkpoint is corrupted' cpu_manager_state "it has a different policy" "$pinned"
        put cpu_manager_state ''
        mended "an empty file" 'unexpected end of JSON input' cpu_manager_state "kubelet cannot read it" "$pinned"
        init '' && mended "policy static" 'configured policy .?"none.?" differs from state checkpoint policy .?"static' cpu_manager_state "it has a different policy" ''
        put cpu_manager_state "${NONE/1353318690/1}"
        mended "a wrong checksum of none" 'checkpoint is corrupted' cpu_manager_state "its checksum is wrong" ''

        init "$few" && mended "memory without a policy" 'configured policy .?"Static.?" differs from state checkpoint policy .?"None' memory_manager_state "it has a different policy" "$few"
        init "$many" && mended "memory with other reserves" 'the expected machine state is different from the real one' memory_manager_state "memory sizes change at each boot" "$many"
        [ "${1-}" = dra ] || return 0
        leaves dra_manager_state
        try "a reboot with more reserved memory succeeds" boots "$many"
        try "the reboot keeps the state of DRA" cmp dra_manager_state $STATES/dra_manager_state
        put dra_manager_state '{"version":"v1","entries":[],"checksum":3}'
        mended "DRA as before 1.31" 'checkpoint is corrupted' dra_manager_state "its checksum is wrong" "$many"
        put dra_manager_state '{"Data":"","Checksum":0}'
        mended "DRA without data" 'unexpected end of JSON input' dra_manager_state "kubelet cannot read it" "$many"
}
