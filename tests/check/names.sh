#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program under the names of nodeadm: its commands, its spellings, and its cache, read as nodeadm writes it and written as nodeadm reads
# it.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
for name in nodestrap nodeadm nodeadm-internal; do ln -s "$nodestrap" "$tmp/$name"; done
cat >"$tmp/node.yaml" <<'END'
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: training
    apiServerEndpoint: https://A1B2C3D4.gr7.us-west-2.eks.amazonaws.com
    certificateAuthority: |
      Y2VydGlmaWNhdGVB
      dXRob3JpdHk=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 42
      evictionMinimumReclaim: {memory.available: 500Mi}
    flags:
      - --node-labels=a=b
  instance: {}
END
called() { # NAME STATUS WORD...: exits with STATUS
        local name=$1 status=$2 rc
        shift 2
        (cd "$tmp" && exec "./$name" "$@") >"$tmp/out" 2>"$tmp/err"; rc=$?
        [ $rc = "$status" ] || { echo "exit $rc"; cat "$tmp/out" "$tmp/err"; return 1; }
}

# ---- commands ----
ok "nodeadm checks a configuration" called nodeadm 0 config check -c file://node.yaml
ok "and dumps it as JSON" called nodeadm 0 config dump -c file://node.yaml
ok "that others can read" python3 -c 'import json, sys; spec = json.load(open(sys.argv[1]))["spec"]
assert spec["kubelet"]["config"] == {"maxPods": 42, "evictionMinimumReclaim": {"memory.available": "500Mi"}}, spec' "$tmp/out"
cp "$tmp/out" "$tmp/dump"
ok "also into a file" called nodeadm 0 config dump -c file://node.yaml -o dumped.json
ok "the same" cmp "$tmp/dump" "$tmp/dumped.json"
ok "and nothing on stdout then" test ! -s "$tmp/out"
ok "an invalid one is not" eval 'echo "kind: NodeConfig" >"$tmp/bad.yaml"; called nodeadm 11 config check -c file://bad.yaml || called nodeadm 10 config check -c file://bad.yaml'
for word in plan status 'config schema' boot-hook udev-net-manager token wait; do ok "nodeadm has no $word" called nodeadm 2 "$word"; done
ok "nodeadm alone tells what to type" called nodeadm 2
ok "help is no failure" called nodeadm 0 --help
ok "and tells of nodeadm's commands alone" eval '! grep -qE "^  (plan|status|config schema) " "$tmp/out" && grep -q "^  init " "$tmp/out"'
ok "so it is for one command" called nodeadm 0 init --help
ok "the version is no failure either" called nodeadm 0 --version
cp "$tmp/out" "$tmp/version"
ok "it has one form" eval 'called nodeadm 0 --version --output json && cmp "$tmp/out" "$tmp/version" && grep -qxE "nodestrap [^ ]+" "$tmp/version"'
ok "nodestrap says it to machines, too" called nodestrap 0 --version --output json
ok "with the commit, where that is known" python3 -c 'import json, re, sys; said = json.load(open(sys.argv[1])); tables = said["tables"]; assert set(said) <= {"version", "commit", "tables"} and len(tables) > 10 and all(re.fullmatch("20[0-9]{2}-[0-9]{2}(-[0-9]{2})?", day) for day in tables.values()), said
assert "nodestrap " + said["version"] == open(sys.argv[2]).read().strip() and re.fullmatch("[0-9a-f]{12}(-dirty)?", said.get("commit", 12 * "0")), said' "$tmp/out" "$tmp/version"
cp "$tmp/out" "$tmp/json"
ok "and to people, unless the version is the commit" eval 'called nodestrap 0 --version && python3 -c "import json, sys; said = json.load(open(sys.argv[1])); v, c = said[\"version\"], said.get(\"commit\")
assert open(sys.argv[2]).read() == \"nodestrap \" + v + (\" (\" + c + \")\" if c and c != v else \"\") + \"\\n\"" "$tmp/json" "$tmp/out"'
ok "and how old each table is, where that is asked for" eval 'called nodestrap 0 version --long && python3 -c "import json, sys; lines = open(sys.argv[2]).read().splitlines()[1:]
assert {l.split()[0]: l.split()[1].rstrip(\",\") for l in lines} == json.load(open(sys.argv[1]))[\"tables\"]" "$tmp/json" "$tmp/out" && ls conf/*.csv | sed "s,.*/,,; s,[.]csv,," | diff - <(sed "1d; s/ .*//" "$tmp/out")'
ok "nodestrap itself has all" called nodestrap 0 config schema

# ---- nodeadm-internal: 1 is a failure there, whatever the cause, and 2 a command line that is none ----
for word in init plan 'config check' status token; do ok "nodeadm-internal has no $word" called nodeadm-internal 2 "$word"; done
ok "its help tells of its own" eval 'called nodeadm-internal 0 --help && grep -q "^  udev-net-manager " "$tmp/out" && ! grep -q "^  init " "$tmp/out"'
ok "so does that of a command" eval 'called nodeadm-internal 0 udev-net-manager --help && grep -q -- "-i, --interface" "$tmp/out"'
ok "alone it tells what to type" called nodeadm-internal 2
ok "an option that nobody knows" called nodeadm-internal 2 udev-net-manager --no-such
ok "a word too many" called nodeadm-internal 2 udev-net-manager ens6
ok "no interface" eval 'called nodeadm-internal 1 udev-net-manager --action add && says "--interface is missing"'
ok "an action that nobody knows" eval 'called nodeadm-internal 1 udev-net-manager -a frob -i ens6 && says "not \"frob\""'
mkdir -p "$tmp/empty/sys/class/net"
while IFS= read -r words; do
        # shellcheck disable=SC2086
        ok "what has never been there can be removed: $words" called nodeadm-internal 0 $words --root "$tmp/empty"
done <<'END'
udev-net-manager --action remove --interface ens6
udev-net-manager --action=remove --interface=ens6
udev-net-manager -a remove -i ens6
udev-net-manager -action remove -interface=ens6
-d udev-net-manager -i=ens6 -a=remove
END
ok "what is not there cannot be added" called nodeadm-internal 1 udev-net-manager -a add -i ens6 --root "$tmp/empty"
ok "which says the line that others read, with the cause" says "failed (1 EINTERFACE) at interface: ens6: no network interface has this name"
ok "under our own name that is the exit status" called nodestrap 32 udev-net-manager -a add -i ens6 --root "$tmp/empty"
ok "and a command line that is none another" called nodestrap 2 udev-net-manager -a frob -i ens6
for name in .. a/b 'a b' sixteen-letters- a:b ''; do ok "no interface is called \"$name\"" called nodestrap 2 udev-net-manager --action remove --interface "$name"; done

# ---- spellings ----
while IFS= read -r words; do
        # shellcheck disable=SC2086
        ok "nodeadm takes $words" called nodeadm 0 $words
done <<'END'
config check -c=file://node.yaml
config check --config-source file://node.yaml
config check --config-source=file://node.yaml
config check -config-source file://node.yaml
config check -config-source=file://node.yaml
config check --c file://node.yaml
-c file://node.yaml config check
config -c file://node.yaml check
config check -c file://node.yaml -c file://node.yaml
-d config check -c file://node.yaml
--development config check -c file://node.yaml
config check -c file://node.yaml --development=true
config check -c file://node.yaml --development=false
config dump -c file://node.yaml -o=dumped.json
config dump -c file://node.yaml --config-output dumped.json
END
ok "a value that looks like an option stays a value" eval 'called nodeadm 2 config check -c --help && says "\"--help\""'
ok "a switch takes no other value" called nodeadm 2 config check -c file://node.yaml --development=perhaps
ok "a word too many is refused" called nodeadm 2 config check -c file://node.yaml now
ok "an unknown option is" called nodeadm 2 config check -c file://node.yaml --no-such
ok "a source of another kind is" called nodeadm 2 config check -c https://example.com/
cat >"$tmp/part.yaml" <<'END'
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {kubelet: {flags: ["--v=2"]}}
END
ok "a part of a configuration is dumped, as nodeadm does" eval 'called nodeadm 0 config dump -c file://part.yaml && grep -q -- "--v=2" "$tmp/out" && says "warning: part.yaml, line 3: spec.cluster.name: is missing"'
ok "not by nodestrap" called nodestrap 11 config dump -c file://part.yaml
ok "nor is what cannot be read" eval 'sed "s/spec:.*/spec: {kubelet: 7}/" "$tmp/part.yaml" >"$tmp/bad.yaml"; called nodeadm 11 config dump -c file://bad.yaml'
ok "it is not valid, though" called nodeadm 11 config check -c file://part.yaml

# ---- the cache ----
# What nodeadm writes: every struct, empty or not; the authority in one line; no kind; the facts of the instance.
spec='{"cluster": {"name": "training", "apiServerEndpoint": "https://A1B2C3D4.gr7.us-west-2.eks.amazonaws.com",
 "certificateAuthority": "Y2VydGlmaWNhdGVBdXRob3JpdHk=", "cidr": "10.100.0.0/16"}, "containerd": {},
 "instance": {"localStorage": {}, "network": {}},
 "kubelet": {"config": {"evictionMinimumReclaim": {"memory.available": "500Mi"}, "maxPods": 42}, "flags": ["--node-labels=a=b"]}}'
status='{"instance": {"id": "i-0f1e2d3c4b5a69788", "region": "us-west-2", "type": "m5.large", "availabilityZone": "us-west-2c", "mac": "02:aa:aa:aa:aa:aa",
 "privateDnsName": "ip-10-1-1-1.cached.internal"}, "default": {"sandboxImage": "localhost/kubernetes/pause:latest"}, "kubeletVersion": "v1.33.4"}'
environment=etc/eks/kubelet/environment
fresh() { # a machine, with the nodeadm cache
        rm -rf "$tmp/root"
        mkdir "$tmp/root"
        "$here/../fixtures/expand.sh" m5-large "$tmp/root"
        echo i-0f1e2d3c4b5a69788 >"$tmp/root/sys/devices/virtual/dmi/id/board_asset_tag"        # as the metadata service says
        mkdir -p "$tmp/root/run/eks/nodeadm"
        printf '{"metadata":{"creationTimestamp":null},"spec":%s,"status":%s}\n' "${1:-$spec}" "${2:-$status}" >"$tmp/root/run/eks/nodeadm/config.json"
        : >"$tmp/log"
}
init() { called nodeadm "${status_wanted:-0}" init --root "$tmp/root" --config-cache /run/eks/nodeadm/config.json "$@"; }
written() { [ -e "$tmp/root/$environment" ]; }
mock --imds "$here/../fixtures/imds-m5" --user-data "$tmp/node.yaml" --ec2-listen 127.0.0.1:0
fresh
ok "a cache that says the same is used" init --skip run
ok "for the facts of the instance" grep -q -- --hostname-override=ip-10-1-1-1.cached.internal "$tmp/root/$environment"
ok "so that EC2 is not asked" sent 0 ' ec2 '
ok "nodeadm's kubeconfig names aws" grep -qx '        command: aws' "$tmp/root/var/lib/kubelet/kubeconfig"
ok "and cannot name anything else" eval 'called nodeadm 2 init --root "$tmp/root" --credential-plugin nodestrap && says "writes the kubeconfig of nodeadm, which names aws"'
ok "nodestrap's own can, and does" eval 'called nodestrap 0 init --skip run --root "$tmp/root" && grep -qx "        command: /usr/bin/nodestrap" "$tmp/root/var/lib/kubelet/kubeconfig"'
ok "but aws where it is told" eval 'called nodestrap 0 init --skip run --root "$tmp/root" --credential-plugin aws && grep -qx "        command: aws" "$tmp/root/var/lib/kubelet/kubeconfig"'
ok "of other plugins it has not heard" eval 'called nodestrap 2 plan --credential-plugin gcp && says "takes nodestrap or aws, not \"gcp\""'
fresh
ok "a daemon that is none" init --skip run --daemon ""
ok "writes nothing of the daemons'" eval '! written && [ ! -e "$tmp/root/etc/containerd/config.toml" ]'
ok "nor does one that nobody knows, with a warning" eval 'init --skip run --daemon docker && ! written && says "it ignores \"docker\""'
ok "nodestrap refuses it" eval 'called nodestrap 2 init --daemon docker && says "containerd or kubelet"'
ok "a phase that nobody knows is skipped, with a warning" eval 'init --skip run --skip network && written && says "it ignores \"network\""'
ok "nodeadm has no phase of the devices" eval 'init --skip run --skip devices && written && says "it ignores \"devices\""'
ok "nodestrap has" called nodestrap 0 init --skip devices --skip run --root "$tmp/root"
ok "and refuses what it has not" eval 'called nodestrap 2 init --skip network && says "config, devices or run"'
fresh
mkdir "$tmp/root/empty.d"
ok "the cache is dumped where no source has a configuration" eval 'called nodeadm 0 config dump -c file:///empty.d --root "$tmp/root" --config-cache /run/eks/nodeadm/config.json && grep -q node-labels=a=b "$tmp/out"'
fresh
ok "with it the config phase can be skipped" init --skip config --skip run
ok "and is" eval '! written'
fresh "${spec/42/43}"
ok "a cache that says something else brings the config phase back" init --skip config --skip run
ok "all of it" written
ok "and the facts are asked for anew" eval '! grep -q cached.internal "$tmp/root/$environment" && at_least 1 " ec2 "'
ok "the cache then says what is so" grep -q '"maxPods":42' "$tmp/root/run/eks/nodeadm/config.json"
ok "for nobody else to read" test "$(stat -c %a "$tmp/root/run/eks/nodeadm/config.json")" = 600
ok "and is of nodeadm's shape" python3 -c 'import base64, json, sys
cache = json.load(open(sys.argv[1]))
assert list(cache) == ["metadata", "spec", "status"] and list(cache["spec"])[:4] == ["cluster", "containerd", "instance", "kubelet"], cache
cluster, kubelet, instance = cache["spec"]["cluster"], cache["spec"]["kubelet"], cache["status"]["instance"]
assert base64.b64decode(cluster["certificateAuthority"]) == b"certificateAuthority", cluster
assert kubelet["config"]["evictionMinimumReclaim"] == {"memory.available": "500Mi"} and kubelet["flags"] == ["--node-labels=a=b"], kubelet
assert set(instance) == {"id", "region", "type", "availabilityZone", "mac", "privateDnsName"} and all(instance.values()), instance
assert cache["status"]["kubeletVersion"] == "v1.33.4", cache["status"]
assert cache["status"]["default"] == {"sandboxImage": "localhost/kubernetes/pause:latest"}, cache["status"]' "$tmp/root/run/eks/nodeadm/config.json"
cp "$tmp/root/$environment" "$tmp/environment"
rm "$tmp/root/$environment"; : >"$tmp/log"
ok "our own is used in turn" init --skip run
ok "it leads to the same" cmp "$tmp/environment" "$tmp/root/$environment"
ok "without EC2" sent 0 ' ec2 '
fresh "$spec" "${status/i-0f1e2d3c4b5a69788/i-0bbbbbbbbbbbbbbb2}"
ok "a cache of another instance, left in an image, is not believed" init --skip run
ok "which is told" says i-0bbbbbbbbbbbbbbb2
ok "and the instance is asked" eval '! grep -q cached.internal "$tmp/root/$environment"'
fresh
echo '{"spec": ' >"$tmp/root/run/eks/nodeadm/config.json"
ok "a broken cache is no failure" init --skip run
ok "but a warning" says 'warning: /run/eks/nodeadm/config.json'
echo '#!/bin/sh' >"$tmp/shell"
mock --imds "$here/../fixtures/imds-m5" --user-data "$tmp/shell" --ec2-listen 127.0.0.1:0
fresh
ok "where no source has a NodeConfig the cached one is used" init --skip run
ok "which is told, too" says 'no source has a NodeConfig'
ok "with its settings" grep -q 'maxPods": 42' "$tmp/root/etc/kubernetes/kubelet/config.json"
rm -r "$tmp/root/run"
status_wanted=10 ok "without one there is nothing to do" init --skip run
mock --imds "$here/../fixtures/imds-m5" --user-data "$tmp/bad.yaml" --ec2-listen 127.0.0.1:0
fresh
ok "a NodeConfig that is wrong is not hidden by the cache" eval 'status_wanted=11 init --skip run'
ok "and nothing is written" eval '! written'
done_testing
