#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A plan compared with this machine, compared with another plan, and for many types.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2163,SC2120  # tmp and here are its; functions are handed to ok
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") top=$(realpath "$here/../..") root=$tmp/root canary=CaNaRy-5e1f
mkdir "$root"; "$here/../fixtures/expand.sh" m5-large "$root"
node() { # NAME [SPEC]: the NodeConfig of that cluster, with SPEC after it
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
ok "the plan for a bare machine has files to create" same "True create False" "$(of "' '.join(map(str, (plan['live']['create'] > 5, live['write-file:$kubelet']['state'], plan['live']['nothingToDo'])))")"
ok "plan --detailed-exitcode exits with 2 if there is something to do" exits 2 plan --detailed-exitcode
ok "plan without --detailed-exitcode exits with 0" exits 0 plan
ok "init does what the plan says" init
ok "plan --detailed-exitcode exits with 0 after init" exits 0 plan --detailed-exitcode
ok "the plan as text says that there is nothing to do after init" grep -q '^Nothing to do: [0-9]* as planned, 0 to create, 0 to change, 0 to remove, 0 unknown; [0-9]* not checked before they run$' "$tmp/out"
ok "the plan in JSON says that there is nothing to do after init" eval 'plan --output json && same "{'"'keep'"'} True" "$(of '"'"'str({l["state"] for l in live.values()}) + " " + str(plan["live"]["nothingToDo"])'"'"')"'
touched() { # WORDS: the plan has these for the kubelet file, and init writes the file again
        plan --output json || return
        same "$1" "$(of "live['write-file:$kubelet']['state'] + ': ' + live['write-file:$kubelet'].get('why', '')")" && exits 2 plan --detailed-exitcode &&
                init && grep -q ': ok: [1-9][0-9]* done' "$tmp/err" && exits 0 plan --detailed-exitcode
}
chmod 600 "$root$kubelet"; ok "the plan and init change a file with another mode" touched "change: mode 0600 to 0644"
echo >>"$root$kubelet"; ok "the plan and init change a file with other content" touched "change: content"
mv "$root$kubelet" "$root$kubelet.bak"; ln -s config.json.bak "$root$kubelet"; ok "the plan and init change a link in place of the file" touched "change: it is not a file"
rm "$root$kubelet"; ok "the plan and init create a missing file" touched "create: "
if [ "$(id -u)" = 0 ]; then
        chown 12:34 "$root$kubelet"; ok "the plan and init change a file with another owner" touched "change: owner 12 to 0"
        plan --output json; cp "$tmp/out" "$tmp/as-root"; chmod 755 "$tmp"
        chmod 700 "$root/etc/kubernetes/kubelet"
        other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$nodestrap" plan --root "$root" --output json --detailed-exitcode >"$tmp/out" 2>"$tmp/err"; status=$?; }
        ok "the state of a file that the user may not read is unknown" eval 'exits 2 other; same "unknown: only root may read it" "$(of "live[\"write-file:$kubelet\"][\"state\"] + \": \" + live[\"write-file:$kubelet\"][\"why\"]")"'
        ok "the plan counts no unreadable file as changed" same "0 0" "$(of "' '.join(str(plan['live'][n]) for n in ('change', 'create'))")"
        chmod 755 "$root/etc/kubernetes/kubelet"
else
        for what in "the plan and init change a file with another owner" "the state of a file that the user may not read is unknown" "the plan counts no unreadable file as changed"; do count=$((count + 1)); echo "ok $count - $what # SKIP not root"; done
fi
node training '  instance: {environment: {default: {A: b}}}'
init
node training
ok "the plan removes a file that it does not write any more" eval 'plan --output json; same "remove: /etc/nodestrap/environment/default" "$(of "[l[\"state\"] + \": \" + l[\"why\"] for i, l in live.items() if i.startswith(\"prune-files\")][0].split(\", \")[0]")"'
init
rm -r "$root/run/nodestrap"; printf '{"policyName":"static","defaultCpuSet":"0-1","checksum":1636926438}' >"$root/var/lib/kubelet/cpu_manager_state"
ok "the plan removes a kubelet state that contradicts it" eval 'plan --output json; same "remove: cpu_manager_state: it has a different policy" "$(of "live[\"forget-state:/var/lib/kubelet\"][\"state\"] + \": \" + live[\"forget-state:/var/lib/kubelet\"][\"why\"]")"'
ok "the plan as text has the reason for the removal of a kubelet state" eval 'plan; tr -s " \n" " " <"$tmp/out" | grep -F "forget-state /var/lib/kubelet [remove: cpu_manager_state: it has a different policy]"'
ok "init removes a kubelet state that contradicts the plan" eval 'init && [ ! -e "$root/var/lib/kubelet/cpu_manager_state" ]'

# ---- line by line ----
node other '  kubelet: {config: {maxPods: 42}}'
plan --show-diff --output json
ok "plan --show-diff in JSON has the lines that differ" same '-    "maxPods": 29,+    "maxPods": 42,' "$(of '"".join(l for l in live["write-file:/etc/kubernetes/kubelet/config.json"]["diff"].splitlines() if "maxPods" in l and l[0] in "+-")')"
as_diff() { # the section of the file is the diff(1) of the file now and the planned file
        plan --show-diff --write-to "$tmp/planned" && diff -u "$root$kubelet" "$tmp/planned$kubelet" | tail -n +3 >"$tmp/want"
        awk -v of="--- $kubelet," '/^--- / { on = index($0, of) == 1 } on' "$tmp/out" | tail -n +3 | diff "$tmp/want" -
}
ok "plan --show-diff prints the same diff as diff(1)" as_diff
node training "  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}"
ok "plan --show-diff shows no planned secret" eval 'plan --show-diff; ! grep -F "$canary" "$tmp/out"'
init
node training
ok "plan --show-diff shows no secret of the file now" eval 'plan --show-diff; grep -q "config.toml, as it is" "$tmp/out" && ! grep -F "$canary" "$tmp/out"'
ok "plan --show-diff --show-secrets shows the secret of the file now" eval 'plan --show-diff --show-secrets; grep -q "^-.*$canary" "$tmp/out"'

# ---- two plans ----
node training
two() { "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type "${type:-p5.48xlarge}" "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
told() { python3 -c 'import json, sys; diff = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$tmp/out" "$1"; }
two --output json; cp "$tmp/out" "$tmp/old.json"
ok "plan --diff with the same plan exits with 0" exits 0 two --diff "$tmp/old.json" --detailed-exitcode
ok "plan --diff with the same plan says that nothing differs" grep -qx 'Nothing differs.' "$tmp/out"
node training "  kubelet: {config: {maxPods: 42}}
  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}
  instance: {environment: {default: {A: b}}}"
ok "plan --diff with another configuration exits with 2" exits 2 two --diff "$tmp/old.json" --detailed-exitcode --output json
cp "$tmp/out" "$tmp/diff.json"
ok "the difference lists an added file and no removed step" same "True []" "$(told 'str(any(a["id"] == "write-file:/etc/nodestrap/environment/default" for a in diff["added"])) + " " + str(diff["removed"])')"
ok "the difference has the lines that differ" same '-    "maxPods": 100,+    "maxPods": 42,' "$(told '"".join(l for c in diff["changed"] if c["id"].endswith("kubelet/config.json") for l in c["diff"].splitlines() if "maxPods" in l)')"
ok "the difference calls the content of a file with a secret hidden, not known" same "hidden, not known" "$(told '[c["content"] for c in diff["changed"] if c["id"].endswith("/containerd/config.toml")][0]')"
ok "the difference shows no secret" eval '! grep -F "$canary" "$tmp/out"'
ok "the difference shows no digest" eval '! grep -oE "(sha256|inputs)\"?: .{0,20}[0-9a-f]{64}" "$tmp/out"'
two --output json; cp "$tmp/out" "$tmp/secret.json"
sed -i "s/$canary/another/" "$tmp/node.yaml"
ok "the difference of two secret files is hidden, not known" eval 'exits 2 two --diff "$tmp/secret.json" --detailed-exitcode; grep -qx "? write-file:/etc/containerd/config.toml: hidden, not known" "$tmp/out"'
ok "plan --diff says that only hidden values differ" eval 'grep -q "^0 added, 0 removed, 0 changed, 0 moved, [0-9]* hidden$" "$tmp/out" && grep -q "^Only hidden values differ.$" "$tmp/out"'
ok "the difference in JSON lists the hidden files" eval 'two --diff "$tmp/secret.json" --output json; cp "$tmp/out" "$tmp/hidden.json"; same "False True" "$(told "str(diff[\"same\"]) + \" \" + str(\"write-file:/etc/containerd/config.toml\" in [h[\"id\"] for h in diff[\"hidden\"]])")"'
# ---- labels, taints and settings that the cluster sees ----
group() { node training "  kubelet: {config: {staticPodURLHeader: {A: [$canary]}, registerWithTaints: [{key: $1, effect: NoSchedule}]}, flags: [--node-labels=group=$1, --v=$2]}"; }
group one 2; two --output json; cp "$tmp/out" "$tmp/one.json"; group two 4; two --diff "$tmp/one.json"
ok "the difference shows a changed label of a hidden file" grep -qx "    labels.group: one -> two" "$tmp/out"
ok "the difference shows a changed taint of a hidden file" grep -qF '    taints: -{"effect":"NoSchedule","key":"one"}' "$tmp/out"
ok "the difference shows a changed kubelet flag of a hidden file" grep -qx "    settings.logging.verbosity: 2 -> 4" "$tmp/out"
ok "the difference of labels, taints and flags shows no secret" eval '! grep -F "$canary" "$tmp/out" "$tmp/one.json"'
node training
# ---- an earlier plan made with --show-secrets ----
node training "  kubelet: {config: {maxPods: 42}}
  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}
  instance: {sysctl: {kernel.domainname: $canary}, environment: {default: {A: $canary}}}"
two --output json; cp "$tmp/out" "$tmp/hides.json"
two --show-secrets --output json; cp "$tmp/out" "$tmp/revealed.json"
ok "a plan made with --show-secrets has the secrets" grep -qF "$canary" "$tmp/revealed.json"
ok "a plan made with --show-secrets does not differ from the same plan" eval 'two --diff "$tmp/revealed.json"; grep -qx "Nothing differs." "$tmp/out"'
sed -i "s/$canary/other-word/" "$tmp/node.yaml"
ok "the difference from a plan with secrets shows no secret" eval 'two --diff "$tmp/revealed.json"; ! grep -E "$canary|other-word|secret|revealed|[0-9a-f]{64} ->" "$tmp/out" && grep -qx "? set-sysctl:kernel.domainname: hidden, not known" "$tmp/out"'
ok "the difference from a plan with secrets shows them with --show-secrets" eval 'two --show-secrets --diff "$tmp/revealed.json"; grep -qx "    with: $canary -> other-word" "$tmp/out" && grep -q "^-.*$canary" "$tmp/out" && grep -q "^+.*other-word" "$tmp/out" && ! grep -q hidden "$tmp/out"'
ok "plan --diff --show-secrets shows no secret that the earlier plan hides" eval 'two --show-secrets --diff "$tmp/hides.json"; ! grep -F other-word "$tmp/out" && grep -qx "? set-sysctl:kernel.domainname: hidden, not known" "$tmp/out"'
node training
ok "the difference shows no former secret if the new plan has none" eval 'two --diff "$tmp/revealed.json"; grep -qx "~ write-file:/etc/containerd/config.toml" "$tmp/out" && ! grep -F "$canary" "$tmp/out"'
python3 - "$tmp/old.json" "$tmp/moved.json" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1])); actions = plan['actions']
actions.insert(3, actions.pop(9)); actions[5]['after'].append('write-file:/x'); json.dump(plan, open(sys.argv[2], 'w'))
PY
ok "the difference has one moved step and one changed step" eval 'two --diff "$tmp/moved.json" --output json; same "1 1" "$(told "str(len(diff[\"moved\"])) + \" \" + str(len(diff[\"changed\"]))")"'
python3 - "$tmp/old.json" "$tmp/odd.json" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1])); odd = 'x\x1b[31m\n\x7f'
plan['planId'] += odd; plan['facts']['instance']['type'] = odd; plan['actions'][0]['id'] = odd; plan['actions'][0]['why'] = odd; plan['actions'][1][odd] = odd
json.dump(plan, open(sys.argv[2], 'w'))
PY
ok "plan --diff escapes control characters of the earlier plan" eval 'two --diff "$tmp/odd.json"; ! LC_ALL=C grep -q "[^ -~]" "$tmp/out" && grep -qxF -- "- x\x1b[31m\x0a\x7f: x\x1b[31m\x0a\x7f" "$tmp/out" && grep -qxF "    x\x1b[31m\x0a\x7f: x\x1b[31m\x0a\x7f -> none" "$tmp/out"'
refused() { two --diff "$tmp/bad.json"; [ $status = 2 ] && says "$1"; }
head -c 5000 "$tmp/old.json" >"$tmp/bad.json"; ok "plan --diff refuses an incomplete plan" refused 'it is cut off, at line '
echo hello >"$tmp/bad.json"; ok "plan --diff refuses a file that is not JSON" refused 'it is not JSON, at line 1'
: >"$tmp/bad.json"; ok "plan --diff refuses an empty file" refused 'it is empty'
echo '{"planId": "x"}' >"$tmp/bad.json"; ok "plan --diff refuses JSON that is not a plan" refused 'it is not a plan;'
sed 's/"formatVersion": 1/"formatVersion": 7/' "$tmp/old.json" >"$tmp/bad.json"; ok "plan --diff refuses another formatVersion" refused 'its formatVersion is 7, but this nodestrap reads only 1'
ok "plan --diff refuses endless input" eval 'two --diff <(printf "{\"a\": \""; yes x | tr -d "\n"); [ $status = 2 ] && says "it is too large for a plan"'
rm "$tmp/bad.json"; ok "plan --diff refuses a missing file" refused 'No such file or directory'

# ---- many types ----
matrix() { "$nodestrap" plan -c "file://$tmp/node.yaml" --matrix "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
ok "plan --matrix all has a plan for each type" eval 'exits 0 matrix all; [ "$(grep -c " ok  *[a-z]" "$tmp/out")" -gt 90 ]'
ok "plan --matrix has the same plan id as the plan of one type" eval 'matrix p5.48xlarge,g6.xlarge --output json; same "$(told "diff[\"types\"][0][\"planId\"]")" "$(python3 -c "import json; print(json.load(open(\"$tmp/old.json\"))[\"planId\"])")"'
ok "plan --matrix in JSON has the facts of a type" same "p5.48xlarge OK 8 nvswitch 32 8 100" "$(told '" ".join(str(diff["types"][0][k]) for k in ("type", "code", "gpus", "class", "efa", "instanceStores", "maxPods"))')"
cp "$tmp/out" "$tmp/matrix.json"; cp "$tmp/out" "$tmp/bad.json"; ok "plan --diff refuses a --matrix table" refused 'it is a --matrix table;'; rm "$tmp/bad.json"
printf 'g6.xlarge # cheap\n\np5.48xlarge\n' >"$tmp/types"
ok "plan --matrix takes the types from a file" eval 'exits 0 matrix "$tmp/types" && same "g6.xlarge p5.48xlarge" "$(awk "\$2 == \"ok\" { print \$1 }" "$tmp/out" | xargs)"'
node training '  instance: {localStorage: {strategy: RAID0}, hugePages: {mode: explicit, pages: [{size: 1Gi, count: 20}]}}'
ok "plan --matrix exits with the status of the first type without a plan" exits 11 matrix g6.xlarge,p5.48xlarge,g5.xlarge
ok "plan --matrix has a row and a message for a type without a plan" eval 'grep -q "^g6.xlarge  *EINVALID " "$tmp/out" && grep -q "^  \* g6.xlarge.*: " "$tmp/out" && grep -q "^p5.48xlarge  *ok .* 20Gi 1Gi " "$tmp/out" && grep -qx "3 types, 2 without a plan" "$tmp/out"'
ok "plan --matrix prints no line longer than 100 columns" eval '! grep -E "^.{101,}" "$tmp/out"'
ok "plan --matrix has a row with EUSAGE for an unknown type" eval 'exits 2 matrix p5.48xlarge,p5.96xlarge; grep -q "^p5.96xlarge  *EUSAGE" "$tmp/out"'
ok "plan --matrix has a row for a type name that is not UTF-8" eval 'exits 2 matrix $(printf "p5.48xlarge,\\377") && grep -qx "2 types, 1 without a plan" "$tmp/out"'
ok "plan --matrix refuses --instance-type" exits 2 matrix all --instance-type p5.48xlarge
ok "plan --matrix refuses --interfaces" eval 'exits 2 matrix all --interfaces 4 && says "--matrix cannot be used with --interfaces"'
ok "plan --matrix refuses --efa" eval 'exits 2 matrix all --efa 1 && says "--matrix cannot be used with --efa"'
ok "plan --matrix suggests ./types for a file name without a slash" eval 'exits 2 matrix types && says "a file with one type per line (./types)"'
ok "plan --instance-type suggests --matrix for several types" eval '! "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge,g6.xlarge 2>"$tmp/err" && says "--matrix p5.48xlarge,g6.xlarge makes a table of several"'
node training '  kubelet: {config: {systemReserved: {cpu: 150}}}'; sed -i 's/150/"150"/' "$tmp/node.yaml"
# shellcheck disable=SC2034      # below, in eval
old_containerd="p5.48xlarge,g6.xlarge --kubelet-version 1.38.0 --containerd-version 1.7.1"
ok "plan --matrix has no plan for a type that reserves too much" eval 'exits 11 matrix p5.48xlarge,g6.xlarge && grep -q "^g6.xlarge  *EINVALID " "$tmp/out" && tr -s " \n" " " <"$tmp/out" | grep -qF "has 4; reserve less [reserved-too-much]"'
ok "plan --matrix has no plan with a containerd that kubelet cannot start with" eval 'exits 50 matrix $old_containerd && grep -q "^p5.48xlarge  *EUNIT " "$tmp/out" && grep -q "containerd 1.7.1 cannot tell this kubelet its cgroup driver" "$tmp/out"'
node training '  accelerator: {nvidia: {memoryMode: driver}}'
ok "plan --matrix has the verdict no-effect for a type without the feature" eval 'exits 0 matrix p5.48xlarge,g6.xlarge && grep -q "^p5.48xlarge  *no-effect  *nvswitch " "$tmp/out"'
sed -i 's/Y2VydGlmaWNhdGVBdXRob3JpdHk=/LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==/' "$tmp/node.yaml"
ok "plan --matrix --strict exits with 11 for a setting without effect" exits 11 matrix p5.48xlarge,g6.xlarge --strict
ok "plan --strict exits with 11 for a setting without effect" eval '! "$nodestrap" plan --strict -c "file://$tmp/node.yaml" --instance-type g6.xlarge >"$tmp/out" 2>"$tmp/err" && says "(11 ESTRICT) at plan: spec.accelerator.nvidia.memoryMode: no-effect: "'
sed -i /accelerator:/d "$tmp/node.yaml"
ok "plan --matrix --strict exits with 0 without such a setting" exits 0 matrix p5.48xlarge,g6.xlarge --strict
ok "plan --matrix shows ? for an unknown number of EFA devices" eval 'exits 0 matrix trn2.3xlarge,p6e-gb300.36xlarge && [ "$(grep -c " [0-9]    ? " "$tmp/out")" = 2 ]'
node training

# ---- an image ----
mkdir -p "$tmp/image/etc/eks"; echo "Kubernetes v1.34.2-eks-113cf36" >"$tmp/image/etc/eks/kubelet-version.txt"; echo "containerd github.com/containerd/containerd/v2 2.2.1 abc" >"$tmp/image/etc/eks/containerd-version.txt"
image() { "$nodestrap" plan --root "$tmp/image" -c "file:///node.yaml" "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }; cp "$tmp/node.yaml" "$tmp/image"
ok "plan takes the versions from an image" eval 'exits 0 image --instance-type p5.48xlarge && grep -q "^software  *kubelet 1.34.2, containerd 2.2.1" "$tmp/out"; ! grep -q "^assumed.*programs\.kubelet" "$tmp/out"'
ok "--kubelet-version overrides the version of an image" eval 'exits 0 image --instance-type p5.48xlarge --kubelet-version 1.33.1 && grep -q "^software  *kubelet 1.33.1, containerd 2.2.1" "$tmp/out"'
rm "$tmp/image/etc/eks/containerd-version.txt"
ok "plan assumes the containerd version that an image lacks" eval 'exits 0 image --matrix p5.48xlarge --output json && exits 0 image --instance-type p5.48xlarge && grep -q "^software  *kubelet 1.34.2, containerd 2.1.5" "$tmp/out"'
ok "plan for an image without --instance-type is an error" eval 'exits 20 image; says "/proc/meminfo: No such file or directory: the size of memory is not known: an image has none; give --instance-type"'

# ---- --write-to ----
ok "--write-to makes a missing directory" eval 'exits 0 two --write-to "$tmp/tree" && [ -s "$tmp/tree$kubelet" ]'
ok "--write-to refuses an empty name" eval 'exits 2 two --write-to "" && says "--write-to takes the name of a directory"'
touch "$tmp/before"
ok "--write-to writes again into its own directory" eval 'type=m5.large exits 0 two --write-to "$tmp/tree"'
ok "--write-to removes earlier files and directories that the plan lacks" eval '[ -e "$tmp/tree$kubelet" ] && [ ! -e "$tmp/tree/run/nodestrap/fabric-may-start" ]'
ok ".nodestrap-plan.json lists all files of --write-to" same "$(cd "$tmp/tree" && find . -type f ! -name .nodestrap-plan.json | sed 's/.//' | sort)" \
        "$(python3 -c 'import json, sys; print("\n".join(sorted(json.load(open(sys.argv[1]))["files"])))' "$tmp/tree/.nodestrap-plan.json")"
foreign() { # PATH: --write-to refuses to write because of PATH, and changes nothing
        find "$tmp/tree" -printf '%p %s %T@\n' | sort >"$tmp/was"
        exits 2 two --write-to "$tmp/tree" && says "--write-to $tmp/tree: $tmp/tree/$1 is not from an earlier --write-to" && find "$tmp/tree" -printf '%p %s %T@\n' | sort | diff "$tmp/was" -
}
touch "$tmp/tree/etc/mine"; ok "--write-to refuses a directory with a foreign file and changes nothing" foreign etc/mine; rm "$tmp/tree/etc/mine"
mkdir "$tmp/tree/empty"; ok "--write-to refuses a directory with a foreign directory and changes nothing" foreign empty; rmdir "$tmp/tree/empty"
mv "$tmp/tree/etc/kubernetes" "$tmp/elsewhere"; ln -s "$tmp/elsewhere" "$tmp/tree/etc/kubernetes"
ok "--write-to does not follow a link in place of a directory" foreign etc/kubernetes
rm "$tmp/tree/etc/kubernetes"; mv "$tmp/elsewhere" "$tmp/tree/etc/kubernetes"
mv "$tmp/tree/.nodestrap-plan.json" "$tmp/list"; ok "--write-to refuses a directory without its list" foreign etc
ln -s "$tmp/list" "$tmp/tree/.nodestrap-plan.json"; ok "--write-to refuses a list that is a link" foreign .nodestrap-plan.json
rm "$tmp/tree/.nodestrap-plan.json"; echo '{"files": ["/etc/../../before"]}' >"$tmp/tree/.nodestrap-plan.json"; ok "--write-to removes no file outside the directory that a list names" eval 'foreign etc/containerd && [ -e "$tmp/before" ]'

# ---- failures ----
node training '  kubelet: {config: {maxPods: [}}}'
ok "plan --output json has the error as JSON" eval 'exits 11 two --output json; same "ESYNTAX 11 error ESYNTAX" "$(told "\" \".join((diff[\"code\"], str(diff[\"exit\"]), diff[\"findings\"][0][\"severity\"], diff[\"findings\"][0][\"code\"]))")"'
cp "$tmp/out" "$tmp/failure.json"
ok "plan --output json has the error on stderr, too" says 'failed (11 ESYNTAX)'
node training

# ---- the schema ----
sound() { # KIND FILE...: they match the schema, and have no key that it does not know
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
ok "a plan in JSON matches the schema" sound plan "$tmp/old.json" "$tmp/secret.json" "$tmp/live.json" "$tmp/revealed.json" "$tmp/hides.json"
ok "a difference in JSON matches the schema" sound diff "$tmp/diff.json" "$tmp/hidden.json"
ok "a --matrix table in JSON matches the schema" sound matrix "$tmp/matrix.json"
ok "a failure in JSON matches the schema" sound failure "$tmp/failure.json"
cases() { # the plans of all cases, and the failures of cases without a plan
        local case options plans=() failures=()
        for case in "$top"/tests/cases/*/; do
                options=(); [ ! -e "$case/options" ] || read -ra options <"$case/options"
                [ ! -e "$case/root" ] || continue
                if (cd "$case" && exec "$nodestrap" plan -c file://userdata "${options[@]}" --output json) >"$tmp/case-$(basename "$case").json" 2>/dev/null
                then plans+=("$tmp/case-$(basename "$case").json"); else failures+=("$tmp/case-$(basename "$case").json"); fi
        done
        sound plan "${plans[@]}" && sound failure "${failures[@]}"
}
ok "the plans and failures of all cases match the schema" cases

# ---- invalid options ----
model() { "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
ok "a plan for a type is not compared with this machine" eval 'model --output json; same "False set()" "$(of "str(\"live\" in plan) + \" \" + str(set(live))")"'
ok "a plan for a type refuses --show-diff" exits 2 model --show-diff
ok "a plan for a type refuses --detailed-exitcode with exit status 1" exits 1 model --detailed-exitcode
ok "with --detailed-exitcode an invalid --daemon exits with 1" exits 1 model --detailed-exitcode --daemon nobody
ok "an unknown option before --detailed-exitcode exits with 1" exits 1 model --no-such-option --detailed-exitcode
done_testing
