#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# tree: schemas
# cluster: front no-controllers
# The examples for controllers fit their published schemas, on the real API server. Behind the gate of readiness-gate.userdata a node takes
# no pods until NodestrapReady is True. A stand-in for the node readiness controller lifts the taint; the node itself cannot.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
wants python3
examples=$(realpath "$tests/../conf/examples") gate=readiness.k8s.io/nodestrap spool=root/run/nodestrap/events
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }

# ---- published schemas ----
try "the CRDs of Karpenter" kubectl create -f "$SCHEMAS/nodepools.yaml" -f "$SCHEMAS/ec2nodeclasses.yaml"
established() { kubectl wait --for=condition=Established --timeout=30s "crd/$1"; }
try "the API server serves the CRDs of Karpenter" established nodepools.karpenter.sh
try "both" established ec2nodeclasses.karpenter.k8s.aws
creates() { kubectl create --validate=strict --dry-run=server -f "$1"; }
refuses() {     # FILE SED WORD: with that change
        local said; sed "$2" "$1" >changed; cmp -s "$1" changed && { echo "nothing is changed"; return 1; }
        ! said=$(creates changed 2>&1) && grep -qE -- "$3" <<<"$said" || { echo "$said"; return 1; }
}
created() { local end=$((SECONDS + 20)); until creates "$1" >/dev/null 2>&1 || [ $SECONDS -ge $end ]; do sleep 0.2; done; creates "$1"; }
try "Karpenter takes karpenter.yml" created "$examples/karpenter.yml"
try "Karpenter refuses another effect" refuses "$examples/karpenter.yml" '/startupTaints/,/effect/s/NoSchedule/NoPods/' 'startupTaints\[0\].effect: Unsupported value'
try "Karpenter refuses another field" refuses "$examples/karpenter.yml" 's/startupTaints/startTaints/' 'unknown field "spec.template.spec.startTaints"'
if [ -s "$SCHEMAS/nodereadinessrules.yaml" ]; then
        try "the CRD of the node readiness controller" kubectl create -f "$SCHEMAS/nodereadinessrules.yaml"
        try "the API server serves the CRD of readiness rules" established nodereadinessrules.readiness.node.x-k8s.io
        try "the API server takes readiness-rule.yml" created "$examples/readiness-rule.yml"
        try "the readiness rule refuses a taint of another domain" refuses "$examples/readiness-rule.yml" 's,readiness.k8s.io/nodestrap,example.com/nodestrap,' "taint key must start with 'readiness.k8s.io/'"
        try "the readiness rule refuses another mode" refuses "$examples/readiness-rule.yml" 's/enforcementMode: continuous/enforcementMode: always/' 'enforcementMode: Unsupported value'
        try "the readiness rule refuses another status" refuses "$examples/readiness-rule.yml" 's/requiredStatus: "True"/requiredStatus: "Ready"/' 'requiredStatus: Unsupported value'
else
        skip "the CRD of the node readiness controller" "its Go module cannot be downloaded here"
        # Its names alone, so that the rule can be kept.
        kubectl create -f - >/dev/null <<-'END'
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata:
	  name: nodereadinessrules.readiness.node.x-k8s.io
	  annotations: {api-approved.kubernetes.io: "unapproved, of a test"}
	spec:
	  group: readiness.node.x-k8s.io
	  names: {kind: NodeReadinessRule, listKind: NodeReadinessRuleList, plural: nodereadinessrules, singular: nodereadinessrule}
	  scope: Cluster
	  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
	END
        try "its rules can be kept" established nodereadinessrules.readiness.node.x-k8s.io
fi
# As `aws eks create-nodegroup --cli-input-yaml` looks at it, by the model of the API.
node_group() {
        python3 - "$SCHEMAS/eks.json" "$1" <<-'END'
	import json, sys, yaml
	shapes = json.load(open(sys.argv[1]))["shapes"]
	faults = []
	TYPES = {"string": str, "integer": int, "boolean": bool, "list": list, "map": dict, "structure": dict}
	def check(value, name, path):
	    shape = shapes[name]; kind = shape["type"]
	    if type(value) is not TYPES[kind]:
	        faults.append(f"{path}: is no {kind}"); return
	    if "enum" in shape and value not in shape["enum"]:
	        faults.append(f"{path}: is none of {shape['enum']}")
	    size = value if kind == "integer" else len(value) if kind != "boolean" else 1
	    if kind != "structure" and not shape.get("min", size) <= size <= shape.get("max", size):
	        faults.append(f"{path}: is not from {shape.get('min')} to {shape.get('max')}")
	    if kind == "structure":
	        faults.extend(f"{path}.{k}: is missing" for k in shape.get("required", []) if k not in value)
	        for k, v in value.items():
	            member = shape["members"].get(k)
	            check(v, member["shape"], f"{path}.{k}") if member else faults.append(f"{path}.{k}: is not known")
	    elif kind == "list":
	        for i, v in enumerate(value): check(v, shape["member"]["shape"], f"{path}[{i}]")
	    elif kind == "map":
	        for k, v in value.items(): check(v, shape["value"]["shape"], f"{path}.{k}")
	check(yaml.safe_load(open(sys.argv[2])), "CreateNodegroupRequest", "")
	print(*faults, sep="\n"); sys.exit(bool(faults))
	END
}
group_refuses() { sed "$1" "$examples/node-group.yml" >changed; ! node_group changed >said && grep -qE -- "$2" said || { cat said; return 1; }; }
if python3 -c 'import yaml' 2>/dev/null; then
        try "EKS takes node-group.yml" node_group "$examples/node-group.yml"
        try "the node group refuses another action" group_refuses 's/Reboot/Restart/' 'repairAction: is none of'
        try "the node group refuses another field" group_refuses 's/nodeUnhealthyReason/unhealthyReason/' 'unhealthyReason: is not known'
        user_data_of() { python3 -c 'import sys, yaml; print(next(d for d in yaml.safe_load_all(open(sys.argv[1])) if d["kind"] == "EC2NodeClass")["spec"]["userData"])' "$examples/karpenter.yml" >karpenter.userdata; }
        fits_in() { user_data_of && nodestrap config check --strict --partial -c "file://$PWD/karpenter.userdata"; }
        try "the user data of karpenter.yml is a NodeConfig" fits_in
fi
same_taint() { [ "$(grep -hE "key: $gate, effect: NoSchedule" "$examples"/{readiness-gate.userdata,readiness-rule.yml,karpenter.yml} | grep -o '{.*}' | sort -u | wc -l)" = 1 ] && [ "$(grep -lE "key: $gate, effect: NoSchedule" "$examples"/* | wc -l)" = 3 ]; }
try "all three files mean the same taint" same_taint

# ---- the gate ----
# The stand-in, by the user guide of the controller, for the mode continuous. A node of the selector loses the taint if all conditions are
# as required, and gets it otherwise. A missing condition is Unknown.
controller() {
        while sleep 0.2; do
                { kubectl get nodereadinessrules -o json; kubectl get nodes -o json; } 2>/dev/null | python3 -c '
import json, sys
decoder, text, lists = json.JSONDecoder(), sys.stdin.read().strip(), []
while text: value, end = decoder.raw_decode(text); lists.append(value); text = text[end:].strip()
for spec in (r["spec"] for r in lists[0]["items"]):
    for node in lists[1]["items"]:
        if not spec["nodeSelector"]["matchLabels"].items() <= node["metadata"].get("labels", {}).items(): continue
        status = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
        well = all(status.get(c["type"], "Unknown") == c["requiredStatus"] for c in spec["conditions"])
        taint, all_of = spec["taint"], node["spec"].get("taints", [])
        rest = [t for t in all_of if (t["key"], t["effect"]) != (taint["key"], taint["effect"])]
        want = rest if well else rest + [taint]
        if len(want) != len(all_of): print(node["metadata"]["name"], json.dumps({"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": want}}), sep="\t")
' 2>/dev/null | while IFS=$'\t' read -r name patch; do kubectl patch node "$name" --type=merge -p "$patch" >/dev/null 2>&1; done
        done
}
mkdir root && "$tests/fixtures/expand.sh" m5-large root && cp root/proc/meminfo meminfo
mkdir -p root/proc/sys/kernel/random; cat /proc/sys/kernel/random/boot_id >root/proc/sys/kernel/random/boot_id
sed '/^  cluster:/,/^  kubelet:/{/^  kubelet:/!d}' "$examples/readiness-gate.userdata" >root/gate.userdata
init() { nodestrap init --root root -c imds://user-data -c file:///gate.userdata "$@"; }
send() { find $spool -type f ! -name '*.condition' -delete 2>/dev/null; timeout 100 "$NODESTRAP" send-events --root root; }
# As kubelet registers: taints and labels are those of its files.
registers() {
        python3 - root/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf root/etc/eks/kubelet/environment $NODE "$(cat /proc/sys/kernel/random/boot_id)" <<-'END' | as_node create -f -
	import json, re, sys
	config, environment, name, boot = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), *sys.argv[3:]
	labels = dict(pair.split("=", 1) for flag in re.findall(r"--node-labels=(\S+)", environment) for pair in flag.strip("'\"").split(","))
	ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "said by the test"}
	print(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": config["registerWithTaints"]},
	                  "status": {"nodeInfo": {"bootID": boot}, "conditions": [ready]}}))
	END
}
gated() { kubectl get node $NODE -o 'jsonpath={range .spec.taints[*]}{.key}:{.effect}{"\n"}{end}' | grep -qx "$gate:NoSchedule"; }
stays() { sleep 1.5; gated; }
within() { local end=$((SECONDS + 20)); until "$@"; do [ $SECONDS -lt $end ] || { kubectl get node $NODE -o yaml; return 1; }; sleep 0.1; done; }
ready() { kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='NodestrapReady')].status}"; }
try "the API server takes the rule" kubectl create -f "$examples/readiness-rule.yml"
controller & controller=$!; trap 'kill $controller' EXIT
try "a boot ends well" init
try "the node registers" registers
try "the Node has the taint" gated
untaint() { as_node taint node $NODE $gate- 2>&1 | grep -E "not allowed to modify taints|cannot (patch|update)" || { as_node taint node $NODE $gate-; return 1; }; }
try "the node cannot take the taint away" untaint
try "the controller keeps the taint before the cluster has the verdict" stays
try "the wait tells it" nodestrap wait --root root --for registered --timeout 10s
try "send-events sends the good verdict" send
try "NodestrapReady is True" is "$(ready)" True
try "the controller takes the taint away" within no gated
try "the other taint stays" grep -q nvidia.com/gpu <(kubectl get node $NODE -o 'jsonpath={.spec.taints}')
echo nonsense >broken; rm root/proc/meminfo; cp broken root/proc/meminfo
try "a later run fails" no init
try "send-events sends the failure" send
try "the controller sets the taint again" within gated
rm root/proc/meminfo; cp meminfo root/proc/; rm -r root/run; mkdir -p root/run; cat /proc/sys/kernel/random/uuid >root/proc/sys/kernel/random/boot_id
try "the next boot begins" init --skip run
try "send-events sends the unknown verdict" send
try "NodestrapReady is Unknown" is "$(ready)" Unknown
try "so the taint stays" stays
try "the boot ends well" init --skip config
try "send-events sends the recovery" send
try "the controller takes the taint away after the repair" within no gated
finish
