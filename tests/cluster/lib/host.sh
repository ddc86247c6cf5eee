# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by a script of tests/cluster that runs on this machine: the functions of control-plane.sh, and
#   try NAME COMMAND…     one TAP line: ok if COMMAND succeeds; its output is shown if not. The script ends with `finish`
#   machine DIR           what init leaves behind on this instance, below DIR
#   nodestrap             the program under test, for which metadata and EC2 are those of $CLUSTER
# shellcheck source=tests/cluster/lib/control-plane.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/control-plane.sh"
set -u; count=0 bad=0
export AWS_CA_BUNDLE=$CLUSTER/pki/aws-ca.crt
nodestrap() { "$NODESTRAP" "$@"; }
try() {
        local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; return; fi
        bad=1; echo "not ok $count - $name"; sed 's/^/# /' <<<"$*"$'\n'"$output"; return 1
}
finish() {
        local log; [ "$bad" = 0 ] || for log in api authenticator aws.requests; do echo "# ---- end of log/$log"; tail -8 "$CLUSTER/log/$log" | cut -c1-400 | sed 's/^/# /'; done
        echo "1..$count"; exit "$bad"
}
# wants COMMAND…: without them the whole script is skipped, or fails where nothing may be missing
wants() {
        local c; for c; do
                command -v "$c" >/dev/null && continue
                [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] || { printf '1..1\nnot ok 1 - no %s here\n' "$c"; exit 1; }
                echo "1..0 # SKIP no $c here"; exit
        done
}
no() { ! "$@"; }
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }
machine() {     # DIR [CA]
        mkdir -p "$1"/{var/lib/kubelet,etc/kubernetes/pki,etc/eks/kubelet,proc/sys/kernel/random,run}
        cp /proc/sys/kernel/random/boot_id "$1/proc/sys/kernel/random/"; echo $NODE >"$1/proc/sys/kernel/hostname"
        cp "$CLUSTER/pki/${2:-ca}.crt" "$1/etc/kubernetes/pki/ca.crt"
        printf 'NODEADM_KUBELET_ARGS=--config=/etc/kubernetes/kubelet/config.json --hostname-override=%s --v=2\n' $NODE >"$1/etc/eks/kubelet/environment"
        cat >"$1/var/lib/kubelet/kubeconfig" <<-END
	apiVersion: v1
	kind: Config
	clusters: [{name: kubernetes, cluster: {server: "$API", certificate-authority: /etc/kubernetes/pki/ca.crt}}]
	users:
	  - name: kubelet
	    user:
	      exec:
	        apiVersion: client.authentication.k8s.io/v1beta1
	        command: aws
	        args: [eks, get-token, --cluster-name, training, --region, $REGION]
	contexts: [{name: kubelet, context: {cluster: kubernetes, user: kubelet}}]
	current-context: kubelet
	END
}
# as_node COMMAND…: of kubectl, with the token of the node
as_node() {
        local token; token=$(nodestrap token --cluster-name training --region $REGION | python3 -c 'import json, sys; print(json.load(sys.stdin)["status"]["token"])') &&
                kubectl --kubeconfig /dev/null --server $API --certificate-authority "$CLUSTER/pki/ca.crt" --token "$token" "$@"
}
# register [READY]: the node makes itself, as kubelet would, of this boot; READY is True or False. The API server keeps no managedFields for a
# Node that begins without labels, annotations and spec.
register() {
        printf '{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "%s", "labels": {"kubernetes.io/hostname": "%s"}}, "status": {"nodeInfo": {"bootID": "%s"}, "conditions": [{"type": "Ready", "status": "%s", "reason": "%s", "message": "said by the test", "lastHeartbeatTime": "%s", "lastTransitionTime": "%s"}]}}' \
                $NODE $NODE "$(cat /proc/sys/kernel/random/boot_id)" "${1:-True}" Kubelet "$(date -u +%FT%TZ)" "$(date -u +%FT%TZ)" | as_node create -f -
}
