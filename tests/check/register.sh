#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-node against an API server of our own: its decision on each Node, and its message without an answer. tests/cluster shows the same
# with a real API server.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
tool=$HELPERS/register-tool node=ip-10-0-0-10.us-west-2.compute.internal instance=i-0123456789abcdef0 here_id=aws:///us-west-2a/i-0123456789abcdef0
pids=()
trap 'mock_stop; [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null; rm -r "$tmp"' EXIT
python3 "$here/kube.py" pki "$tmp/pki" || { echo "Bail out! no certificates"; exit 1; }
export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=notavaluethatanybodymaysee AWS_EC2_METADATA_DISABLED=true

# machine SERVER: what init leaves behind, in $d
machine() {
        mkdir -p "$d"/{var/lib/kubelet,etc/kubernetes/pki,etc/eks/kubelet,proc/sys/kernel/random,run/nodestrap}
        cp /proc/sys/kernel/random/boot_id "$d/proc/sys/kernel/random/"; cp "$tmp/pki/ca.crt" "$d/etc/kubernetes/pki/"
        echo "NODEADM_KUBELET_ARGS=--hostname-override=$node" >"$d/etc/eks/kubelet/environment"
        printf '{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": "https://%s", "certificate-authority": "/etc/kubernetes/pki/ca.crt"}}],
                "users": [{"name": "u", "user": {"exec": {"args": ["token", "--cluster-name", "training", "--region", "us-west-2"]}}}]}\n' "$1" >"$d/var/lib/kubelet/kubeconfig"
}
# kube OPTION...: an API server, and in $d a machine of its cluster
kube() {
        d=$tmp/${#pids[@]}; mkdir "$d"
        exec 8< <(exec python3 "$here/kube.py" serve "$tmp/pki" --key "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" --log "$d/log" "$@" 2>"$d/mock")
        pids+=($!)
        read -r _ kube <&8 || { echo "Bail out! the mock does not start"; exit 1; }
        exec 8<&-; machine "$kube"
}
look() { seconds=$1; shift; "$tool" "$d" "$instance" EFABRIC "$seconds" >"$d/out" 2>"$d/err"; echo $? >"$d/rc"; }
says() { grep -qE -- "$1" "$d/out" || { cat "$d/out"; return 1; }; }
ends() { [ "$(cat "$d/rc")" = "$1" ] || { cat "$d/out"; return 1; }; }
requests() { [ "$(wc -l <"$d/log")" = "$1" ] || { cat "$d/log"; return 1; }; }
# has [SPEC]: replaces the Node on the server
has() {
        local method=PATCH path=/$node; [ -s "$d/node" ] || { method=POST; path=; }
        printf '{"metadata": {"name": "%s"}, "spec": %s}' "$node" "$1" >"$d/node"
        as_node -X $method -H 'Content-Type: application/json' -d @"$d/node" "https://$kube/api/v1/nodes$path" >/dev/null; : >"$d/log"
}
as_node() { curl -sS --noproxy '*' --cacert "$tmp/pki/ca.crt" -H "Authorization: Bearer $("$nodestrap" token --cluster-name training --region us-west-2 | grep -o 'k8s-aws-v1[^"]*')" "$@"; }
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")

# ---- what is there ----
kube --node "$node"
look 30
ok 'kubelet may register if there is no Node' eval 'ends 0 && says "^ok" && says "\"exists\": false" && requests 1'
has "{\"providerID\": \"$here_id\"}"; look 30
ok 'kubelet stays down if its Node exists without the taint' eval 'ends 60 && requests 1 && says "^ENOTREGISTERED: Node $node of cluster training exists without the taint nodestrap/unhealthy, and a node cannot taint itself: kubelet stays down\. "'
ok 'the message has the commands that repair a Node without the taint' eval 'says "kubectl taint node $node nodestrap/unhealthy=EFABRIC:NoSchedule, or kubectl delete node $node. Then run nodestrap init"'
touch "$d/run/nodestrap/kubelet-may-start"; look 30
ok 'the message says that a kubelet of an earlier run keeps running' eval 'says "kubelet, started by an earlier run in this boot, keeps running"'
rm "$d/run/nodestrap/kubelet-may-start"
has '{"taints": [{"key": "nodestrap/unhealthy", "value": "EFABRIC", "effect": "PreferNoSchedule"}, {"key": "nodestrap/unhealthy2", "effect": "NoSchedule"}]}'; look 30
ok 'a taint with another effect or another key does not count' eval 'ends 60 && says "exists without the taint"'
has '{"taints": [{"key": "a", "effect": "NoExecute"}, {"key": "nodestrap/unhealthy", "value": "EFABRIC", "effect": "NoSchedule"}]}'; look 30
ok 'kubelet may join again if its Node has the taint' eval 'ends 0 && says "\"taint\": \"EFABRIC\"" && ! says ^warning >/dev/null'
has '{"taints": [{"key": "nodestrap/unhealthy", "value": "EDRIVER", "effect": "NoExecute"}]}'; look 30
ok 'kubelet may join with an earlier taint, and a warning names that taint' eval 'ends 0 && says "^warning node-taint-older: Node $node keeps its earlier nodestrap/unhealthy=EDRIVER"'
kube --node "$node"
has '{"providerID": "aws:///us-west-2a/i-0fedcba9876543210", "taints": [{"key": "nodestrap/unhealthy", "value": "EFABRIC", "effect": "NoSchedule"}]}'; look 6
ok 'kubelet stays down if the Node belongs to another instance, also with the taint' eval 'ends 60 && says "another instance \(aws:///us-west-2a/i-0fedcba9876543210, not $instance\).*: kubelet stays down\. .*kubectl delete node $node; then"'
ok 'check-node asks again for the Node of another instance' eval '[ "$(wc -l <"$d/log")" -gt 1 ]'
look 60 & waits=$!
tail -n +1 -f --pid=$waits "$d/log" | grep -qm 1 'GET.*200'     # it was seen once more
as_node -X DELETE "https://$kube/api/v1/nodes/$node" >/dev/null; wait $waits
ok 'kubelet may register when the Node of another instance is gone' eval 'ends 0 && says "\"exists\": false"'
kube --node "$node"
has '{"providerID": "kind://docker/training/x"}'; look 30
ok 'a providerID of another form does not mean another instance' eval 'ends 60 && says "exists without the taint"'

# ---- no answer, or not in time ----
unknown() { ends 60 && says "^$1: .*; a Node $node without the taint nodestrap/unhealthy may exist, and kubelet would use that Node: kubelet stays down; to check again, run nodestrap init or reboot"; }
kube --node "$node"; kill "${pids[-1]}"; wait "${pids[-1]}" 2>/dev/null; look 3
ok 'kubelet stays down if the server refuses the connection' eval 'unknown EAPIROUTE && says "refuses the connection"'
kube --node "$node" --fault 'status=503*2' --fault 'reset*1'; look 30
ok 'check-node retries until the server answers again' eval 'ends 0 && requests 4'
kube --node "$node" --unmapped; look 3
ok 'kubelet stays down if the role is not mapped' eval 'unknown ENOTMAPPED'
kube --node another; look 3
ok 'kubelet stays down if the role is mapped to another node' eval 'unknown EFORBIDDEN'
kube --node "$node" --fault garbage; look 3
ok 'kubelet stays down if the server is not an API server' eval 'unknown "E[A-Z]+"'
kube --node "$node" --fault status=404; look 3
ok 'a 404 that is not from the API server does not mean that there is no Node' eval 'unknown EAPIERROR'
kube --node "$node"; rm "$d/var/lib/kubelet/kubeconfig"; look 3
ok 'kubelet stays down without a kubeconfig, and check-node sends no request' eval 'ends 60 && says "^ENOKUBECONFIG: .*so the Node of this machine cannot be looked up: kubelet stays down" && ! [ -s "$d/log" ]'
ok 'output and messages have no secret' eval '! grep -r notavaluethat "$tmp"/*/out "$tmp"/*/err'
done_testing
