#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program under the names of nodeadm: its commands, its option syntax, and its cache, which it reads and writes in the nodeadm format.
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
ok "nodeadm dumps a configuration as JSON" called nodeadm 0 config dump -c file://node.yaml
ok "the JSON of nodeadm config dump has the values of the NodeConfig" python3 -c 'import json, sys; spec = json.load(open(sys.argv[1]))["spec"]
assert spec["kubelet"]["config"] == {"maxPods": 42, "evictionMinimumReclaim": {"memory.available": "500Mi"}}, spec' "$tmp/out"
cp "$tmp/out" "$tmp/dump"
ok "nodeadm dumps a configuration into a file" called nodeadm 0 config dump -c file://node.yaml -o dumped.json
ok "the dumped file is the same as the dump on stdout" cmp "$tmp/dump" "$tmp/dumped.json"
ok "nodeadm prints nothing on stdout if it dumps into a file" test ! -s "$tmp/out"
ok "nodeadm config check refuses an invalid configuration" eval 'echo "kind: NodeConfig" >"$tmp/bad.yaml"; called nodeadm 11 config check -c file://bad.yaml || called nodeadm 10 config check -c file://bad.yaml'
for word in plan status 'config schema' boot-hook udev-net-manager token wait; do ok "nodeadm has no $word" called nodeadm 2 "$word"; done
ok "nodeadm without a command is a usage error" called nodeadm 2
ok "nodeadm --help succeeds" called nodeadm 0 --help
ok "nodeadm --help lists only the commands of nodeadm" eval '! grep -qE "^  (plan|status|config schema) " "$tmp/out" && grep -q "^  init " "$tmp/out"'
ok "nodeadm init --help succeeds" called nodeadm 0 init --help
ok "nodeadm --version succeeds" called nodeadm 0 --version
cp "$tmp/out" "$tmp/version"
ok "nodeadm --version is the same with --output json" eval 'called nodeadm 0 --version --output json && cmp "$tmp/out" "$tmp/version" && grep -qxE "nodestrap [^ ]+" "$tmp/version"'
ok "nodestrap --version --output json succeeds" called nodestrap 0 --version --output json
ok "the version in JSON has the version, the commit if known, and the dates of the tables" python3 -c 'import json, re, sys; said = json.load(open(sys.argv[1])); tables = said["tables"]; assert set(said) <= {"version", "commit", "tables"} and len(tables) > 10 and all(re.fullmatch("20[0-9]{2}-[0-9]{2}(-[0-9]{2})?", day) for day in tables.values()), said
assert "nodestrap " + said["version"] == open(sys.argv[2]).read().strip() and re.fullmatch("[0-9a-f]{12}(-dirty)?", said.get("commit", 12 * "0")), said' "$tmp/out" "$tmp/version"
cp "$tmp/out" "$tmp/json"
ok "nodestrap --version has the commit, unless the version is the commit" eval 'called nodestrap 0 --version && python3 -c "import json, sys; said = json.load(open(sys.argv[1])); v, c = said[\"version\"], said.get(\"commit\")
assert open(sys.argv[2]).read() == \"nodestrap \" + v + (\" (\" + c + \")\" if c and c != v else \"\") + \"\\n\"" "$tmp/json" "$tmp/out"'
ok "nodestrap version --long has the date of each table" eval 'called nodestrap 0 version --long && python3 -c "import json, sys; lines = open(sys.argv[2]).read().splitlines()[1:]
assert {l.split()[0]: l.split()[1].rstrip(\",\") for l in lines} == json.load(open(sys.argv[1]))[\"tables\"]" "$tmp/json" "$tmp/out" && ls conf/*.csv | sed "s,.*/,,; s,[.]csv,," | diff - <(sed "1d; s/ .*//" "$tmp/out")'
ok "nodestrap has the command config schema" called nodestrap 0 config schema

# ---- nodeadm-internal: its exit status is 1 for each failure, and 2 for an invalid command line ----
for word in init plan 'config check' status token; do ok "nodeadm-internal has no $word" called nodeadm-internal 2 "$word"; done
ok "nodeadm-internal --help lists only its own commands" eval 'called nodeadm-internal 0 --help && grep -q "^  udev-net-manager " "$tmp/out" && ! grep -q "^  init " "$tmp/out"'
ok "nodeadm-internal udev-net-manager --help lists its options" eval 'called nodeadm-internal 0 udev-net-manager --help && grep -q -- "-i, --interface" "$tmp/out"'
ok "nodeadm-internal without a command is a usage error" called nodeadm-internal 2
ok "nodeadm-internal refuses an unknown option" called nodeadm-internal 2 udev-net-manager --no-such
ok "nodeadm-internal refuses an extra argument" called nodeadm-internal 2 udev-net-manager ens6
ok "nodeadm-internal exits with 1 without --interface" eval 'called nodeadm-internal 1 udev-net-manager --action add && says "--interface is missing"'
ok "nodeadm-internal exits with 1 for an unknown action" eval 'called nodeadm-internal 1 udev-net-manager -a frob -i ens6 && says "not \"frob\""'
mkdir -p "$tmp/empty/sys/class/net"
while IFS= read -r words; do
        # shellcheck disable=SC2086
        ok "nodeadm-internal removes an interface that never existed: $words" called nodeadm-internal 0 $words --root "$tmp/empty"
done <<'END'
udev-net-manager --action remove --interface ens6
udev-net-manager --action=remove --interface=ens6
udev-net-manager -a remove -i ens6
udev-net-manager -action remove -interface=ens6
-d udev-net-manager -i=ens6 -a=remove
END
ok "nodeadm-internal exits with 1 if the interface to add does not exist" called nodeadm-internal 1 udev-net-manager -a add -i ens6 --root "$tmp/empty"
ok "the last line of nodeadm-internal has the code and the cause" says "failed (1 EINTERFACE) at interface: ens6: no network interface has this name"
ok "nodestrap udev-net-manager exits with 32 if the interface does not exist" called nodestrap 32 udev-net-manager -a add -i ens6 --root "$tmp/empty"
ok "nodestrap udev-net-manager exits with 2 for an unknown action" called nodestrap 2 udev-net-manager -a frob -i ens6
for name in .. a/b 'a b' sixteen-letters- a:b ''; do ok "udev-net-manager refuses the interface name \"$name\"" called nodestrap 2 udev-net-manager --action remove --interface "$name"; done

# ---- option syntax ----
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
ok "nodeadm takes --help after -c as the value of -c" eval 'called nodeadm 2 config check -c --help && says "\"--help\""'
ok "nodeadm refuses --development=perhaps" called nodeadm 2 config check -c file://node.yaml --development=perhaps
ok "nodeadm refuses an extra argument" called nodeadm 2 config check -c file://node.yaml now
ok "nodeadm refuses an unknown option" called nodeadm 2 config check -c file://node.yaml --no-such
ok "nodeadm refuses an https source" called nodeadm 2 config check -c https://example.com/
cat >"$tmp/part.yaml" <<'END'
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {kubelet: {flags: ["--v=2"]}}
END
ok "nodeadm dumps an incomplete configuration, with a warning" eval 'called nodeadm 0 config dump -c file://part.yaml && grep -q -- "--v=2" "$tmp/out" && says "warning: part.yaml, line 3: spec.cluster.name: is missing"'
ok "nodestrap refuses to dump an incomplete configuration" called nodestrap 11 config dump -c file://part.yaml
ok "nodeadm refuses to dump a configuration of a wrong type" eval 'sed "s/spec:.*/spec: {kubelet: 7}/" "$tmp/part.yaml" >"$tmp/bad.yaml"; called nodeadm 11 config dump -c file://bad.yaml'
ok "nodeadm config check refuses an incomplete configuration" called nodeadm 11 config check -c file://part.yaml

# ---- the cache ----
# nodeadm writes every struct, empty or not; the authority in one line; no kind; and the facts of the instance.
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
ok "init with a cache of the same configuration succeeds" init --skip run
ok "init takes the node name from the cache" grep -q -- --hostname-override=ip-10-1-1-1.cached.internal "$tmp/root/$environment"
ok "init with a cache of the same configuration makes no EC2 request" sent 0 ' ec2 '
ok "the kubeconfig of nodeadm names the aws program" grep -qx '        command: aws' "$tmp/root/var/lib/kubelet/kubeconfig"
ok "nodeadm refuses --credential-plugin" eval 'called nodeadm 2 init --root "$tmp/root" --credential-plugin nodestrap && says "writes the kubeconfig of nodeadm, which names aws"'
ok "the kubeconfig of nodestrap names the nodestrap program" eval 'called nodestrap 0 init --skip run --root "$tmp/root" && grep -qx "        command: /usr/bin/nodestrap" "$tmp/root/var/lib/kubelet/kubeconfig"'
ok "the kubeconfig of nodestrap names aws with --credential-plugin aws" eval 'called nodestrap 0 init --skip run --root "$tmp/root" --credential-plugin aws && grep -qx "        command: aws" "$tmp/root/var/lib/kubelet/kubeconfig"'
ok "nodestrap refuses an unknown --credential-plugin" eval 'called nodestrap 2 plan --credential-plugin gcp && says "takes nodestrap or aws, not \"gcp\""'
fresh
ok "nodeadm init --daemon \"\" succeeds" init --skip run --daemon ""
ok "nodeadm init --daemon \"\" writes no file of a daemon" eval '! written && [ ! -e "$tmp/root/etc/containerd/config.toml" ]'
ok "nodeadm init ignores an unknown daemon, with a warning" eval 'init --skip run --daemon docker && ! written && says "it ignores \"docker\""'
ok "nodestrap init refuses an unknown daemon" eval 'called nodestrap 2 init --daemon docker && says "containerd or kubelet"'
ok "nodeadm init ignores an unknown phase, with a warning" eval 'init --skip run --skip network && written && says "it ignores \"network\""'
ok "nodeadm init ignores the phase devices, with a warning" eval 'init --skip run --skip devices && written && says "it ignores \"devices\""'
ok "nodestrap init takes --skip devices" called nodestrap 0 init --skip devices --skip run --root "$tmp/root"
ok "nodestrap init refuses an unknown phase" eval 'called nodestrap 2 init --skip network && says "config, devices or run"'
fresh
mkdir "$tmp/root/empty.d"
ok "nodeadm config dump dumps the cache if no source has a configuration" eval 'called nodeadm 0 config dump -c file:///empty.d --root "$tmp/root" --config-cache /run/eks/nodeadm/config.json && grep -q node-labels=a=b "$tmp/out"'
fresh
ok "nodeadm init --skip config succeeds with a cache" init --skip config --skip run
ok "nodeadm init --skip config writes no file of the config phase" eval '! written'
fresh "${spec/42/43}"
ok "nodeadm init --skip config succeeds with a cache of another configuration" init --skip config --skip run
ok "nodeadm init repeats the config phase for a cache of another configuration" written
ok "nodeadm init asks EC2 again for a cache of another configuration" eval '! grep -q cached.internal "$tmp/root/$environment" && at_least 1 " ec2 "'
ok "nodeadm init updates the cache" grep -q '"maxPods":42' "$tmp/root/run/eks/nodeadm/config.json"
ok "only root can read the cache" test "$(stat -c %a "$tmp/root/run/eks/nodeadm/config.json")" = 600
ok "the cache has the format of nodeadm" python3 -c 'import base64, json, sys
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
ok "init with the cache of an earlier init succeeds" init --skip run
ok "init with the cache of an earlier init writes the same file" cmp "$tmp/environment" "$tmp/root/$environment"
ok "init with the cache of an earlier init makes no EC2 request" sent 0 ' ec2 '
fresh "$spec" "${status/i-0f1e2d3c4b5a69788/i-0bbbbbbbbbbbbbbb2}"
ok "init succeeds with a cache of another instance" init --skip run
ok "a message names the other instance of the cache" says i-0bbbbbbbbbbbbbbb2
ok "init ignores the node name in a cache of another instance" eval '! grep -q cached.internal "$tmp/root/$environment"'
fresh
echo '{"spec": ' >"$tmp/root/run/eks/nodeadm/config.json"
ok "a broken cache is not an error" init --skip run
ok "a broken cache causes a warning" says 'warning: /run/eks/nodeadm/config.json'
echo '#!/bin/sh' >"$tmp/shell"
mock --imds "$here/../fixtures/imds-m5" --user-data "$tmp/shell" --ec2-listen 127.0.0.1:0
fresh
ok "init succeeds with a cache if no source has a NodeConfig" init --skip run
ok "a message says that no source has a NodeConfig" says 'no source has a NodeConfig'
ok "init takes the settings of the cache if no source has a NodeConfig" grep -q 'maxPods": 42' "$tmp/root/etc/kubernetes/kubelet/config.json"
rm -r "$tmp/root/run"
status_wanted=10 ok "init without a NodeConfig and without a cache exits with 10" init --skip run
mock --imds "$here/../fixtures/imds-m5" --user-data "$tmp/bad.yaml" --ec2-listen 127.0.0.1:0
fresh
ok "a wrong NodeConfig is an error even with a cache" eval 'status_wanted=11 init --skip run'
ok "init writes nothing for a wrong NodeConfig" eval '! written'
done_testing
