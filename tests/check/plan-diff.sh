#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a plan says of the machine that it is made on, of another plan, and of many types at once.
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
ok "in words" grep -q '^Nothing to do: [0-9]* as planned, 0 to create, 0 to change, 0 to remove, 0 unknown$' "$tmp/out"
ok "and in JSON" eval 'plan --output json && same "{'"'keep'"'} True" "$(of '"'"'str({l["state"] for l in live.values()}) + " " + str(plan["live"]["nothingToDo"])'"'"')"'
touched() { # EXPRESSION: what it says of kubelet's file; and init agrees that it is to be written
        plan --output json || return
        same "$1" "$(of "live['write-file:$kubelet']['state'] + ': ' + live['write-file:$kubelet'].get('why', '')")" && exits 2 plan --detailed-exitcode &&
                init && grep -q ': ok: [1-9][0-9]* done' "$tmp/err" && exits 0 plan --detailed-exitcode
}
chmod 600 "$root$kubelet"; ok "another mode" touched "change: mode 0600 to 0644"
echo >>"$root$kubelet"; ok "another content" touched "change: content"
mv "$root$kubelet" "$root$kubelet.bak"; ln -s config.json.bak "$root$kubelet"; ok "a link in its place" touched "change: it is no file"
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

# ---- called wrongly ----
model() { "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge "$@" >"$tmp/out" 2>"$tmp/err"; status=$?; }
ok "a model is compared with nothing" eval 'model --output json; same "False set()" "$(of "str(\"live\" in plan) + \" \" + str(set(live))")"'
ok "and cannot be" exits 2 model --show-diff
ok "nor have such an exit code; 2 is something else there" exits 1 model --detailed-exitcode
ok "as for every other mistake" exits 1 model --detailed-exitcode --daemon nobody
ok "whatever stands before it" exits 1 model --no-such-option --detailed-exitcode
done_testing
