#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# cluster: front no-controllers
# A failure on a node becomes an Event of its cluster, posted with the rights of the node, before and after its Node exists. nodestrap
# counts it over phases and boots, and sends it in the end, however the API server was away. It is never a reason to fail.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
spool=root/run/nodestrap/events
mkdir root && "$tests/fixtures/expand.sh" m5-large root && cp root/proc/meminfo meminfo
printf '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {}}\n' >root/more.json

# A machine that does not say how much memory it has stops every phase.
ill() { rm -f root/proc/meminfo; echo nonsense >root/proc/meminfo; }
well() { rm -f root/proc/meminfo; cp meminfo root/proc/; }
init() { nodestrap init --root root -c imds://user-data -c file:///more.json "$@"; }
fails() { ! init "$@" 2>said || { cat said; return 1; }; }
config_fails() { fails --skip devices --skip run; }
devices_fail() { fails --skip config --skip run; }
run_fails() { fails --skip config; }
reboot() { rm -r root/run; mkdir -p root/{run,proc/sys/kernel/random}; cat /proc/sys/kernel/random/uuid >root/proc/sys/kernel/random/boot_id; }
send() { timeout 100 "$NODESTRAP" send-events --root root 2>sent; }
waiting() { find $spool -type f 2>/dev/null | wc -l; }
# event REASON PATH: of its only Event
event() { kubectl get events -n default --field-selector "reason=$1" -o "jsonpath={.items[*]$2}"; }
has() { is "$(event "$1" "$2")" "$3"; }
count() { has NodestrapFailed .count "$1"; }
told() { kubectl get events -n default --field-selector "reason=$1" --no-headers | wc -l; }

# ---- before there is a kubeconfig, or a Node ----
ill; try "the configuration phase fails" config_fails
try "there is not a kubeconfig yet" no test -e root/var/lib/kubelet/kubeconfig
try "one notice waits" is "$(waiting)" 1
try "only root may read the notice" is "$(stat -c %a $spool $spool/* | xargs)" "700 600"
try "send-events sends the failure" send
try "the first attempt succeeds" is "$(sed 's/, Event .*//' sent)" "nodestrap: Sent to cluster training: NodestrapFailed"
try "no failure waits any longer" is "$(waiting)" 0
try "the Event is about the Node, as the Events of kubelet are" has NodestrapFailed .involvedObject "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"$NODE\",\"uid\":\"$NODE\"}"
try "the Event is of type Warning" has NodestrapFailed .type Warning
try "the source of the Event is nodestrap" has NodestrapFailed .source "{\"component\":\"nodestrap\",\"host\":\"$NODE\"}"
message() { event NodestrapFailed .message; }
says() { grep -qE -- "$1" <<<"$(message)" || { message; return 1; }; }
try "the Event has code, step, cause and consequence" says '^EFACTS at detect: .*/proc/meminfo.*; kubelet was not started \(on the node, run nodestrap status\)$'
try "kubectl get events shows it" grep -E "Warning +NodestrapFailed +node/$NODE +EFACTS at detect" <(kubectl get events)
try "the node may not read Events" grep -q 'cannot get resource "events"' <(as_node get event "$(event NodestrapFailed .metadata.name)" 2>&1)
try "send-events succeeds with nothing to send" send
try "send-events then prints nothing" no test -s sent

# ---- phases of one boot ----
well; try "the configuration phase ends well" init --skip devices --skip run
try "a good config phase alone sends no recovery" is "$(waiting)" 0
ill; try "the devices phase fails with the same" devices_fail
try "send-events sends it" send
try "the same failure raises the count to 2" count 2
try "the Event announces another attempt" says '; the run phase tries this again before it starts kubelet \('
try "the run phase fails in the same way" run_fails
try "send-events sends it" send
try "the same failure raises the count to 3" count 3
try "the Event says that kubelet was not started" says '; kubelet was not started \('
well; try "init succeeds after a repair" init --skip config
try "send-events sends the recovery" send
try "the cluster has one recovery" is "$(told NodestrapRecovered)" 1
try "the recovery is of type Normal" has NodestrapRecovered .type Normal
try "the recovery names what it resolves" has NodestrapRecovered .message "EFACTS at detect is resolved: nodestrap has done every step"
try "another run succeeds" init --skip config
try "another good run sends nothing" is "$(waiting)" 0

# ---- a Node, and other boots ----
try "the Node registers" register
described() { kubectl describe node $NODE >described; grep -E "$1" described || { cat described; return 1; }; }
try "kubectl describe node shows the failure" described 'Warning +NodestrapFailed +.* \(x3 over .*\) +nodestrap .*EFACTS at detect: '
try "kubectl describe shows the recovery" described 'Normal +NodestrapRecovered '
first=$(event NodestrapFailed .firstTimestamp)
reboot; ill; try "the next boot fails, too" run_fails
try "send-events sends it" send
try "the same failure raises the count to 4" count 4
try "the Event keeps its first time" has NodestrapFailed .firstTimestamp "$first"
kubectl delete events -n default --all >/dev/null
reboot; try "a boot fails after the API server forgot the Event" run_fails
try "send-events sends it" send
try "the same failure raises the count to 5" count 5
try "the Event keeps its first time" has NodestrapFailed .firstTimestamp "$first"
rm root/var/lib/nodestrap/events.json
try "a run fails after the node forgot the Event" run_fails
try "send-events sends it" send
try "the cluster still has one Event" is "$(told NodestrapFailed)" 1
echo '{"x": 7, "y": [' >root/var/lib/nodestrap/events.json
try "a run fails with a damaged memory of Events" run_fails
try "send-events sends it" send
try "the memory of send-events begins again at 1" python3 -c 'import json; [e] = json.load(open("root/var/lib/nodestrap/events.json")).values(); assert e["count"] == 1, e'

# ---- kubelet does not come ----
kubectl delete nodes --all >/dev/null; well; init --skip config 2>said; send
as_unit() { bash -c 'export SYSTEMD_EXEC_PID=$$; exec "$NODESTRAP" "$@"' bash "$@"; }
try "a wait that was typed" no nodestrap wait --root root --timeout 300ms
try "leaves nothing to tell" is "$(waiting)" 0
try "one of a unit does" no as_unit wait --root root --timeout 30s
try "send-events sends it" send
try "the Event has the reason" grep -E "^ENOTREGISTERED at join: cluster training has no Node $NODE: kubelet has not registered it" <(event NodestrapNotJoined .message)

# ---- the API server is away ----
ill
# away NAME WORD BREAK MEND: the journal names it (WORD); once it is mended, the Event is there
away() {
        local before; before=$(event NodestrapFailed .count); : >sent
        $3 >/dev/null; run_fails; send & local pid=$! end=$((SECONDS + 60)) rc
        until grep -q "Event NodestrapFailed has not been sent yet ($2)" sent 2>/dev/null; do
                kill -0 $pid 2>/dev/null && [ $SECONDS -lt $end ] || { $4; wait $pid; try "$1: the message has $2" cat sent /dev/null/none; return; }
                sleep 0.05
        done
        try "$1: the message has $2" true
        $4 >/dev/null; wait $pid; rc=$?
        try "$1: send-events succeeds" is $rc 0
        try "$1: the Event comes after the fault" count $((before + 1))
}
away "down" EAPIROUTE "stop front" front_start
away "cut off" EAPIERROR "front_says close" "front_says pass"
# Two attempts to make it and one to count it are three requests: none is a success without an answer.
away "there, not there, and cut off" EAPIERROR "front_says status=409/404/cut" "front_says pass"
away "there and not there" EAPIERROR "front_says status=409/404/409/404" "front_says pass"
try "the message says that the Event exists and then does not" grep -qE 'https://.* says that Event nodestrap-[0-9a-f]+ exists, and then that it does not$' sent
away "503" EAPIERROR "front_says status=503" "front_says pass"
try "503: the message has the text of the answer" grep -q 'answers HTTP 503 (the front says no): the API server is overloaded' sent
away "429" EAPIERROR "front_says status=429,retry-after=1" "front_says pass"
# The first notice's proxy is none of the second one's.
own_way() {
        local pid; timeout 100 "$NODESTRAP" send-events --root root 2>sent & pid=$!
        until [ "$(waiting)" -lt 2 ]; do kill -0 $pid || return; sleep 0.05; done
        kill $pid; wait $pid
        grep -q 'Event NodestrapFailed has not been sent yet' sent && grep -q 'Sent to cluster training: NodestrapFailed' sent && rm $spool/*
}
HTTPS_PROXY=http://127.0.0.1:9 run_fails; run_fails
try "a notice without a proxy goes without one, also behind one whose proxy is away" own_way
# Of many that wait one is tried, and when another one comes: the server that has no time for one has none for the others.
answers() { grep -cE '^[0-9]+ (POST|PATCH)$' "$CLUSTER/log/front"; }
rounds() {
        local before pid; before=$(answers); : >sent
        run_fails; config_fails; devices_fail; timeout 100 "$NODESTRAP" send-events --root root 2>sent & pid=$!
        until grep -q 'Event NodestrapFailed has not been sent yet (EAPIERROR)' sent; do kill -0 $pid || return; sleep 0.05; done
        run_fails
        until [ "$(answers)" -ge $((before + 2)) ]; do kill -0 $pid || return; sleep 0.05; done
        kill $pid; wait $pid
        is "$(waiting) $(answers)" "4 $((before + 2))"
}
front_says status=503,retry-after=300
try "four wait for a server that has no time: one request, and one more for the last" rounds
front_says pass
before=$(event NodestrapFailed .count)
try "then they are sent" send
try "all of them" count $((before + 4))
# The API server remembers its verdict on a token, and two tokens of the same second are one.
unmap() { authenticator_stop; authenticator_start unmapped; while as_node auth whoami; do :; done >/dev/null 2>&1; }
map() { authenticator_stop; authenticator_start mapped; }
away "role not mapped" ENOTMAPPED unmap map
try "role not mapped: the message has the command" grep -q 'aws eks create-access-entry --cluster-name training' sent
away "etcd full" EAPIERROR etcd_fill etcd_empty
try "etcd full: so is etcd's own word" grep -q 'answers HTTP 500 (etcdserver: mvcc: database space exceeded)' sent
# A webhook without an answer, as one whose pods wait for this very node
webhook() {
        cat <<-END | kubectl apply -f - >/dev/null
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingWebhookConfiguration
	metadata: {name: slow}
	webhooks:
	  - name: slow.example.com
	    admissionReviewVersions: [v1]
	    sideEffects: None
	    failurePolicy: Fail
	    timeoutSeconds: $1
	    clientConfig: {url: "https://127.0.0.1:7443/", caBundle: "$(base64 -w0 "$CLUSTER/pki/ca.crt")"}
	    rules: [{apiGroups: [""], apiVersions: [v1], resources: [events], operations: [CREATE, UPDATE]}]
	END
}
hanging_webhook() { spawn silent socat TCP-LISTEN:7443,bind=127.0.0.1,fork,reuseaddr EXEC:'sleep 60'; webhook 1; }
no_webhook() { stop silent; kubectl delete validatingwebhookconfiguration slow >/dev/null; }
away "a slow webhook" EAPIERROR hanging_webhook no_webhook
try "a slow webhook: it is named" grep -q 'slow.example.com' sent

# ---- what will never be taken ----
deny() {
        cat <<-'END' | kubectl apply -f - >/dev/null
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: no-events}
	spec:
	  failurePolicy: Fail
	  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [events], operations: [CREATE, UPDATE]}]}
	  validations: [{expression: "object.reason != 'NodestrapFailed'", message: "not here"}]
	---
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicyBinding
	metadata: {name: no-events}
	spec: {policyName: no-events, validationActions: [Deny]}
	END
        until_denied grep -q 'not here'
}
until_denied() {                        # COMMAND: with what kubectl says of such an Event
        local end=$((SECONDS + 60))
        until kubectl patch event "$(event NodestrapFailed .metadata.name)" --type=merge -p "{\"message\": \"$RANDOM\"}" 2>&1 | "$@"; do [ $SECONDS -lt $end ] || return; sleep 0.1; done
}
try "a policy of the cluster takes no such Events" deny
try "a run fails again" run_fails
try "a failure of the cluster is not a failure of send-events" send
try "send-events gives up" is "$(waiting)" 0
try "send-events prints one line" is "$(wc -l <sent)" 1
try "the line has the reason" grep -E 'Event NodestrapFailed was not sent \(EAPIERROR\): .*HTTP 422 .*not here' sent
kubectl delete validatingadmissionpolicybinding no-events >/dev/null
try "the policy goes" until_denied grep -v 'not here'

# ---- what else may lie there ----
try "a failure" run_fails
mkdir $spool/1; echo '{"reason": "Cut", ' >$spool/2; : >$spool/3; echo '[]' >$spool/4; head -c 2000000 /dev/zero >$spool/5; echo '{"reason": 7, "time": []}' >$spool/no-number
ln -s /dev/zero $spool/6; mkfifo $spool/7; : >$spool/.half-written.tmp
for n in {10..40}; do printf '{"reason": "NodestrapFailed", "warning": true, "message": "number %s", "key": "key-%s", "time": "2026-01-02T03:04:05Z"}' "$n" "$n" >"$spool/000000000000000000$n.1"; done
try "send-events sends many failures beside rubbish" send
try "send-events sends all of them" is "$(($(told NodestrapFailed)))" 32
try "send-events names the rubbish" is "$(grep -c 'is not a notice for the cluster' sent)" 8
try "send-events leaves only the file that is being written" is "$(ls -A $spool)" .half-written.tmp
try "the memory of send-events does not grow" python3 -c 'import json; assert len(json.load(open("root/var/lib/nodestrap/events.json"))) == 32'
echo '{"reason": "NodestrapFailed", "time": "2026-01-02T03:04:05Z", "message": "m", "key": "k", "given": true, "access": {"server": "http://10.0.2.100:6443", "args": ["--cluster-name", "training"], "node": "n"}}' >$spool/00000000000000000001.1
try "send-events succeeds beside an API server without TLS" send
try "an API server without TLS gets no token" grep -qE 'Event NodestrapFailed was not sent \(ENOKUBECONFIG\): .*http' sent
for n in {1..20}; do run_fails; done
try "without a sender at most 16 failures wait" is "$(waiting)" 16


finish
