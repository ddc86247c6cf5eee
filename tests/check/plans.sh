#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The plan: it exists for each instance type, is the same anywhere, has no secrets, has the documented format, and is what init does.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2016,SC2154,SC2163,SC2120  # tmp and here are its; functions are handed to ok
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") top=$(realpath "$here/../..") canary=CaNaRy-5e1f
cat >"$tmp/node.yaml" <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: training
    apiServerEndpoint: https://A1B2C3D4.gr7.us-west-2.eks.amazonaws.com
    certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==
    cidr: 10.100.0.0/16
  kubelet:
    config: {registryPullQPS: 20, staticPodURLHeader: {Authorization: [$canary]}}
    flags: [--v=2]
  containerd:
    config: |
      [plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]
      password = "$canary"
    baseRuntimeSpec: {process: {env: [TOKEN=$canary]}}
  instance:
    environment:
      default: {HTTPS_PROXY: "http://me:$canary@proxy.example:3128"}
      kubelet: {SECRET: $canary}
  featureGates: {InstanceIdNodeName: true}
END
plan() { "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge --kubelet-version 1.34.2 --containerd-version 2.1.5 "$@"; }
planned() { plan --output json "$@" 2>"$tmp/err"; }
id() { python3 -c 'import json, sys; print(json.load(sys.stdin)["planId"])'; }
of() { python3 -c 'import json, sys; plan = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }     # EXPRESSION of a plan
same() { [ "$1" = "$2" ] || { diff <(echo "$1") <(echo "$2"); false; }; }

# ---- every type ----
types=$(grep -v '^#' "$top/conf/instance-types.csv" | cut -d, -f1 | grep -F .)
every_type() {
        local type
        for type in $types; do
                "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type "$type" --output json >"$tmp/out" 2>"$tmp/err" || { echo "$type"; cat "$tmp/err"; return 1; }
                grep -qF "\"type\": \"$type\"," "$tmp/out" || { echo "$type"; return 1; }
        done
}
ok "the table has more than 90 instance types" test "$(wc -w <<<"$types")" -gt 90
ok "plan succeeds for each type of the table" every_type
cp "$tmp/node.yaml" "$tmp/no-disks.yaml"
sed -i 's/^  instance:/&\n    localStorage: {strategy: RAID0}/' "$tmp/node.yaml"
ok "plan succeeds for each type with RAID0 of the instance stores" every_type
planned >"$tmp/disks"; planned --skip devices --skip run >"$tmp/disks-config"; planned --skip config >"$tmp/disks-run"
cp "$tmp/no-disks.yaml" "$tmp/node.yaml"

# ---- the same anywhere ----
planned >"$tmp/first"
text=$(plan 2>&1)
name=$(id <"$tmp/first")
anywhere() { same "$name" "$(planned | id)" && same "$text" "$(plan 2>&1)"; }
elsewhere() { (export "$@"; anywhere); }
ok "the same input gives the same plan, byte for byte" cmp "$tmp/first" <(planned)
for locale in C C.utf8 tr_TR.UTF-8 de_DE.UTF-8; do ok "the plan is the same under the locale $locale" elsewhere LC_ALL=$locale LANG=$locale LANGUAGE=$locale; done
ok "the plan is the same in another time zone" elsewhere TZ=Pacific/Chatham
ok "the plan is the same with another environment" elsewhere HOME=/nowhere USER=nobody HOSTNAME=elsewhere TMPDIR=/nowhere COLUMNS=20 TERM=dumb AWS_REGION=eu-west-1 \
        AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=y NODE_NAME=z
bare() { same "$name" "$(env -i "$nodestrap" plan -c "file://$tmp/node.yaml" --instance-type p5.48xlarge --kubelet-version 1.34.2 --containerd-version 2.1.5 --output json | id)"; }
ok "the plan is the same with an empty environment" bare
from_root() { cd / && anywhere; }
ok "the plan is the same from another directory" from_root
masked() { umask 077; anywhere; }
ok "the plan is the same under another umask" masked
cp "$tmp/node.yaml" "$tmp/other.yaml"
sed -i '1i # a comment' "$tmp/node.yaml"
ok "a comment does not change the plan id" same "$name" "$(planned | id)"
python3 -c 'import json, sys; print(json.dumps(json.loads(sys.stdin.read())))' >"$tmp/as-json" < <("$nodestrap" config dump -c "file://$tmp/other.yaml" 2>/dev/null)
cp "$tmp/as-json" "$tmp/node.yaml"
ok "JSON in place of YAML does not change the plan id" same "$name" "$(planned | id)"
cp "$tmp/other.yaml" "$tmp/node.yaml"

# ---- another plan, another id ----
differs() { local other; other=$(planned "$@" | id); [ -n "$other" ] && [ "$other" != "$name" ]; }
edited() { sed "$1" "$tmp/other.yaml" >"$tmp/node.yaml"; local rc=0; differs || rc=1; cp "$tmp/other.yaml" "$tmp/node.yaml"; return $rc; }
ok "another kubelet version changes the plan id" differs --kubelet-version 1.33.1
ok "another containerd version changes the plan id" differs --containerd-version 2.0.5
ok "another instance type changes the plan id" differs --instance-type g6.xlarge
for edit in 's/name: training/name: training-2/' 's/--v=2/--v=3/' 's/registryPullQPS: 20/registryPullQPS: 21/' 's|10.100.0.0/16|10.101.0.0/16|' \
            "s/SECRET: .*/SECRET: other}/" 's/InstanceIdNodeName: true/InstanceIdNodeName: false/'; do ok "the plan id changes after $edit" edited "$edit"; done

# ---- nothing secret ----
silent() { "$@" >"$tmp/out" 2>"$tmp/err"; [ -s "$tmp/out" ] || [ -s "$tmp/err" ] || { echo "says nothing"; return 1; }; lacks "$canary"; }
ok "the planned files have the secret of the test" grep -rqF "$canary" <(planned --write-to "$tmp/secret"; cat "$tmp/secret/etc/nodestrap/environment/default")
ok "the plan as text has no secret" silent plan
ok "the plan in JSON has no secret" silent planned
ok "the debug log has no secret" silent plan --development
sed -i "/^    environment:/i\    sysctl: {kernel.domainname: $canary-sysctl}" "$tmp/node.yaml"
ok "text and JSON have no secret sysctl" eval 'silent plan && grep -q "kernel.domainname  *\[secret\]" "$tmp/out" && silent planned'
ok "--show-secrets shows the secrets in text and JSON" eval 'plan --show-secrets 2>"$tmp/err" | grep -qF "kernel.domainname $canary-sysctl" && planned --show-secrets | of "plan[\"files\"]" | grep -qF "http://me:$canary@"'
guesses() { # the digests of a revealed plan that would confirm a guess of a secret: of files, and of what units read
        of '"\n".join(sorted({a[k] for a in plan["actions"] if a.get("revealed") for k in ("sha256", "inputs") if k in a}))'
}
planned --show-secrets | guesses >"$tmp/guesses"
ok "--show-secrets shows at least six digests that would confirm a guess" test "$(wc -l <"$tmp/guesses")" -ge 6
ok "the plan in JSON has no digest that would confirm a guess" eval 'planned >"$tmp/out"; ! grep -oFf "$tmp/guesses" "$tmp/out"'
ok "the plan in JSON has no size and no digest of hidden content" same "set()" "$(of '{(a["id"], k) for a in plan["actions"] + plan["files"] if a.get("secret") or a.get("content", "") is None for k in ("sha256", "size", "inputs") if k in a}' <"$tmp/out")"
ok "the plan as text has no size and no digest of a secret file" eval 'plan >"$tmp/out" 2>/dev/null; grep -q "0600, secret" "$tmp/out" && ! grep -E " bytes|[0-9a-f]{64}" "$tmp/out" | grep -v "^[0-9]* steps. Plan sha256:"'
ok "the plan id is the same with --show-secrets" same "$(planned --show-secrets | id)" "$(planned | id)"
if [ "$EUID" = 0 ] && chmod 755 "$tmp" && install -m 755 "$nodestrap" "$tmp/nodestrap" && chmod 644 "$tmp/node.yaml" && setpriv --reuid 65534 --clear-groups test -x "$tmp/nodestrap" 2>/dev/null; then
        theirs() { setpriv --reuid 65534 --clear-groups "$tmp/nodestrap" plan -c "$1" --kubelet-version 1.34.2 --containerd-version 2.1.5 --show-secrets "${@:2}" >"$tmp/out" 2>"$tmp/err"; }
        mkdir -p "$tmp/machine/theirs" && "$here/../fixtures/expand.sh" p5-48xlarge "$tmp/machine" && cp "$tmp/node.yaml" "$tmp/machine/" && install -o 65534 -m 600 "$tmp/node.yaml" "$tmp/machine/theirs/"
        ok "--show-secrets refuses a NodeConfig of this machine that the user does not own" eval '! theirs file:///node.yaml --root "$tmp/machine" && lacks "$canary" && grep -q "(2 EUSAGE).*sudo nodestrap plan --show-secrets" "$tmp/err"'
        ok "--show-secrets shows a user the secrets of his own NodeConfig" eval 'theirs file:///theirs/node.yaml --root "$tmp/machine" && grep -qF "$canary-sysctl" "$tmp/out"'
        ok "--show-secrets shows a user his own NodeConfig by an escaped URI" eval 'theirs "file:/theirs/node%2eyaml" --root "$tmp/machine" && grep -qF "$canary-sysctl" "$tmp/out"'
        ok "--show-secrets shows another user a plan for an instance type" eval 'theirs "file://$tmp/node.yaml" --instance-type p5.48xlarge && grep -qF "$canary-sysctl" "$tmp/out"'
else count=$((count + 1)); echo "ok $count - --show-secrets refuses a NodeConfig of another user # SKIP no other user here"
fi
cp "$tmp/other.yaml" "$tmp/node.yaml"
sed -i 's/SECRET: \(.*\)}/SECRET: "\1\\n"}/; s/--v=2/"--v=2 '$canary'"/' "$tmp/node.yaml"
ok "an error message has no secret" silent plan
cp "$tmp/other.yaml" "$tmp/node.yaml"
only_in() { rm -rf "$tmp/secret"; silent planned --write-to "$tmp/secret" && [ -s "$tmp/out" ] && grep -qF "$canary" "$tmp/secret/$1" && [ "$(stat -c %a "$tmp/secret/$1")" = 600 ] || { ls -lR "$tmp/secret"; cat "$tmp/err"; false; }; }
# one at a time: each of them alone makes its file secret
for words in "--storage-driver-password=$canary" "--storage-driver-password,$canary" "--manifest-url=http://u:$canary@h/x"; do
        sed "s|--v=2|--v=2,${words//,/\",\"}|; s|\[\(--v=2\),\(.*\)\]$|[\1, \"\2\"]|; s/, staticPodURLHeader.*}}/}/" "$tmp/other.yaml" >"$tmp/node.yaml"
        ok "the file of kubelet flags is secret with ${words%%[=,]*}" only_in etc/eks/kubelet/environment
done
sed "s|staticPodURLHeader.*}}|staticPodURL: 'http://u:$canary@h/x'}|" "$tmp/other.yaml" >"$tmp/node.yaml"
ok "the kubelet file is secret with a password in a URL" only_in etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf
sed "/registry.configs/,/password/d; s|^    config: .$|&\n      [plugins.'io.containerd.cri.v1.images'.registry.mirrors.'d']\n      endpoint = ['https://u:$canary@m']|" "$tmp/other.yaml" >"$tmp/node.yaml"
ok "the containerd file is secret with a password in a mirror URL" only_in etc/containerd/config.toml
sed "s|apiServerEndpoint: https://|&u:$canary@|" "$tmp/other.yaml" >"$tmp/node.yaml"
ok "the error for an endpoint with a password does not show the password" silent plan
cp "$tmp/other.yaml" "$tmp/node.yaml"

# ---- a machine without a device has the plan id of a whole machine, and a step that names the device ----
lose() { # FIXTURE VENDOR:DEVICE: without the last such PCI function
        local root=$tmp/lost-$1 address whole
        [ -e "$root" ] || { mkdir "$root"; "$here/../fixtures/expand.sh" "$1" "$root"; cp "$tmp/node.yaml" "$root/"; }
        whole=$("$nodestrap" plan --root "$root" -c file:///node.yaml --output json 2>"$tmp/err" | id)
        address=$(grep -lr "^PCI_ID=$2" "$root/sys/bus/pci/devices" | sort | tail -1) && [ -n "$address" ] || return 1
        mv "${address%/uevent}" "$tmp/lost"
        "$nodestrap" plan --root "$root" -c file:///node.yaml --output json >"$tmp/out" 2>"$tmp/err"
        mv "$tmp/lost" "${address%/uevent}"
        same "$whole" "$(id <"$tmp/out")" && same 1 "$(of '[len(a["missing"]) for a in plan["actions"] if a["id"] == "check-machine:devices"][0]' <"$tmp/out")" &&
                same 1 "$(of '[w["code"] for w in plan["warnings"]].count("missing-device")' <"$tmp/out")"
}
while read -r fixture device; do ok "the plan of $fixture without one $device has the same id and names the missing device" lose "$fixture" "$device"; done <<END
p4d-24xlarge 10DE:20B0
p4d-24xlarge 10DE:1AF1
p5-48xlarge 10DE:2330
p5-48xlarge 10DE:22A3
p6-b200 10DE:2901
p6-b200 15B3:1021
p6-b300 10DE:3182
p6-b300 15B3:1021
p6e-gb200 10DE:2941
p6e-gb300 10DE:31C
g5-48xlarge 10DE:2237
g7e 10DE:2BB5
END

# ---- units that do not read the written files, and dead links ----
begins() { local said; said=$("${@:2}"); [ "${said#"$1"}" != "$said" ] || { echo "$said"; false; }; }
lab=$tmp/lost-p5-48xlarge; mkdir -p "$lab"/etc/systemd/system/kubelet.service.d "$lab/var/lib"; ln -s /mnt/gone "$lab/var/lib/containerd"
printf '[Service]\nEnvironmentFile=/etc/eks/kubelet/environment\nExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS\n' >"$lab/etc/systemd/system/kubelet.service"
warned() { "$nodestrap" plan --root "$lab" -c file:///node.yaml --output json "$@" 2>"$tmp/err" |
        of '"; ".join("%s %s" % (w["code"], w["text"]) for w in plan["warnings"] if w["code"] in ("unit-reads", "dead-link"))'; }
dead='dead-link /var/lib/containerd is a link to /mnt/gone, which does not exist, so no daemon can write there: make the directory, or remove the link'
ok "a warning names a link whose target is gone" same "$dead" "$(warned)"
printf '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/etc/x\n' >"$lab/etc/systemd/system/kubelet.service.d/lab.conf"
reads='unit-reads /etc/systemd/system/kubelet.service.d/lab.conf starts kubelet without $NODEADM_KUBELET_ARGS'
ok "a warning names a drop-in that starts kubelet without the written arguments" begins "$dead; $reads" warned
ok "the plan for another machine has no warning of a drop-in here" same "" "$(warned --instance-type p5.48xlarge | grep unit-reads)"

# ---- a Grace whose kernel has base pages of 64 KiB ----
"$here/../fixtures/expand.sh" gb200-64k "$(mkdir "$tmp/grace"; echo "$tmp/grace")"
grace() { # HUGEPAGES WORDS EXPRESSION: plans it with this spec.instance.hugePages; the expression must give WORDS
        sed "s/^  instance:/&\n    hugePages: $1/" "$tmp/other.yaml" >"$tmp/grace/node.yaml"
        "$nodestrap" plan --root "$tmp/grace" -c file:///node.yaml --output json >"$tmp/out" 2>"$tmp/err" || cat "$tmp/err"
        same "$2" "$(of "$3" <"$tmp/out" 2>&1)"
}
grace_refuses() { # HUGEPAGES WORDS
        sed "s/^  instance:/&\n    hugePages: $1/" "$tmp/other.yaml" >"$tmp/grace/node.yaml"
        ! "$nodestrap" plan --root "$tmp/grace" -c file:///node.yaml >"$tmp/out" 2>"$tmp/err" && says "$2"
}
reserved='[(a["id"], a["pages"]["count"]) for a in plan["actions"] if a["type"] == "reserve-pages"]'
pages='" ".join("%s=%s" % (r[10:], v) for r, v in plan["node"]["capacity"].items() if r.startswith("hugepages-"))'
explicit() { echo "{mode: explicit, pages: [$1]}"; }
ok "64 KiB: the plan has four GPUs in PCI domains above 0000, and NUMA nodes with gaps" grace '{mode: keep}' \
        "tray 4 ['0008', '0009', '0018', '0019'] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 26]" \
        '" ".join(map(str, (plan["facts"]["gpus"]["class"], plan["facts"]["gpus"]["count"], sorted(a[:4] for d in plan["facts"]["pci"] if d["id"] == "10de:2941" for a in d["addresses"].split()),
                sorted(n["id"] for n in plan["facts"]["numaNodes"]))))'
ok "64 KiB: the Node has the page sizes of this kernel, and no others" grace '{mode: keep}' '16Gi=0 2Mi=0 512Mi=0' "$pages"
ok "64 KiB: the plan reserves each size, larger ones first, and subtracts it from memory" grace "$(explicit '{size: 2Mi, count: 100}, {size: 512Mi, count: 8, numaNode: 1}, {size: 16Gi, count: 2}')" \
        "[('reserve-pages:16Gi', 2), ('reserve-pages:512Mi on node 1', 8), ('reserve-pages:2Mi', 100)] 16Gi=32Gi 2Mi=200Mi 512Mi=4Gi True" \
        "' '.join(map(str, ($reserved, $pages, int(plan['node']['capacity']['memory'][:-2]) - int(plan['node']['allocatable']['memory'][:-2]) > 36 << 20)))"
ok "64 KiB: mode off sets each size to 0" grace '{mode: off}' "[('reserve-pages:16Gi', 0), ('reserve-pages:512Mi', 0), ('reserve-pages:2Mi', 0)]" "$reserved"
ok "64 KiB: mode auto reserves no pages, with a warning that says why" grace '{mode: auto}' "[] True" "' '.join(map(str, ($reserved, any('pages of 512 MiB' in w['text'] for w in plan['warnings']))))"
ok "64 KiB: plan refuses another size and lists the sizes of the kernel" grace_refuses "$(explicit '{size: 1Gi, count: 1}')" 'names a size of 1Gi, but this kernel has 2Mi, 512Mi, 16Gi'
ok "64 KiB: plan refuses pages on a NUMA node without CPUs" grace_refuses "$(explicit '{size: 512Mi, count: 1, numaNode: 18}')" 'NUMA node 18, which has no CPUs'
ok "64 KiB: plan refuses pages on a NUMA node that does not exist" grace_refuses "$(explicit '{size: 512Mi, count: 1, numaNode: 11}')" 'NUMA node 11, which this machine does not have'
ok "64 KiB: plan refuses more pages than the memory of the CPUs" grace_refuses "$(explicit '{size: 512Mi, count: 1903}')" 'asks for 974336 MiB, but the machine has only 951160 MiB'
printf '#!/bin/sh\n' >"$tmp/grace/usr/bin/nvidia-smi"; chmod +x "$tmp/grace/usr/bin/nvidia-smi"
ok "64 KiB: with a driver and EFA the plan sets the option for GPU memory over EFA" grace '{mode: keep}' 'GrdmaPciTopoCheckOverride=1??' \
        '[w for a in plan["actions"] if a["type"] == "check-driver" for w in a["words"]][-1]'
modelled() { # TYPE PAGES EXPECTED
        sed "s/^  instance:/&\n    hugePages: $(explicit "$2")/" "$tmp/other.yaml" >"$tmp/model.yaml"
        "$nodestrap" plan -c "file://$tmp/model.yaml" --instance-type "$1" --output json >"$tmp/out" 2>"$tmp/err" || { says "$3"; return; }
        same "$3" "$(of "$pages + ' ' + ' '.join(w['code'] for w in plan['warnings'] if w['code'] == 'page-size')" <"$tmp/out" 2>&1)"
}
ok "the plan for an arm64 type assumes a kernel with base pages of 4 KiB" modelled p6e-gb200.36xlarge '{size: 1Gi, count: 1}' '1Gi=1Gi 2Mi=0 32Mi=0 64Ki=0 '
ok "a size that needs base pages of 64 KiB changes that assumption, with a warning" modelled p6e-gb200.36xlarge '{size: 512Mi, count: 2}' '16Gi=0 2Mi=0 512Mi=1Gi page-size'
ok "plan refuses sizes that need base pages of both 4 KiB and 64 KiB" modelled p6e-gb200.36xlarge '{size: 512Mi, count: 1}, {size: 1Gi, count: 1}' \
        "names a size of 512Mi, but the kernel of Amazon Linux has 64Ki, 2Mi, 32Mi, 1Gi (a kernel with base pages of 64 KiB has 2Mi, 512Mi, 16Gi)"
ok "plan refuses a size that x86_64 lacks and lists its two sizes" modelled p5.48xlarge '{size: 512Mi, count: 1}' "but the kernel of Amazon Linux has 2Mi, 1Gi"

# ---- a Grace whose driver brings the GPU memory online: a first boot before that, a later boot, and a plan for the type ----
mkdir "$tmp"/boot{1,2}; for boot in 1 2; do "$here/../fixtures/expand.sh" p6e-gb200 "$tmp/boot$boot"; done
rm -r "$tmp"/boot1/sys/devices/system/node/node{[2-9],??}
sed -i 's/^MemTotal:.*/MemTotal:      973988600 kB/' "$tmp/boot1/proc/meminfo"
numa() { # 1|2|model SPEC: the plan of the first boot, of the next boot, of the type
        sed '/^  kubelet:/,$d' "$tmp/other.yaml" | cat - <(printf '  kubelet: {config: {maxPods: 110, %s}}\n  accelerator: {nvidia: {memoryMode: numa}}\n  instance: {hugePages: {mode: auto}}\n' "$2") >"$tmp/model.yaml"
        if [ "$1" = model ]; then set -- -c "file://$tmp/model.yaml" --instance-type p6e-gb200.36xlarge --kubelet-version 1.33.4 --containerd-version 2.1.5
        else cp "$tmp/model.yaml" "$tmp/boot$1/node.yaml"; set -- --root "$tmp/boot$1" -c file:///node.yaml; fi
        "$nodestrap" plan "$@" --output json 2>"$tmp/err" || cat "$tmp/err"
}
nodes='" ".join(map(str, (len(plan["facts"]["numaNodes"]), plan["facts"]["kubeletNumaNodes"], plan["node"]["approximate"].get("memory", "")[:9], [w["code"] for w in plan["warnings"] if w["code"].startswith("numa")])))'
for boot in 1 2 model; do numa $boot 'topologyManagerPolicy: best-effort' >"$tmp/numa-$boot"; done
ok "numa: a first boot sees two nodes, and plans for the 34 nodes that kubelet will find" same "2 34 at least: ['numa-nodes']" "$(of "$nodes" <"$tmp/numa-1")"
ok "numa: the next boot sees 34 nodes" same "34 34  ['numa-nodes']" "$(of "$nodes" <"$tmp/numa-2")"
ok "numa: the first boot and the next boot have the same plan id" same "$(id <"$tmp/numa-1")" "$(id <"$tmp/numa-2")"
ok "numa: the plan for the type sees two nodes, and plans for 34" same "2 34 at least: ['numa-nodes']" "$(of "$nodes" <"$tmp/numa-model")"
told='[w["path"] + " " + w["text"] for w in plan["warnings"] if w["code"] == "numa-nodes"]'
ok "numa: both boots and the type have the same warning" same "$(of "$told" <"$tmp/numa-1")$(of "$told" <"$tmp/numa-model")" "$(of "$told" <"$tmp/numa-2")$(of "$told" <"$tmp/numa-1")"
ok "numa: huge pages are reserved by node in both boots and for the type" same "[True] [True] [True]" "$(for boot in 1 2 model; do of '[a["pages"]["byNode"] for a in plan["actions"] if a["type"] == "reserve-pages"]' <"$tmp/numa-$boot"; done | xargs)"

# ---- format ----
shape() { python3 - "$1" <<'PY'
import hashlib, json, re, sys
plan = json.load(open(sys.argv[1]))
def need(ok, what):
    if not ok: sys.exit(what)
need(list(plan) == ['formatVersion', 'planId', 'facts', 'node', 'warnings', 'actions', 'files', 'criticalPath'], f'keys: {list(plan)}')
need(re.fullmatch('sha256:[0-9a-f]{64}', plan['planId']), plan['planId'])
need(isinstance(plan['facts'], dict) and plan['facts']['instance']['type'], 'facts')
node, resources = plan['node'], {'cpu', 'memory', 'pods', 'ephemeral-storage'}
need(set(node) - {'providerID'} == {'name', 'labels', 'taints', 'settings', 'capacity', 'allocatable', 'approximate', 'unknown'} and node['name'], f'node: {node}')
need(list(node['capacity']) == sorted(node['capacity']) and set(node['allocatable']) == set(node['capacity']), f'resources: {node}')
need({r for r in node['capacity'].keys() | node['unknown'] if not r.startswith('hugepages-')} == resources, f'resources: {node}')
need(not node['capacity'].keys() & node['unknown'] and node['approximate'].keys() <= node['capacity'].keys(), f'doubts: {node}')
need(all(re.fullmatch('[0-9]+(m|[kMGTPE]|[KMGTPE]i)?', q) for o in ('capacity', 'allocatable') for q in node[o].values()), f'quantities: {node}')
for w in plan['warnings']:
    need(set(w) <= {'code', 'where', 'path', 'text'} and {'code', 'text'} <= set(w), f'warning {w}')
seen = set()
keys = {'with', 'afterAny', 'optional', 'retry', 'lenient', 'pages', 'class', 'count', 'words', 'devices', 'layouts', 'missing', 'inputs', 'mode', 'sha256', 'size', 'secret',
        'content', 'revealed', 'state', 'disks', 'serials', 'blank', 'array', 'arrayUuid', 'level', 'filesystem', 'uuid', 'source', 'moves', 'timedFrom'}
for a in plan['actions']:
    need(list(a)[:8] == ['id', 'phase', 'type', 'group', 'target', 'why', 'after', 'timeoutMs'], f'action {list(a)}')
    need(a['id'] not in seen, f'{a["id"]} twice')
    need(set(a['after']) | set(a.get('afterAny', [])) <= seen, f'{a["id"]} stands before what it waits for')
    need(set(a) - set(list(a)[:8]) <= keys, f'{a["id"]} has {set(a) - keys}')
    need(a['phase'] in ('config', 'devices', 'run') and a['timeoutMs'] > 0 and a['why'], f'action {a}')
    need(a['id'] == f'{a["type"]}:{a["target"]}', a['id'])
    seen.add(a['id'])
path, by_id = plan['criticalPath'], {a['id']: a for a in plan['actions']}
need(path[-1:] == [i for i in by_id if i == 'start-unit:kubelet.service'], f'the path ends with {path[-1:]}')
for before, behind in zip(path, path[1:]): need(before in by_id[behind]['after'] + by_id[behind].get('afterAny', []), f'{behind} does not wait for {before}')
written = {a['target']: a for a in plan['actions'] if a['type'] == 'write-file'}
need(list(written) == [f['path'] for f in plan['files']], 'files are not those of the actions')
for f in plan['files']:
    action = written[f['path']]
    need(re.fullmatch('0[0-7]{3}', f['mode']) and f['mode'] == action['mode'], f'mode of {f["path"]}')
    if f['content'] is None: need(action['secret'] and f['mode'] == '0600' and not {'sha256', 'size'} & (action.keys() | f.keys()), f'{f["path"]} is not shown')
    else: need(hashlib.sha256(f['content'].encode()).hexdigest() == action['sha256'] and not action['secret'], f'content of {f["path"]}')
PY
}
ok "the plan in JSON has the documented format" shape "$tmp/first"
planned --skip devices --skip run >"$tmp/config"; planned --skip config --skip run >"$tmp/devices"; planned --skip config --skip devices >"$tmp/run"
ok "the JSON of the config phase has the documented format" shape "$tmp/config"
ok "the JSON of the devices phase and of the run phase has the documented format" eval 'shape "$tmp/devices" && shape "$tmp/run"'
ok "the JSON of a plan with instance stores has the documented format" shape "$tmp/disks"
ok "a plan with instance stores makes the array and the filesystem, and mounts it" same "['create-raid raid0 8 disks', 'make-filesystem xfs', 'mount noatime']" \
        "$(of '[a["type"] + " " + a["with"] for a in plan["actions"] if a["type"] in ("create-raid", "make-filesystem", "mount")]' <"$tmp/disks")"
ok "a plan with instance stores has the same id in each phase" same "$(id <"$tmp/disks")$(id <"$tmp/disks")" "$(id <"$tmp/disks-config")$(id <"$tmp/disks-run")"

sed 's/cidr:/sider: x\n    cidr:/' "$tmp/other.yaml" >"$tmp/node.yaml"
ok "the plan in JSON has a warning for an unknown key of the input" same "['unknown-field: spec.cluster.sider']" \
        "$(planned | of '[w["code"] + ": " + w["path"] for w in plan["warnings"] if "where" in w and w["code"] != "api-by-proxy"]')"
ok "the plan as text has a warning for an unknown key of the input" grep -q 'spec.cluster.sider: .*unknown-field' <(plan 2>/dev/null | tr -s '\n ' ' ')
ok "the warning for an unknown key is not on stderr, too" test ! -s "$tmp/err"
cp "$tmp/other.yaml" "$tmp/node.yaml"

ok "the critical path of a p5 has the driver, the fabric and kubelet" same "['load-module:nvidia', 'start-unit:nvidia-fabricmanager.service', 'await-fabric:fabric', 'start-unit:kubelet.service']" \
        "$(of '[i for i in plan["criticalPath"] if i.split(":")[1] in ("nvidia", "nvidia-fabricmanager.service", "fabric", "kubelet.service") and not i.startswith("check")]' <"$tmp/first")"
ok "the plan as text marks each step of the critical path" same "$(of 'len(plan["criticalPath"])' <"$tmp/first")" "$(plan 2>/dev/null | grep -c '^  > ')"
ok "a plan without kubelet has no critical path" same '[]' "$(planned -d containerd | of 'plan["criticalPath"]')"

# ---- filters ----
phases='{a["phase"] for a in plan["actions"]}' groups='sorted({a["group"] for a in plan["actions"]})'
ok "--skip devices --skip run leaves the config phase" same "{'config'}" "$(of "$phases" <"$tmp/config")"
ok "--skip config --skip run leaves the devices phase" same "{'devices'}" "$(of "$phases" <"$tmp/devices")"
ok "--skip config --skip devices leaves the run phase" same "{'run'}" "$(of "$phases" <"$tmp/run")"
ok "--skip config leaves the devices phase and the run phase" same "['devices', 'run']" "$(planned --skip config | of "sorted($phases)")"
ok "the plan id is the same with --skip" same "$name$name$name" "$(id <"$tmp/config")$(id <"$tmp/devices")$(id <"$tmp/run")"
ok "the three phases together have all steps of the plan" same "$(of 'sorted(a["id"] for a in plan["actions"])' <"$tmp/first")" \
        "$(python3 -c 'import json, sys; print(sorted(a["id"] for f in sys.argv[1:] for a in json.load(open(f))["actions"]))' "$tmp/config" "$tmp/devices" "$tmp/run")"
ok "-s and --skip are the same" same "$(cat "$tmp/config")" "$(planned -s devices -s run)"
ok "a plan without any phase has no steps" same '[]' "$(planned -s run -s devices -s config | of 'plan["actions"]')"
ok "--daemon keeps the steps of one daemon and of the machine" same "['accelerator', 'kubelet', 'network', 'system']" "$(planned --daemon kubelet | of "$groups")"
ok "-d and --daemon are the same, and -d can be repeated" same "['accelerator', 'containerd', 'kubelet', 'network', 'system']" "$(planned -d kubelet -d containerd | of "$groups")"
ok "a plan for one daemon removes no files of the other" same '[]' "$(planned -d kubelet | of '[a for a in plan["actions"] if a["type"] == "prune-files"]')"

# ---- files ----
same_files() { python3 - "$1" "$2" <<'PY'
import json, os, stat, sys
plan, top = json.load(open(sys.argv[1])), sys.argv[2]
want = {f['path']: f for f in plan['files']}
for path, f in want.items():
    at = top + path
    mode = stat.S_IMODE(os.lstat(at).st_mode)
    if oct(mode) != oct(int(f['mode'], 8)): sys.exit(f'{path} has mode {oct(mode)} instead of {f["mode"]}')
    if f['content'] is not None and open(at).read() != f['content']: sys.exit(f'{path} has another content')
blocks = {a['target'] for a in plan['actions'] if a['type'] == 'write-block'}
more = {os.path.join(d, n)[len(top):] for d, _, names in os.walk(top) for n in names} - set(want) - blocks - {'/.nodestrap-plan.json'}
if more: sys.exit(f'also there: {more}')
PY
}
planned --write-to "$tmp/tree" >/dev/null
ok "--write-to writes every file with its mode" same_files "$tmp/first" "$tmp/tree"
(umask 077; planned --write-to "$tmp/tree-077" >/dev/null)
ok "--write-to writes the same modes under another umask" same_files "$tmp/first" "$tmp/tree-077"
(cd "$tmp" && planned --write-to tree-here >/dev/null)
ok "--write-to takes a directory relative to the working directory" same_files "$tmp/first" "$tmp/tree-here"
planned --write-to "$tmp/tree-config" --skip devices --skip run >/dev/null
ok "--write-to writes only files of phases that --skip leaves" same_files "$tmp/config" "$tmp/tree-config"
touch "$tmp/plain"
ok "--write-to names a file in place of a directory in an error" eval '! planned --write-to "$tmp/plain/x" >/dev/null && says "$tmp/plain/x"'

# ---- init --dry-run ----
"$here/../fixtures/expand.sh" m5-large "$(mkdir "$tmp/root"; echo "$tmp/root")"
cp "$tmp/node.yaml" "$tmp/root/"
as_plan() { # OPTION...: both commands print the same, and change nothing
        find "$tmp/root" -printf '%P %s %m %T@\n' | sort >"$tmp/before"
        "$nodestrap" plan --root "$tmp/root" "$@" >"$tmp/by-plan" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
        "$nodestrap" init --dry-run --root "$tmp/root" "$@" >"$tmp/by-init" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
        find "$tmp/root" -printf '%P %s %m %T@\n' | sort | diff "$tmp/before" - && diff "$tmp/by-plan" "$tmp/by-init"
}
ok "init --dry-run and plan print the same for a file" as_plan -c file:///node.yaml
ok "init --dry-run and plan print the same JSON for a part of the plan" as_plan -c file:///node.yaml --output json --skip run -d kubelet
mock --imds "$top/tests/fixtures/imds-m5" --user-data "$tmp/node.yaml"
ok "init --dry-run and plan print the same for user data" as_plan -c imds://user-data
ok "init --dry-run asks the metadata service for the user data" grep -q user-data "$tmp/log"
ok "init --dry-run for user data has the instance id" grep -q 'instance   i-0' "$tmp/by-init"
ok "init --dry-run for user data assumes no facts" eval '! grep -q ^assumed "$tmp/by-init"'
: >"$tmp/log"
ok "init --dry-run and plan still print the same for a file with a metadata service" as_plan -c file:///node.yaml
ok "plan for a file makes no metadata request" sent 0 .
done_testing
