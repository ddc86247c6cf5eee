#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 900
# kube: 1.37.0
# cluster: front
# tree: enabled joined_enabled kube
# drop-in: nodestrap-joined.service [Service]
# drop-in: nodestrap-joined.service ExecStart=
# drop-in: nodestrap-joined.service ExecStart=/usr/bin/nodestrap wait --for ready --timeout 40s
# beside: kubectl apply -f - <<'END'
# beside: {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-nodes"}, "spec": {"failurePolicy": "Fail",
# beside:  "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"]}]}, "validations": [{"expression": "false", "message": "no nodes here"}]}}
# beside: END
# beside: kubectl apply -f - <<'END'
# beside: {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-nodes"}, "spec": {"policyName": "no-nodes", "validationActions": ["Deny"]}}
# beside: END
# console: NODESTRAP verdict=failed code=ENOTREGISTERED step=join
# A cluster takes no Node of the boot: by its policy, then it answers 503 and 429, its etcd is full, its webhook is slow. Our units and a real
# kubelet say so and go on, and one kubelet registers in the end. Then the same troubles meet the condition and the Event.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/ready.sh
. /vmtest/ready.sh

pid() { property kubelet MainPID; }
event() { host kubectl get events -n default --field-selector "reason=$1" -o "jsonpath={.items[*]$2}{\"\\n\"}"; }
condition() { host kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='NodestrapReady')]$1}{\"\\n\"}"; }
has() { is "$(condition .status) $(condition .reason)" "$1"; }
mark() { mark=$(date +%s.%N); }
# says UNIT TEXT: since the last mark, sooner or later
says() { within 60 says_now "$@"; }
says_now() { journalctl -b -u "$1" --since "@$mark" -o cat --no-pager | grep -m1 -F -- "$2" || { journalctl -b -u "$1" --since "@$mark" -o cat --no-pager | tail -5 | cut -c1-300; return 1; }; }
# says_whole UNIT REGEX: a line since the last mark ends with it
says_whole() { journalctl -b -u "$1" --since "@$mark" -o cat --no-pager | grep -m1 -E -- "$2\$" || { journalctl -b -u "$1" --since "@$mark" -o cat --no-pager | tail -5; return 1; }; }
# meets NAME KUBELET UNIT: what either of them says while it is so
meets() {
        mark; systemctl restart nodestrap-joined
        try "$1: kubelet meets it" says kubelet "$2"
        try "$1: nodestrap-joined says what it knows" says nodestrap-joined "$3"
        try "$1: kubelet goes on" within 60 active kubelet
}

# ---- a policy that denies the Node, at boot ----
mark=0
try "the boot is over, though the cluster takes no Node" active nodestrap-run
try "kubelet logs the refusal" says kubelet "no nodes here"
joined_failed() { is "$(property nodestrap-joined ActiveState) $(property nodestrap-joined ExecMainStatus)" "failed 60"; }
try "nodestrap-joined fails by its deadline" within 120 joined_failed
told() { is "$(event NodestrapNotJoined '.count}{" "}{.items[*].involvedObject.name')" "1 $NODE"; }
try "its Event is in the cluster, by our units alone" within 60 told
try "the Event has the reason" grep -E "^ENOTREGISTERED at join: cluster training has no Node $NODE: kubelet has not registered it" <(event NodestrapNotJoined .message)
event NodestrapNotJoined .message | sed 's/^/# /'
try "no run has failed" is "$(event NodestrapFailed .count)" ""
try "no condition waits for a Node that does not exist" is "$(find /run/nodestrap/events -name '*.condition' | wc -l)" 0

# ---- other troubles before there is a Node ---- The front stands before what changes behind it.
unwell=": the API server is overloaded or unhealthy; check the cluster health in the EKS console"
host front_says status=503
meets 503 "the front says no" "Not yet (EAPIERROR): https://10.0.2.100:6443 answers HTTP 503 (the front says no)$unwell"
host kubectl delete validatingadmissionpolicybinding no-nodes >/dev/null
host front_says status=429,retry-after=1
meets 429 "the front says no" "Not yet (EAPIERROR): https://10.0.2.100:6443 answers HTTP 429 (the front says no)$unwell"
host etcd_fill >/dev/null; host front_says pass
meets "a full etcd" "etcdserver: mvcc: database space exceeded" "Not yet (ENOTREGISTERED): cluster training has no Node $NODE"
host front_says status=503; host etcd_empty >/dev/null
webhook='{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "slow"}, "webhooks": [{"name": "slow.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 2, "clientConfig": {"url": "https://127.0.0.1:7443/"}, "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes", "nodes/status", "events"], "operations": ["CREATE", "UPDATE"]}]}]}'
slow() { host spawn silent socat TCP-LISTEN:7443,bind=127.0.0.1,fork,reuseaddr EXEC:'sleep 60'; host eval "kubectl apply -f - <<<'$webhook'"; }
quick() { host kubectl delete validatingwebhookconfiguration slow; }
slow >/dev/null; sleep 2; host front_says pass
meets "a slow webhook" "slow.example.com" "Not yet (ENOTREGISTERED): cluster training has no Node $NODE"

# ---- it is over ----
systemctl restart nodestrap-joined; quick >/dev/null
try "kubelet registers" within 60 host kubectl get node $NODE
try "the Node is Ready" node_ready || kubelet_says
# Without a Node kubelet makes no CSINode. Its next try may be a minute away. After 140 s of them it ends, and systemd starts it again.
# Source: kubernetes: pkg/volume/csi/csi_plugin.go, initializeCSINode().
echo "# kubelet was restarted $(property kubelet NRestarts) times"
kubelet=$(pid)
systemctl restart nodestrap-joined
try "nodestrap-joined succeeds" joins
try "the Node says NodestrapReady" within 60 has "True NodestrapDone"
try "the Event has the code of the time before" grep ENOTREGISTERED <(event NodestrapNotJoined .message)

# ---- the same troubles beside a kubelet that has registered ----

# later NAME BREAK MEND TEXT: the sender says that once for Event and condition. It sends both when the trouble is over.
later() {
        $2 >/dev/null; mark; echo '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"instance": {"sysctl": {"net.ipv4.no_such_setting": "1"}}}}' >/etc/eks/nodeadm.d/50-spec.yaml
        # shellcheck disable=SC2046 # sources are words
        try "$1: a typed init fails" no nodestrap init --skip config $(sources)
        try "$1: what it has to tell waits" says nodestrap-event "has not been sent yet (EAPIERROR): "
        try "$1: the journal says why" says_whole nodestrap-event "has not been sent yet \(EAPIERROR\): ($4)"
        $3 >/dev/null
        try "$1: the Node has it when that is over" within 60 has "False ESYSCTL"
        try "$1: and the Event" within 60 is_told
        rm /etc/eks/nodeadm.d/50-spec.yaml
        # shellcheck disable=SC2046
        try "$1: init succeeds after the repair" nodestrap init --skip config $(sources)
        try "$1: the Node says that, too" within 60 has "True NodestrapDone"
        failures=$((failures + 1))
}
failures=1
is_told() { is "$(event NodestrapFailed .count)" "$failures"; }
# A sender that is at work loses its connection first, and says one reason of a code.
broke='the connection to https://10\.0\.2\.100:6443 broke \(.+\): the API server is restarting, or something in between cuts connections'
later 503 "host front_says status=503" "host front_says pass" "https://10\.0\.2\.100:6443 answers HTTP 503 \(the front says no\)$unwell|$broke"
later 429 "host front_says status=429,retry-after=2" "host front_says pass" "https://10\.0\.2\.100:6443 answers HTTP 429 \(the front says no\)$unwell|$broke"
later "a full etcd" "host etcd_fill" "host etcd_empty" ".*etcdserver: mvcc: database space exceeded.*"
later "a slow webhook" slow quick ".*slow\.example\.com.*"
try "the Node is Ready after all repairs" node_ready || kubelet_says
try "kubelet has never restarted" is "$(pid)" "$kubelet"
host kubectl describe node $NODE | sed -n '/^Events:/,$s/^/# /p'

finish
