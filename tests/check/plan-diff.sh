#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A plan beside this machine, beside another plan, and for many types at once.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2163,SC2120  # tmp and here are its; functions are handed to ok
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") top=$(realpath "$here/../..") root=$tmp/root canary=CaNaRy-5e1f
mkdir "$root"; "$here/../fixtures/expand.sh" m5-large "$root"
node() { # NAME [SPEC]: the NodeConfig of that cluster, with more behind it
        cat >"$tmp/node.yaml" <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: $1, apiServerEndpoint: https://A1B2C3D4.gr7.us-west-2.eks.amazonaws.com, certificateAuthority: Y2VydGlmaWNhdGVBdXRob3JpdHk=, cidr: 10.100.0.0/16}
${2-}
END
        mock --imds "$top/tests/fixtures/imds-m5" --user-data "$tmp/node.yaml"
}
status=0 kubelet=/etc/kubernetes/kubelet/config.json
plan() { "$nodestrap" plan --root "$root" "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; return $status; }
exits() { local want=$1; shift; "$@"; [ "$status" = "$want" ] || { echo "exit $status"; tail -n 3 "$tmp/out" "$tmp/err"; false; }; }
of() { python3 -c 'import json, sys; plan = json.load(open(sys.argv[1])); live = {a["id"]: a["live"] for a in plan.get("actions", []) if "live" in a}; print(eval(sys.argv[2]))' "$tmp/out" "$1"; }
same() { [ "$1" = "$2" ] || { diff <(echo "$1") <(echo "$2"); false; }; }
init() { "$nodestrap" init --root "$root" 2>"$tmp/err" >"$tmp/out" || { cat "$tmp/err"; false; }; }
# ---- the machine ----
node training
plan --output json
ok "a bare machine has files to create" same "True create False" "$(of "' '.join(map(str, (plan['live']['create'] > 5, live['write-file:$kubelet']['state'], plan['live']['nothingToDo'])))")"
ok "which is exit code 2" exits 2 plan --detailed-exitcode
ok "but only where that is asked for" exits 0 plan
ok "init does it" init
ok "and then there is nothing to do" exits 0 plan --detailed-exitcode
ok "in words" grep -q '^Nothing to do: [0-9]* as planned, 0 to create, 0 to change, 0 to remove, 0 unknown; [0-9]* not checked before they run$' "$tmp/out"
ok "and in JSON" eval 'plan --output json && same "{'"'keep'"'} True" "$(of '"'"'str({l["state"] for l in live.values()}) + " " + str(plan["live"]["nothingToDo"])'"'"')"'
touched() { # EXPRESSION: true of the kubelet file in the plan; and init agrees to write it
        plan --output json || return
        same "$1" "$(of "live['write-file:$kubelet']['state'] + ': ' + live['write-file:$kubelet'].get('why', '')")" && exits 2 plan --detailed-exitcode &&
                init && grep -q ': ok: [1-9][0-9]* done' "$tmp/err" && exits 0 plan --detailed-exitcode
}
chmod 600 "$root$kubelet"; ok "another mode" touched "change: mode 0600 to 0644"
echo >>"$root$kubelet"; ok "another content" touched "change: content"
mv "$root$kubelet" "$root$kubelet.bak"; ln -s config.json.bak "$root$kubelet"; ok "a link in its place" touched "change: it is not a file"
rm "$root$kubelet"; ok "it is gone" touched "create: "
if [ "$(id -u)" = 0 ]; then
        chown 12:34 "$root$kubelet"; ok "another owner" touched "change: owner 12 to 0"
        plan --output json; cp "$tmp/out" "$tmp/as-root"; chmod 755 "$tmp"
        chmod 700 "$root/etc/kubernetes/kubelet"
        other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$nodestrap" plan --root "$root" --output json --detailed-exitcode >"$tmp/out" 2>"$tmp/err"; status=$?; }
        ok "who may not read a file does not know" eval 'exits 2 other; same "unknown: only root may read it" "$(of "live[\"write-file:$kubelet\"][\"state\"] + \": \" + live[\"write-file:$kubelet\"][\"why\"]")"'
        ok "and takes none for changed" same "0 0" "$(of "' '.join(str(plan['live'][n]) for n in ('change', 'create'))")"
        chmod 755 "$root/etc/kubernetes/kubelet"
else
        for what in "another owner" "who may not read a file does not know" "and takes none for changed"; do count=$((count + 1)); echo "ok $count - $what # SKIP not root"; done
fi
node training '  instance: {environment: {default: {A: b}}}'
init
node training
ok "a file that no plan writes any more is to go" eval 'plan --output json; same "remove: /etc/nodestrap/environment/default" "$(of "[l[\"state\"] + \": \" + l[\"why\"] for i, l in live.items() if i.startswith(\"prune-files\")][0].split(\", \")[0]")"'
init
rm -r "$root/run/nodestrap"; printf '{"policyName":"static","defaultCpuSet":"0-1","checksum":1636926438}' >"$root/var/lib/kubelet/cpu_manager_state"
ok "so is a state of kubelet that contradicts the plan" eval 'plan --output json; same "remove: cpu_manager_state: it has another policy" "$(of "live[\"forget-state:/var/lib/kubelet\"][\"state\"] + \": \" + live[\"forget-state:/var/lib/kubelet\"][\"why\"]")"'
ok "in words" eval 'plan; tr -s " \n" " " <"$tmp/out" | grep -F "forget-state /var/lib/kubelet [remove: cpu_manager_state: it has another policy]"'
ok "init takes it away" eval 'init && [ ! -e "$root/var/lib/kubelet/cpu_manager_state" ]'

# ---- line by line ----
node other '  kubelet: {config: {maxPods: 42}}'
plan --show-diff --output json
ok "a diff has the lines that differ" same '-    "maxPods": 29,+    "maxPods": 42,' "$(of '"".join(l for l in live["write-file:/etc/kubernetes/kubelet/config.json"]["diff"].splitlines() if "maxPods" in l and l[0] in "+-")')"
as_diff() { # the section of the file is what diff(1) says of what is there and what would be
        plan --show-diff --write-to "$tmp/planned" && diff -u "$root$kubelet" "$tmp/planned$kubelet" | tail -n +3 >"$tmp/want"
        awk -v of="--- $kubelet," '/^--- / { on = index($0, of) == 1 } on' "$tmp/out" | tail -n +3 | diff "$tmp/want" -
}
ok "and in the text it is that of diff(1)" as_diff
node training "  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}"
ok "no secret is in one" eval 'plan --show-diff; ! grep -F "$canary" "$tmp/out"'
init
node training
ok "nor one that was there before" eval 'plan --show-diff; grep -q "config.toml, as it is" "$tmp/out" && ! grep -F "$canary" "$tmp/out"'
ok "but with --show-secrets" eval 'plan --show-diff --show-secrets; grep -q "^-.*$canary" "$tmp/out"'

# ---- two plans ----
node training
two() { "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type "${type:-p5.48xlarge}" "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
told() { python3 -c 'import json, sys; diff = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$tmp/out" "$1"; }
two --output json; cp "$tmp/out" "$tmp/old.json"
ok "a plan and itself are the same" exits 0 two --diff "$tmp/old.json" --detailed-exitcode
ok "which is said" grep -qx 'Nothing differs.' "$tmp/out"
node training "  kubelet: {config: {maxPods: 42}}
  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}
  instance: {environment: {default: {A: b}}}"
ok "with another configuration they differ" exits 2 two --diff "$tmp/old.json" --detailed-exitcode --output json
cp "$tmp/out" "$tmp/diff.json"
ok "by what was added" same "True []" "$(told 'str(any(a["id"] == "write-file:/etc/nodestrap/environment/default" for a in diff["added"])) + " " + str(diff["removed"])')"
ok "by lines" same '-    "maxPods": 100,+    "maxPods": 42,' "$(told '"".join(l for c in diff["changed"] if c["id"].endswith("kubelet/config.json") for l in c["diff"].splitlines() if "maxPods" in l)')"
ok "and of what is hidden that it may" same "hidden, not known" "$(told '[c["content"] for c in diff["changed"] if c["id"].endswith("/containerd/config.toml")][0]')"
ok "and no more" eval '! grep -F "$canary" "$tmp/out"'
ok "no digest either" eval '! grep -oE "(sha256|inputs)\"?: .{0,20}[0-9a-f]{64}" "$tmp/out"'
two --output json; cp "$tmp/out" "$tmp/secret.json"
sed -i "s/$canary/another/" "$tmp/node.yaml"
ok "of two that are hidden, too" eval 'exits 2 two --diff "$tmp/secret.json" --detailed-exitcode; grep -qx "? write-file:/etc/containerd/config.toml: hidden, not known" "$tmp/out"'
ok "and that it is something hidden that differs" eval 'grep -q "^0 added, 0 removed, 0 changed, 0 moved, [0-9]* hidden$" "$tmp/out" && grep -q "^Only hidden values differ.$" "$tmp/out"'
ok "in JSON, too" eval 'two --diff "$tmp/secret.json" --output json; cp "$tmp/out" "$tmp/hidden.json"; same "False True" "$(told "str(diff[\"same\"]) + \" \" + str(\"write-file:/etc/containerd/config.toml\" in [h[\"id\"] for h in diff[\"hidden\"]])")"'
# ---- what the cluster sees ----
group() { node training "  kubelet: {config: {staticPodURLHeader: {A: [$canary]}, registerWithTaints: [{key: $1, effect: NoSchedule}]}, flags: [--node-labels=group=$1, --v=$2]}"; }
group one 2; two --output json; cp "$tmp/out" "$tmp/one.json"; group two 4; two --diff "$tmp/one.json"
ok "a label of a file that is hidden is told" grep -qx "    labels.group: one -> two" "$tmp/out"
ok "a taint, too" grep -qF '    taints: -{"effect":"NoSchedule","key":"one"}' "$tmp/out"
ok "and a flag of kubelet" grep -qx "    settings.logging.verbosity: 2 -> 4" "$tmp/out"
ok "but nothing that may be a secret" eval '! grep -F "$canary" "$tmp/out" "$tmp/one.json"'
node training
# ---- one that was made with --show-secrets, and is kept where it should not be ----
node training "  kubelet: {config: {maxPods: 42}}
  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}
  instance: {sysctl: {kernel.domainname: $canary}, environment: {default: {A: $canary}}}"
two --output json; cp "$tmp/out" "$tmp/hides.json"
two --show-secrets --output json; cp "$tmp/out" "$tmp/revealed.json"
ok "an earlier plan that shows secrets has them" grep -qF "$canary" "$tmp/revealed.json"
ok "and is the same" eval 'two --diff "$tmp/revealed.json"; grep -qx "Nothing differs." "$tmp/out"'
sed -i "s/$canary/other-word/" "$tmp/node.yaml"
ok "what differs from it is not shown" eval 'two --diff "$tmp/revealed.json"; ! grep -E "$canary|other-word|secret|revealed|[0-9a-f]{64} ->" "$tmp/out" && grep -qx "? set-sysctl:kernel.domainname: hidden, not known" "$tmp/out"'
ok "but to who asks for it" eval 'two --show-secrets --diff "$tmp/revealed.json"; grep -qx "    with: $canary -> other-word" "$tmp/out" && grep -q "^-.*$canary" "$tmp/out" && grep -q "^+.*other-word" "$tmp/out" && ! grep -q hidden "$tmp/out"'
ok "save what the earlier one hides" eval 'two --show-secrets --diff "$tmp/hides.json"; ! grep -F other-word "$tmp/out" && grep -qx "? set-sysctl:kernel.domainname: hidden, not known" "$tmp/out"'
node training
ok "nor is it shown where nothing is secret any more" eval 'two --diff "$tmp/revealed.json"; grep -qx "~ write-file:/etc/containerd/config.toml" "$tmp/out" && ! grep -F "$canary" "$tmp/out"'
python3 - "$tmp/old.json" "$tmp/moved.json" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1])); actions = plan['actions']
actions.insert(3, actions.pop(9)); actions[5]['after'].append('write-file:/x'); json.dump(plan, open(sys.argv[2], 'w'))
PY
ok "one that moved is one" eval 'two --diff "$tmp/moved.json" --output json; same "1 1" "$(told "str(len(diff[\"moved\"])) + \" \" + str(len(diff[\"changed\"]))")"'
python3 - "$tmp/old.json" "$tmp/odd.json" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1])); odd = 'x\x1b[31m\n\x7f'
plan['planId'] += odd; plan['facts']['instance']['type'] = odd; plan['actions'][0]['id'] = odd; plan['actions'][0]['why'] = odd; plan['actions'][1][odd] = odd
json.dump(plan, open(sys.argv[2], 'w'))
PY
ok "what the earlier one says cannot garble a terminal" eval 'two --diff "$tmp/odd.json"; ! LC_ALL=C grep -q "[^ -~]" "$tmp/out" && grep -qxF -- "- x\x1b[31m\x0a\x7f: x\x1b[31m\x0a\x7f" "$tmp/out" && grep -qxF "    x\x1b[31m\x0a\x7f: x\x1b[31m\x0a\x7f -> none" "$tmp/out"'
refused() { two --diff "$tmp/bad.json"; [ $status = 2 ] && says "$1"; }
head -c 5000 "$tmp/old.json" >"$tmp/bad.json"; ok "a plan that was cut off is refused" refused 'it ends in the middle, at line '
echo hello >"$tmp/bad.json"; ok "so is what is no JSON" refused 'it is not JSON, at line 1'
: >"$tmp/bad.json"; ok "and nothing" refused 'it is empty'
echo '{"planId": "x"}' >"$tmp/bad.json"; ok "and what is no plan" refused 'it is not a plan;'
sed 's/"formatVersion": 1/"formatVersion": 7/' "$tmp/old.json" >"$tmp/bad.json"; ok "and another format" refused 'its formatVersion is 7, but this version reads 1'
ok "and what does not end" eval 'two --diff <(printf "{\"a\": \""; yes x | tr -d "\n"); [ $status = 2 ] && says "it is too large for a plan"'
rm "$tmp/bad.json"; ok "and one that is not there" refused 'No such file or directory'

# ---- many types ----
matrix() { "$nodestrap" plan -c "file://$tmp/node.yaml" --matrix "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
ok "all types are planned" eval 'exits 0 matrix all; [ "$(grep -c " ok  *[a-z]" "$tmp/out")" -gt 90 ]'
ok "as each alone is" eval 'matrix p5.48xlarge,g6.xlarge --output json; same "$(told "diff[\"types\"][0][\"planId\"]")" "$(python3 -c "import json; print(json.load(open(\"$tmp/old.json\"))[\"planId\"])")"'
ok "and told" same "p5.48xlarge OK 8 nvswitch 32 8 100" "$(told '" ".join(str(diff["types"][0][k]) for k in ("type", "code", "gpus", "class", "efa", "instanceStores", "maxPods"))')"
cp "$tmp/out" "$tmp/matrix.json"; cp "$tmp/out" "$tmp/bad.json"; ok "no plan is compared with that" refused 'it is a table of --matrix;'; rm "$tmp/bad.json"
printf 'g6.xlarge # cheap\n\np5.48xlarge\n' >"$tmp/types"
ok "a file names them, too" eval 'exits 0 matrix "$tmp/types" && same "g6.xlarge p5.48xlarge" "$(awk "\$2 == \"ok\" { print \$1 }" "$tmp/out" | xargs)"'
node training '  instance: {localStorage: {strategy: RAID0}, hugePages: {mode: explicit, pages: [{size: 1Gi, count: 20}]}}'
ok "the first that cannot be is the exit code" exits 11 matrix g6.xlarge,p5.48xlarge,g5.xlarge
ok "and a row, with its sentence below" eval 'grep -q "^g6.xlarge  *EINVALID " "$tmp/out" && grep -q "^  \* g6.xlarge.*: " "$tmp/out" && grep -q "^p5.48xlarge  *ok .* 20Gi 1Gi " "$tmp/out" && grep -qx "3 types, 2 without a plan" "$tmp/out"'
ok "no line is longer than 100 columns" eval '! grep -E "^.{101,}" "$tmp/out"'
ok "a type that nobody knows is such a row" eval 'exits 2 matrix p5.48xlarge,p5.96xlarge; grep -q "^p5.96xlarge  *EUSAGE" "$tmp/out"'
ok "also where its name is no UTF-8" eval 'exits 2 matrix $(printf "p5.48xlarge,\\377") && grep -qx "2 types, 1 without a plan" "$tmp/out"'
ok "it goes with nothing else" exits 2 matrix all --instance-type p5.48xlarge
ok "also not with what it would not show" eval 'exits 2 matrix all --interfaces 4 && says "--matrix makes a table, without --interfaces"'
ok "nor with that of EFA" eval 'exits 2 matrix all --efa 1 && says "--matrix makes a table, without --efa"'
ok "a file without a slash is told from types" eval 'exits 2 matrix types && says "a file with a type a line (./types)"'
ok "and several types from one" eval '! "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge,g6.xlarge 2>"$tmp/err" && says "--matrix p5.48xlarge,g6.xlarge makes a table of several"'
node training '  kubelet: {config: {systemReserved: {cpu: 150}}}'; sed -i 's/150/"150"/' "$tmp/node.yaml"
# shellcheck disable=SC2034      # below, in eval
old_containerd="p5.48xlarge,g6.xlarge --kubelet-version 1.38.0 --containerd-version 1.7.1"
ok "what certainly fails is no plan" eval 'exits 11 matrix p5.48xlarge,g6.xlarge && grep -q "^g6.xlarge  *EINVALID " "$tmp/out" && grep -q "has 4; reserve less \[reserved-too-much\]" "$tmp/out"'
ok "nor is a containerd with which kubelet does not start" eval 'exits 50 matrix $old_containerd && grep -q "^p5.48xlarge  *EUNIT " "$tmp/out" && grep -q "containerd 1.7.1 cannot tell this kubelet its cgroup driver" "$tmp/out"'
node training '  accelerator: {nvidia: {memoryMode: driver}}'
ok "what will not work is a verdict" eval 'exits 0 matrix p5.48xlarge,g6.xlarge && grep -q "^p5.48xlarge  *no-effect  *nvswitch " "$tmp/out"'
sed -i 's/Y2VydGlmaWNhdGVBdXRob3JpdHk=/LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==/' "$tmp/node.yaml"
ok "and an end only for who is strict" exits 11 matrix p5.48xlarge,g6.xlarge --strict
ok "of a plan alone, too" eval '! "$nodestrap" plan --strict -c "file://$tmp/node.yaml" --instance-type g6.xlarge >"$tmp/out" 2>"$tmp/err" && says "(11 ESTRICT) at plan: spec.accelerator.nvidia.memoryMode: no-effect: "'
sed -i /accelerator:/d "$tmp/node.yaml"
ok "without it none" exits 0 matrix p5.48xlarge,g6.xlarge --strict
ok "how many EFA devices is not known of all" eval 'exits 0 matrix trn2.3xlarge,p6e-gb300.36xlarge && [ "$(grep -c " [0-9]    ? " "$tmp/out")" = 2 ]'
node training

# ---- an image ----
mkdir -p "$tmp/image/etc/eks"; echo "Kubernetes v1.34.2-eks-113cf36" >"$tmp/image/etc/eks/kubelet-version.txt"; echo "containerd github.com/containerd/containerd/v2 2.2.1 abc" >"$tmp/image/etc/eks/containerd-version.txt"
image() { "$nodestrap" plan --root "$tmp/image" -c "file:///node.yaml" "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }; cp "$tmp/node.yaml" "$tmp/image"
ok "its versions are those of the plan" eval 'exits 0 image --instance-type p5.48xlarge && grep -q "^software  *kubelet 1.34.2, containerd 2.2.1" "$tmp/out"; ! grep -q "^assumed.*programs\.kubelet" "$tmp/out"'
ok "unless options say others" eval 'exits 0 image --instance-type p5.48xlarge --kubelet-version 1.33.1 && grep -q "^software  *kubelet 1.33.1, containerd 2.2.1" "$tmp/out"'
rm "$tmp/image/etc/eks/containerd-version.txt"
ok "what it does not tell is assumed" eval 'exits 0 image --matrix p5.48xlarge --output json && exits 0 image --instance-type p5.48xlarge && grep -q "^software  *kubelet 1.34.2, containerd 2.1.5" "$tmp/out"'
ok "it is no machine" eval 'exits 20 image; says "/proc/meminfo: No such file or directory: the size of memory is not known: an image has none; name its machine with --instance-type"'

# ---- what is written ----
ok "a directory that is not there is made" eval 'exits 0 two --write-to "$tmp/tree" && [ -s "$tmp/tree$kubelet" ]'
ok "none is no name of a directory" eval 'exits 2 two --write-to "" && says "--write-to takes the name of a directory"'
touch "$tmp/before"
ok "what was written before is written again" eval 'type=m5.large exits 0 two --write-to "$tmp/tree"'
ok "and what is planned no more is gone, with its directories" eval '[ -e "$tmp/tree$kubelet" ] && [ ! -e "$tmp/tree/run/nodestrap/fabric-may-start" ]'
ok "the list beside it has the rest" same "$(cd "$tmp/tree" && find . -type f ! -name .nodestrap-plan.json | sed 's/.//' | sort)" \
        "$(python3 -c 'import json, sys; print("\n".join(sorted(json.load(open(sys.argv[1]))["files"])))' "$tmp/tree/.nodestrap-plan.json")"
foreign() { # PATH: what is there is refused, and nothing is changed
        find "$tmp/tree" -printf '%p %s %T@\n' | sort >"$tmp/was"
        exits 2 two --write-to "$tmp/tree" && says "--write-to $tmp/tree: $tmp/tree/$1 is not of an earlier --write-to" && find "$tmp/tree" -printf '%p %s %T@\n' | sort | diff "$tmp/was" -
}
touch "$tmp/tree/etc/mine"; ok "a file of somebody else's keeps it from all" foreign etc/mine; rm "$tmp/tree/etc/mine"
mkdir "$tmp/tree/empty"; ok "so does a directory" foreign empty; rmdir "$tmp/tree/empty"
mv "$tmp/tree/etc/kubernetes" "$tmp/elsewhere"; ln -s "$tmp/elsewhere" "$tmp/tree/etc/kubernetes"
ok "a link is not followed" foreign etc/kubernetes
rm "$tmp/tree/etc/kubernetes"; mv "$tmp/elsewhere" "$tmp/tree/etc/kubernetes"
mv "$tmp/tree/.nodestrap-plan.json" "$tmp/list"; ok "without the list all of it is somebody else's" foreign etc
ln -s "$tmp/list" "$tmp/tree/.nodestrap-plan.json"; ok "a list that is a link is none" foreign .nodestrap-plan.json
rm "$tmp/tree/.nodestrap-plan.json"; echo '{"files": ["/etc/../../before"]}' >"$tmp/tree/.nodestrap-plan.json"; ok "nor does it lead elsewhere" eval 'foreign etc/containerd && [ -e "$tmp/before" ]'

# ---- failures ----
node training '  kubelet: {config: {maxPods: [}}}'
ok "why there is no plan is JSON, too" eval 'exits 11 two --output json; same "ESYNTAX 11 error ESYNTAX" "$(told "\" \".join((diff[\"code\"], str(diff[\"exit\"]), diff[\"findings\"][0][\"severity\"], diff[\"findings\"][0][\"code\"]))")"'
cp "$tmp/out" "$tmp/failure.json"
ok "beside what is said on stderr" says 'failed (11 ESYNTAX)'
node training

# ---- the schema ----
sound() { # KIND FILE...: they have the format that is promised, and no key that it does not know
        python3 - "$top/conf/plan.schema.json" "$@" <<'PY'
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
def close(node):
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []: close(child)
    if isinstance(node, dict) and isinstance(node.get('properties'), dict): node.setdefault('additionalProperties', False)
jsonschema.Draft202012Validator.check_schema(schema)
whole = jsonschema.Draft202012Validator(schema)
defs = json.loads(json.dumps(schema['$defs'])); close(defs); del defs['plan']['properties']['facts']['additionalProperties']
strict = jsonschema.Draft202012Validator({**defs[sys.argv[2]], '$defs': defs})
bad = [f'{f}: {list(e.path)}: {e.message[:200]}' for f in sys.argv[3:] for v in (strict, whole) for e in v.iter_errors(json.load(open(f)))]
print(len(sys.argv) - 3, *bad, sep='\n'); sys.exit(bool(bad) or len(sys.argv) < 4)
PY
}
plan --show-diff --output json; cp "$tmp/out" "$tmp/live.json"
ok "a plan is as its schema says" sound plan "$tmp/old.json" "$tmp/secret.json" "$tmp/live.json" "$tmp/revealed.json" "$tmp/hides.json"
ok "a difference, too" sound diff "$tmp/diff.json" "$tmp/hidden.json"
ok "a table" sound matrix "$tmp/matrix.json"
ok "and a failure" sound failure "$tmp/failure.json"
cases() { # the plans of all cases, and failures where none is
        local case options plans=() failures=()
        for case in "$top"/tests/cases/*/; do
                options=(); [ ! -e "$case/options" ] || read -ra options <"$case/options"
                [ ! -e "$case/root" ] || continue
                if (cd "$case" && exec "$nodestrap" plan -c file://userdata "${options[@]}" --output json) >"$tmp/case-$(basename "$case").json" 2>/dev/null
                then plans+=("$tmp/case-$(basename "$case").json"); else failures+=("$tmp/case-$(basename "$case").json"); fi
        done
        sound plan "${plans[@]}" && sound failure "${failures[@]}"
}
ok "so are those of all cases" cases

# ---- called wrongly ----
model() { "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
ok "a model is compared with nothing" eval 'model --output json; same "False set()" "$(of "str(\"live\" in plan) + \" \" + str(set(live))")"'
ok "and cannot be" exits 2 model --show-diff
ok "nor have such an exit code; 2 is something else there" exits 1 model --detailed-exitcode
ok "as for every other mistake" exits 1 model --detailed-exitcode --daemon nobody
ok "whatever stands before it" exits 1 model --no-such-option --detailed-exitcode
done_testing
