#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: front no-controllers
# Each fault that tests of this folder make is real, as a node sees it, and goes again.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"

ask() { as_node get node $NODE; }
says() { local text=$1 said; shift; ! said=$("$@" 2>&1) && grep -F -- "$text" <<<"$said" || { echo "$said"; return 1; }; }
asked() {       # SECONDS: what curl ends with, body and code
        local token; token=$(nodestrap token --cluster-name training --region $REGION | sed -n 's/.*"token": "\(.*\)".*/\1/p'); [ -n "$token" ] || return 99
        curl -sS --noproxy '*' --max-time "$1" --cacert "$CLUSTER/pki/ca.crt" -D head -o body -w '%{http_code}' -H "Authorization: Bearer $token" "$API/api/v1/nodes/$NODE" >code
}
answers() { asked 120 && is "$(cat code)" "$1" || { cat body; return 1; }; }
# curl(1), EXIT CODES
silent() { asked 2; is $? 28; }
cut_off() { local rc; asked 120; rc=$?; [[ $rc =~ ^(35|52|56)$ ]] || { echo "curl ended with $rc"; return 1; }; }
sts_holds() { grep ' sts .* held$' "$CLUSTER/log/aws.requests"; }
event() { printf '{"kind": "Event", "apiVersion": "v1", "metadata": {"generateName": "of-test-"}, "involvedObject": {"kind": "Node", "name": "%s"}, "reason": "Test", "message": "%s", "type": "Warning"}' $NODE "$1" | as_node create -f -; }

try "a cluster that is well" register
try "takes what the node says" event one

front_says status=503
try "a front that answers 503" answers 503
front_says status=429,retry-after=3
try "429" answers 429
try "the answer has the time to wait" grep -i '^retry-after: 3' head
front_says hang
try "the front can be silent" silent
front_says "close"
try "or closes the connection" cut_off
front_says pass
try "the front lets requests through again" answers 200

etcd_fill >/dev/null
try "a full etcd refuses an Event" says 'etcdserver: mvcc: database space exceeded' event two
try "the API server still answers a read" ask
etcd_empty >/dev/null
try "the API server takes the Event when there is room" event two

stop etcd
try "without etcd the API server is not ready" no api_ready
etcd_start
try "with etcd the API server is ready" comes api ask

authenticator_stop; authenticator_start unmapped; api_stop; api_start   # which knows tokens for a while
try "a role without a mapping is unauthorized" says Unauthorized ask
try "the authenticator logs that the ARN is not mapped" grep -F 'ARN is not mapped' "$CLUSTER/log/authenticator"
authenticator_stop; authenticator_start
try "a role that is mapped again gets its answer" ask

hold=$PWD/hold; : >"$hold"; aws_stop; aws_start --fault "sts:hold=$hold"; api_stop; api_start
asked 120 & curl=$!
try "a webhook whose STS does not answer: it asks" comes aws sts_holds
try "an answer does not come meanwhile" kill -0 $curl
rm "$hold"; wait $curl
try "the slow request gets its answer in the end" is "$? $(cat code)" "0 200"
aws_stop; aws_start --fault sts:skew=3600; api_stop; api_start
try "a clock that is an hour behind STS's" says Unauthorized ask
try "the authenticator logs the error of STS" grep -F SignatureDoesNotMatch "$CLUSTER/log/authenticator"
aws_stop; aws_start

api_stop
try "an API server that is down" cut_off
api_start
try "the API server comes back" answers 200
# The write with which etcd passes its quota is refused and kept (etcd: server/etcdserver/apply, quotaApplierV3.Put), so "two" may be there twice.
try "the API server keeps its Events over the restart" is "$(kubectl get events -o jsonpath='{.items[*].message}' | xargs -n1 | sort -u | xargs)" "one two"
try "a CA of another cluster is a certificate problem" says 'SSL certificate problem' curl -sS --noproxy '*' --cacert "$CLUSTER/pki/other.crt" $API/readyz

finish
