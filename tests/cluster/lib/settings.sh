# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # tests is control-plane.sh's
# Sourced by tests/cluster/settings-*.sh behind host.sh: the real kubelet reads what is planned for it, and its log is read for what it
# has against that. It runs below root, where no containerd is: by then it has checked all of its settings, and ends.
VERSION=$("$KUBE/kubelet" --version | sed 's/.* v//') COMPLAINTS='unknown field|lenient decoding|has been deprecated|(GA|deprecated) feature gate|unrecognized'
CONFIG=root/etc/kubernetes/kubelet/config.json

planned() {     # CASE: what tests/cases/CASE is planned as for this kubelet, below root
        mkdir -p root/{tmp,usr/bin}; rm -rf root/etc root/var
        [ -e root/usr/bin/kubelet ] || cp "$KUBE/kubelet" root/usr/bin/ || return
        # shellcheck disable=SC2046 # options are words
        (cd "$tests/cases/$1" && "$NODESTRAP" plan -c file://userdata $(cat options) --kubelet-version "$VERSION" --write-to "$OLDPWD/planned") &&
                cp -a planned/. root/ &&
                cp "$CLUSTER/pki/ca.crt" root/etc/kubernetes/pki/ca.crt
}
# Newer kubelets refuse cgroup v1, which this machine may have; that does not count here.
reads() {       # kubelet with the planned arguments; it gets as far as containerd
        local arguments; read -ra arguments < <(sed -n 's/^NODEADM_KUBELET_ARGS=//p' root/etc/eks/kubelet/environment)
        timeout 60 chroot root /usr/bin/kubelet "${arguments[@]}" --fail-cgroupv1=false >log 2>&1 </dev/null
        grep -q 'err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API' log || { tail -3 log | cut -c1-1000; return 1; }
}
complaints() { grep -E "$COMPLAINTS" log | grep -v ' FLAG: '; }
complains() { local said; said=$(complaints); grep -E -- "$1" <<<"$said" || { echo "no line with $1"; echo "$said"; return 1; }; }
setting() { sed -i "s|^{|{ $1,|" $CONFIG; }
gate() { sed -i "s|\"featureGates\": {|&\"$1\": true,|" $CONFIG; }
refused() { ! reads >/dev/null && grep -E -- "$1" log; }

check_settings() { # GATE: one that is generally available in this version
        local c
        for c in cluster-ipv6 max-pods-set max-pods-expression node-name-instance-id accelerator-trn2 gpu-p5-4xlarge soci-large-machine storage-volumes kubelet-1.37; do
                try "$c can be planned for $VERSION" planned $c || continue
                try "$c: kubelet accepts every setting and argument" reads
                try "$c: and complains of none" no complaints
        done
        try "its arguments are the planned ones" grep -q 'FLAG: --runtime-cgroups="/runtime.slice/containerd.service"' log

        try "control: a case with deprecated flags of the user" planned flag-and-setting-for-the-same
        try "control: is accepted" reads
        try "control: they are complained of" complains 'Flag --registry-qps has been deprecated'
        try "control: and nothing else" is "$(complaints | sed 's/ has been.*//' | sort -u | xargs)" "Flag --max-pods Flag --registry-qps"
        try "control: an ordinary case again" planned max-pods-set
        gate "$1"
        try "control: a gate that is generally available is accepted" reads
        try "control: and complained of" complains "$1"
        planned max-pods-set >/dev/null; setting '"imageGcHighThresholdPercent": 85'
        try "control: an unknown field is accepted" reads
        try "control: and complained of" complains 'unknown field.*imageGcHighThresholdPercent'
        planned max-pods-set >/dev/null; gate NoSuchGate
        try "control: with an unknown gate it does not start" refused 'unrecognized feature gate: NoSuchGate'
}

# The verdict of the program beside that of kubelet, which here has a real containerd.
compared() {
        python3 "$tests/oracles/kubelet.py" --nodestrap "$NODESTRAP" --kubelet "$KUBE/kubelet" --containerd "$CONTAINERD" --group "$@" >said 2>&1
        local r=$?; cat said; return $r
}
check_compared() {      # NAME OPTION…: of tests/oracles/kubelet.py; a success, too, shows the strict verdicts
        try "$1" compared "${@:2}" && sed 's/^/# /' said
}
check_reported() { check_compared "plan and kubelet agree on what people reported, and on each limit" -n 0 --also "$tests/oracles/kubelet-cases.jsonl"; }
check_random() { check_compared "plan and kubelet agree on $2 random settings of seed $1" --seed "$1" -n "$2"; }    # SEED COUNT

# With as many NUMA nodes as a GB200 has when the driver has brought the GPUs' memory online.
on_nodes() {    # COUNT
        local arguments; read -ra arguments < <(sed -n 's/^NODEADM_KUBELET_ARGS=//p' root/etc/eks/kubelet/environment)
        "$tests/cluster/lib/numa.sh" "$1" "${arguments[@]}"
}
ends_on() { ! on_nodes "$1" >/dev/null && grep -E -- "$2" log; }
check_nodes() {
        [ -x "$(command -v containerd)" ] || [ "${NODESTRAP_TEST_REQUIRE:-0}" != 0 ] || { count=$((count + 1)); echo "ok $count - NUMA nodes # SKIP no containerd here"; return; }
        try "a tray whose kernel gets the GPUs' memory can be planned for $VERSION" planned gpu-p6e-gb200-numa || return
        try "its plan foretells what kubelet does with 34 NUMA nodes" told_of_nodes 34
        try "kubelet exits on 34 NUMA nodes" ends_on 34 'unsupported on machines with more than 8 NUMA Nodes'
        try "kubelet exits on 9 NUMA nodes" ends_on 9 'unsupported on machines with more than 8 NUMA Nodes'
        try "kubelet starts on 8 NUMA nodes" on_nodes 8
        setting '"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "34"}'
        try "kubelet starts on 34 NUMA nodes with the option of the plan" on_nodes 34
        planned gpu-p6e-gb200-numa >/dev/null; sed -i 's/best-effort/none/' $CONFIG root/etc/kubernetes/kubelet/config.json.d/*
        try "a node without a policy accepts it" on_nodes 34
}
told_of_nodes() { "$NODESTRAP" plan -c "file://$tests/cases/gpu-p6e-gb200-numa/userdata" --instance-type p6e-gb200.36xlarge --kubelet-version "$VERSION" | tr -s ' \n' ' ' | grep -F "{max-allowable-numa-nodes: \"$1\"}"; }
check_gates() { try "kubelet knows, and has locked, the feature gates of the table" python3 "$tests/oracles/gates.py" "$KUBE/kubelet" "$tests/../conf/feature-gates.csv"; }
