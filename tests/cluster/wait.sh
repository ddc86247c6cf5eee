#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: down front no-controllers
# `nodestrap wait` beside a real API server: what it says while a node does not join, and that it goes on until it does. tests/check/wait.sh
# has answers that no API server gives (broken TLS, half an answer), proxies and names.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"

declare -A waits
# begin DIR [OPTION…]: a wait on that machine, which is made if it is not there
begin() {
        [ -d "$1/etc" ] || machine "$1"; : >"$1/err"
        ( ${clock:+faketime -f "$clock"} "$NODESTRAP" wait --root "$1" "${@:2}" >"$1/out" 2>"$1/err"; echo $? >"$1/rc" ) & waits[$1]=$!
}
end() { local d; for d; do wait "${waits[$d]}"; unset "waits[$d]"; done; }
told() { tail -n +2 "$1/err" | grep -qF -- "$2" || { cat "$1/err"; return 1; }; }       # behind what it is about to do
ended_with() { is "$(cat "$1/rc")" "$2" || { cat "$1/err"; return 1; }; }
says() { tail -n 1 "$1/err" | grep -F -- "$2" || { tail -n 1 "$1/err"; return 1; }; }   # its last line does
fails() { ended_with "$1" 60 && says "$1" "nodestrap: failed (60 $2) at join: $3"; }
# until_told DIR TEXT: while the wait runs, a minute at most
until_told() {
        local i; for ((i = 0; i < 600; i++)); do
                told "$1" "$2" >/dev/null && return
                kill -0 "${waits[$1]}" 2>/dev/null || break
                sleep 0.1
        done; told "$1" "$2"
}
# The server's time is without its fraction, and a second may begin between its answer and the look at the clock.
an_hour() { tail -n 1 "$1/err" | grep -E "ours is (3599|360[01]) s $1; check chronyc tracking"; }
# Tokens of one second are one, and what the API server has heard of it it remembers.
next_second() { local now=$EPOCHSECONDS; while [ "$EPOCHSECONDS" = "$now" ]; do sleep 0.02; done; }
# learns DIR CODE: a wait there, which is ended once it knows that; named DIR CODE TEXT: so it said
learns() { begin "$1" --timeout 2m; until_told "$1" "Not yet ($2): " >/dev/null; pkill -TERM -P "${waits[$1]}"; end "$1"; next_second; }
named() { told "$1" "Not yet ($2): $3" && says "$1" "; SIGTERM ended the wait after "; }
restart_authenticator() { authenticator_stop; authenticator_start "$@"; }
restart_aws() { aws_stop; aws_start "$@"; next_second; }

# Certificates of an older day, as in every cluster.
p=$CLUSTER/pki
old_pki() {
        faketime -f -20d openssl req -x509 -key "$p/ca.key" -out "$p/ca.crt" -subj /CN=kubernetes -days 3650 -addext keyUsage=critical,keyCertSign,cRLSign &&
                faketime -f -10d openssl x509 -req -in "$p/api.csr" -CA "$p/ca.crt" -CAkey "$p/ca.key" -days 3650 -out "$p/api.crt" \
                        -extfile <(printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=IP:127.0.0.1,IP:10.0.2.100')
}
wants faketime
try "certificates that are some days old" old_pki; stop front; front_start

# ---- an API server that is not there, and comes ----
begin late --timeout 2m
try "an API server that is down: the load balancer cuts off" until_told late "Not yet (EAPIERROR): the connection to $API broke ("
try "the API server starts" api_start
try "wait notices the API server and says that the Node is missing" until_told late "Not yet (ENOTREGISTERED): cluster training has no Node $NODE: kubelet has not registered it"
try "the node registers" register
end late
try "wait succeeds" ended_with late 0
try "the message has the times of the Node" says late "nodestrap: ok: Node $NODE of cluster training is ready: registered "
kubectl delete node $NODE >/dev/null

# ---- the role is mapped ----
begin absent --timeout 40s
machine name; sed -i 's/=ip-10-0-2-15/=ip-10-0-2-99/' name/etc/eks/kubelet/environment; begin name --timeout 40s
machine cluster; sed -i 's/training/another/' cluster/var/lib/kubelet/kubeconfig; begin cluster --timeout 40s
machine ca other; begin ca --timeout 40s
clock=-1h begin behind --timeout 40s
clock=+1h begin ahead --timeout 40s
clock=-15d begin far-behind --timeout 40s
end absent name cluster ca behind ahead far-behind
try "a missing Node is ENOTREGISTERED" fails absent ENOTREGISTERED "cluster training has no Node $NODE: kubelet has not registered it"
try "one request is enough for a missing Node" says absent '(1 request in '
try "the name of another Node is EFORBIDDEN" fails name EFORBIDDEN "the API server knows the role of this node, but does not let it see Node ip-10-0-2-99.us-west-2.compute.internal: 403 Forbidden (nodes \"ip-10-0-2-99"
try "the message has the name that the API server expects" says name "; the cluster knows this node as $NODE: kubelet must register with that name, the private DNS name of this instance in EC2 (--hostname-override, in /etc/eks/kubelet/environment)"
try "a token for another cluster is a 401 like any" fails cluster ENOTMAPPED "the API server does not know the IAM role of this node (401 Unauthorized). Cluster another probably lacks an access entry"
try "the message also names a wrong name of the cluster" says cluster "the token may be for another cluster: another must be the name (spec.cluster.name) of the cluster at $API"
try "the CA of another cluster" fails ca EAPICERT "10.0.2.100 presents a certificate that the cluster CA in /etc/kubernetes/pki/ca.crt has not signed ("
try "a clock that is an hour behind" eval 'fails behind ECLOCK "the API server refuses the token of this node (401): the clock of this machine says 20" && an_hour behind'
try "a clock that is an hour ahead is ECLOCK" eval 'fails ahead ECLOCK "the API server refuses the token of this node (401): the clock of this machine says 20" && an_hour ahead'
try "so far behind that the certificate is not valid yet" eval 'fails far-behind ECLOCK "the certificate of 10.0.2.100 is not valid yet by the clock of this machine" && says far-behind "ours is 15 days behind"'

# ---- or not, or to another one ----
restart_authenticator unmapped; learns unmapped ENOTMAPPED
try "a role without a mapping has its cause" named unmapped ENOTMAPPED "the API server does not know the IAM role of this node (401 Unauthorized). Cluster training probably lacks an access entry or aws-auth line for arn:aws:iam::$ACCOUNT:role/$ROLE"
try "the message has the command for an access entry" says unmapped "aws eks create-access-entry --cluster-name training --region $REGION --type EC2_LINUX --principal-arn arn:aws:iam::$ACCOUNT:role/$ROLE). "
authenticator_stop; learns nobody ENOTMAPPED
try "the message allows for an authenticator without STS" eval 'named nobody ENOTMAPPED "" && says nobody "Or its authenticator cannot reach STS: its log in CloudWatch (authenticator) has the reason"'
authenticator_start mapped 'system:node:{{EC2PrivateDNSName}}' viewers; learns group EFORBIDDEN
try "the name of a node without its group is EFORBIDDEN" eval 'named group EFORBIDDEN "" && says group "the role must be mapped to user system:node:$NODE (it already is) and group system:nodes, as an access entry of type EC2_LINUX does"'
restart_authenticator mapped somebody system:nodes; learns user EFORBIDDEN
try "the group without the name of a node is EFORBIDDEN" eval 'named user EFORBIDDEN "" && says user "(nodes \"$NODE\" is forbidden: User \"somebody\" cannot watch resource \"nodes\"" && says user "the role must be mapped to user system:node:$NODE and group system:nodes"'
restart_authenticator

# ---- a webhook that is slow ----
try "the node registers once more" register
# STS, which the authenticator asks, says nothing as long as that file is there.
hold=$PWD/hold; sts_holds() { grep ' sts .* held$' "$CLUSTER/log/aws.requests"; }
: >"$hold"; restart_aws --fault "sts:hold=$hold"; begin slow --timeout 2m; comes aws sts_holds; rm "$hold"; end slow
try "wait succeeds with a slow authenticator" ended_with slow 0
try "wait says nothing wrong meanwhile" no told slow "Not yet"
next_second; : >"$hold"; begin slower --timeout 2m
try "so slow that no answer is waited for" until_told slower "Not yet (EAPISILENT): $API accepts a connection but does not answer within 10.0 s: the API server is overloaded, or is waiting for etcd or the authenticator. Or the network drops large packets"
rm "$hold"; end slower
try "wait asks again and succeeds" ended_with slower 0
restart_aws

# ---- errors of its own ----
front_says status=503; learns 503 EAPIERROR
front_says status=429,retry-after=60; begin 429 --timeout 20s; until_told 429 "Not yet"; front_says pass; end 429
try "503" named 503 EAPIERROR "$API answers HTTP 503 (the front says no): the API server is overloaded or unhealthy; check the cluster health in the EKS console"
try "429" fails 429 EAPIERROR "$API answers HTTP 429 (the front says no): the API server is overloaded or unhealthy"
try "wait asks again when the API server allows it" says 429 "(1 request in "

# ---- etcd ----
kubectl delete node $NODE >/dev/null
etcd_fill >/dev/null
full() { no register 2>&1 | grep -F "etcdserver: mvcc: database space exceeded"; }
try "an etcd that is full: no Node can be made" full
begin full --timeout 2m
try "wait then only knows that the Node does not exist" until_told full "Not yet (ENOTREGISTERED): cluster training has no Node $NODE"
etcd_empty >/dev/null
try "the API server has room for the Node again" register
end full
try "wait succeeds without another request" eval 'ended_with full 0 && says full "(this check: 1 request, "'
etcd_stop; begin lost --timeout 2m
try "an etcd that is away is a silence, and not a Node that is not there" eval 'until_told lost "Not yet (EAPISILENT): $API accepts a connection but does not answer" && no told lost ENOTREGISTERED'
etcd_start; end lost
try "when it is back, the wait ends well" ended_with lost 0

# ---- the Node ----
kubectl delete node $NODE >/dev/null
node() { printf '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}, "spec": {"providerID": "aws:///us-west-2a/i-0earlier"}}' $NODE | kubectl create -f -; }
boot() { kubectl patch node $NODE --subresource=status -p "{\"status\": {\"nodeInfo\": {\"bootID\": \"$1\"}, \"conditions\": [{\"type\": \"Ready\", \"status\": \"$2\", \"reason\": \"$3\", \"message\": \"$4\"}]}}"; }
# what kubelet sends: kubectl would read the status first, which no node may
reports() {
        local token; token=$(nodestrap token --cluster-name training --region $REGION | python3 -c 'import json, sys; print(json.load(sys.stdin)["status"]["token"])') &&
                curl -sSf --noproxy '*' --cacert "$p/ca.crt" -H "Authorization: Bearer $token" -H 'Content-Type: application/strategic-merge-patch+json' -X PATCH "$API/api/v1/nodes/$NODE/status" \
                        -d "{\"status\": {\"nodeInfo\": {\"bootID\": \"$(cat /proc/sys/kernel/random/boot_id)\"}, \"conditions\": [{\"type\": \"Ready\", \"status\": \"$1\", \"reason\": \"$2\", \"message\": \"$3\"}]}}"
}
try "an earlier instance had the name, and was Ready" eval 'node && boot another-boot True KubeletReady well'
begin node --timeout 2m
try "its Node is not this one" until_told node "Not yet (ENOTREGISTERED): Node $NODE of cluster training is from an earlier boot, or from another instance with this name (aws:///us-west-2a/i-0earlier): kubelet has not reported since this machine started"
try "kubelet of this boot takes it over" reports False KubeletNotReady "container runtime network not ready: NetworkReady=false"
try "wait says that the Node is registered" until_told node "Node $NODE is registered, "
try "wait says what the Node lacks" until_told node "Not yet (ENOTREADY): Node $NODE is registered with cluster training, but not Ready: KubeletNotReady: container runtime network not ready: NetworkReady=false"
try "an admin deletes the Node" kubectl delete node $NODE
try "wait says that kubelet does not register it again" until_told node "Not yet (ENOTREGISTERED): Node $NODE of cluster training was registered and then deleted: kubelet registers a Node only at startup; run systemctl restart kubelet"
try "the Node is created again" register
end node
try "wait succeeds when the Node is Ready" ended_with node 0
secrets='k8s-aws-v1|secret|session'
try "control: what is secret would be found" grep -rqE "$secrets" "$CLUSTER/imds"
try "no wait has said it" is "$(grep -rlE "$secrets" ./*/err ./*/out ./*/run 2>&1)" ''

finish
