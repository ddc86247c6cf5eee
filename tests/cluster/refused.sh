#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 900
# kube: 1.37.0
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
# The policy of a cluster takes no Node: our units say so by themselves, beside a real kubelet.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/ready.sh
. /vmtest/ready.sh

event() { host kubectl get events -n default --field-selector "reason=$1" -o "jsonpath={.items[*]$2}{\"\\n\"}"; }
# says UNIT TEXT: since the last mark, sooner or later
says() { within 60 says_now "$@"; }
says_now() { journalctl -b -u "$1" --since "@$mark" -o cat --no-pager | grep -m1 -F -- "$2" || { journalctl -b -u "$1" --since "@$mark" -o cat --no-pager | tail -5 | cut -c1-300; return 1; }; }

# ---- a policy that denies the Node, at boot ----
mark=0
try "the boot is over, though the cluster takes no Node" active nodestrap-run
try "kubelet hears why" says kubelet "no nodes here"
joined_failed() { is "$(property nodestrap-joined ActiveState) $(property nodestrap-joined ExecMainStatus)" "failed 60"; }
try "nodestrap-joined fails by its deadline" within 120 joined_failed
told() { is "$(event NodestrapNotJoined '.count}{" "}{.items[*].involvedObject.name')" "1 $NODE"; }
try "its Event is in the cluster, by our units alone" within 60 told
try "with the reason" grep -E "^ENOTREGISTERED at join: cluster training has no Node $NODE: kubelet has not registered it" <(event NodestrapNotJoined .message)
event NodestrapNotJoined .message | sed 's/^/# /'
try "no run has failed" is "$(event NodestrapFailed .count)" ""
try "of a Node that does not exist, no condition waits" is "$(find /run/nodestrap/events -name '*.condition' | wc -l)" 0

finish
