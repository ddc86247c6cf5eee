#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The files shipped beside the program are right. The schema is the one that the program prints. Each NodeConfig is valid without a
# warning, and the plan for its machine has the subject of the example. The recipes do what they say.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") HELPERS=${HELPERS:-build/tests/helpers} top=$(realpath "$here/../.."); conf=$top/conf examples=$top/conf/examples
schema() { # FILE [--strict]: schema-tool makes FILE from the table of fields, and the program prints it
        local file=$1; shift
        "$HELPERS/schema-tool" "$@" | diff - "$conf/$file" && "$nodestrap" config schema "$@" | diff - "$conf/$file" || { echo "schema-tool $* >conf/$file"; false; }
}
accepted() { "$nodestrap" config check --strict -c "file://$1" 2>&1 | tee "$tmp/out"; [ "${PIPESTATUS[0]}" = 0 ] && ! grep -q warning "$tmp/out"; }
warned() { sed -n '/^Warnings/,$p' "$1" | grep -oE '\[[a-z-]+\]$' | tr -d '[]' | xargs; }
planned() { # FILE TYPE: a plan for that type with no warning but assumed-facts, since the machine is another
        "$nodestrap" plan -c "file://$1" --instance-type "$2" --kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04 >"$tmp/out" 2>&1 &&
                grep -qE "^machine *$2(, from the table of instance types)?: " "$tmp/out" && [ "$(warned "$tmp/out")" = assumed-facts ] || { sed -n '1,2p;/^Warnings/,$p' "$tmp/out"; false; }
}
in_fixture() { # FILE TYPE FIXTURE WARNINGS PATTERN...
        local file=$1 type=$2 fixture=$3 warnings=$4 root=$tmp/root pattern; shift 4
        rm -rf "$root"; mkdir "$root"; "$here/../fixtures/expand.sh" "$fixture" "$root"; cp "$file" "$root/userdata"
        "$nodestrap" plan --root "$root" -c file:///userdata >"$tmp/out" 2>&1 && grep -q "^machine *$type: " "$tmp/out" &&
                [ "$(warned "$tmp/out")" = "$(xargs <<<"assumed-facts $warnings")" ] || { cat "$tmp/out"; return 1; }
        for pattern; do grep -qE -- "$pattern" "$tmp/out" || { echo "the plan lacks $pattern"; cat "$tmp/out"; return 1; }; done
}
# Example → its fixture, the warnings there beside assumed-facts (the images lack something), and the subject of the example.
what_for() { # NAME: the words of in_fixture behind TYPE
        case $1 in
        g6-xlarge)              set -- g6-xlarge "" 'class single' 'create-raid|make-filesystem .*/0 ' 'set-clocks';;
        inf1-6xlarge)           set -- inf1 no-driver '4 Neuron devices';;
        p4d-24xlarge-mig)       set -- p4d-24xlarge "" 'set-mig-mode' 'partition-gpus .*1g\.5gb' 'mark-node';;
        p4de-24xlarge)          set -- p4de-24xlarge 'efa-far missing-device' 'check-efa .*4 devices' 'check-health' 'create-raid .* 8 disks';;
        p5-48xlarge)            set -- p5-48xlarge no-huge-pages '32 EFA devices' 'await-fabric' 'check-efa .*32 devices';;
        p6-b200-48xlarge)       set -- p6-b200 no-fast-image-pull 'load-module +ib_umad' 'await-fabric' '/mnt/k8s-disks/8 ';;
        p6-b300-48xlarge)       set -- p6-b300 no-fast-image-pull 'load-module +ib_umad' 'reserve-pages' 'check-efa .*16 devices';;
        p6e-gb200)              set -- p6e-gb200 numa-nodes 'mask-unit +nvidia-imex' 'CDMM|CoherentGPUMemoryMode=driver';;
        p6e-gb200-imex-host)    set -- p6e-gb200 "" '/etc/nvidia-imex/nodes_config.cfg' 'await-imex' 'make-channel';;
        readiness-gate)         set -- g6-xlarge "" 'taint +readiness.k8s.io/nodestrap=:NoSchedule' 'repair-condition';;
        plain)                  set -- m5-large "" 'start-unit +kubelet.service';;
        plain-ipv6)             set -- m5-large "" 'DNS fd12:3456:789a::a' 'set-sysctl';;
        plain-outpost)          set -- m5-large "" 'write-block +/etc/hosts';;
        plain-proxy)            set -- m5-large "" 'environment';;
        plain-volume)           set -- m5-volume "" 'make-filesystem +/mnt/k8s-volumes/xvdb xfs' 'bind +/var/lib/containerd ';;
        trn2-48xlarge)          set -- trn2 no-driver '16 Neuron devices' 'check-efa .*16 devices';;
        *)                      echo "tests/check/examples.sh does not say which machine $1 is an example for" >&2; return 1;;
        esac
        words=("$@")
}
ok "conf/nodeconfig.schema.json is what config schema prints" schema nodeconfig.schema.json
ok "conf/nodeconfig-strict.schema.json is what config schema --strict prints" schema nodeconfig-strict.schema.json --strict
for file in "$examples"/*.userdata; do
        name=$(basename "$file" .userdata) type=$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$file" | tail -1)
        ok "config check accepts $name" accepted "$file"
        ok "$name has a plan for its instance type" planned "$file" "$type"
        words=(); what_for "$name"; ok "$name has a plan in its fixture, ${words[0]:-none}" in_fixture "$file" "$type" "${words[@]}"
done

if [ -n "${NODESTRAP_TRANSLATED-}" ]; then done_testing; exit; fi       # the rest is shell, or repeats the tests above

# ---- config example ----
root=$tmp/installed
ok "make install puts the examples where config example looks" env -u MAKEFLAGS make -s -C "$top" install DESTDIR="$root" BINARY="$nodestrap"
example() { "$nodestrap" config example --root "$root" "$@" >"$tmp/example" 2>"$tmp/err"; }
of_table() { grep -v '^#' "$conf/instance-types.csv" | awk -F, -v type="$1" '$1 == type { print $'"$2"' }'; }
# The NodeConfig has the accelerators and EFA devices of the type, and no key without effect. Warnings are only of facts that a
# model, or a table, lacks.
starts() { # TYPE: config check and plan accept what is printed for it
        local type=$1 taint='' efa unknown
        example "$type" && accepted "$tmp/example" || { cat "$tmp/err"; return 1; }
        "$nodestrap" plan --instance-type "$type" --kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04 "$tmp/example" >"$tmp/out" 2>&1 || { tail -3 "$tmp/out"; return 1; }
        unknown=$(warned "$tmp/out" | xargs -n 1 | grep -vxE 'assumed-facts|driver-version|unknown-eni-limits|efa-unknown|type-unconfirmed|unused-instance-store')
        case $(of_table "$type" 5) in nvidia-*) taint=nvidia.com/gpu;; aws-*) taint=aws.amazon.com/neuron;; esac
        efa=$(of_table "$type" 8); [ "$type" != p6e-gb200.36xlarge ] || efa=4     # as AWS's guide recommends, of 16
        [ -z "$unknown" ] && [ "$(grep -o '{key: [^,]*' "$tmp/example" | cut -c7-)" = "$taint" ] || { echo "$unknown, want a taint of $taint"; return 1; }
        [ -z "$efa" ] || ! grep -q expectedDevices "$tmp/example" || grep -q "expectedDevices: $efa}" "$tmp/example" || { echo "$efa EFA devices"; return 1; }
        [ "$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$tmp/example" | tail -1)" = "$type" ] || { head -4 "$tmp/example"; return 1; }
}
all_start() { local type; for type in $(sed 's/,.*//; /^#/d' "$conf/instance-types.csv") m5.large c7g.xlarge g4ad.xlarge; do starts "$type" || { echo "$type"; return 1; }; done; }
ok "config example prints a NodeConfig that is valid and has a plan for each type" all_start
written() { local name own; while read -r name own _; do [[ $name == '#'* ]] || { example "$own" && diff "$tmp/example" "$examples/$name"; } || return; done <"$examples/types"; }
ok "config example prints an example file unchanged for its own type" written
refuses() { local code=$1 sentence=$2; shift 2; example "$@"; [ $? = "$code" ] && grep -qF -- "$sentence" "$tmp/err" || { cat "$tmp/err"; return 1; }; }
ok "config example suggests the nearest type for an unknown type" refuses 2 'this version does not know the instance type "p5.44xlarge"; did you mean p5.48xlarge?' p5.44xlarge
ok "config example without a type is an error that shows the usage" refuses 2 'config example takes one instance type: nodestrap config example p5.48xlarge'
ok "config example with two types is an error" refuses 2 'takes one instance type' p5.48xlarge p4d.24xlarge
echo 'p5-48xlarge.userdata p5.48xlarge' >"$root/usr/lib/nodestrap/examples/types"
ok "a list of types without a line for the type is an error" refuses 12 '/usr/lib/nodestrap/examples/types has no file for m5.large' m5.large
rm "$root/usr/lib/nodestrap/examples/p5-48xlarge.userdata"
ok "a missing example file is an error that names the file" refuses 12 "/usr/lib/nodestrap/examples/p5-48xlarge.userdata below $root cannot be read: No such file or directory; install the nodestrap package, or see conf/examples in its source code" p5.48xlarge

# ---- recipes ----
mkdir "$tmp/bin"; ln -s "$nodestrap" "$tmp/bin/nodestrap"
ok "the recipes have valid shell syntax" bash -c 'for f; do bash -n "$f" || exit; done' bash "$examples"/*.sh
checked() { PATH=$tmp/bin:$PATH bash "$examples/check-node-configs.sh" "$examples" "$tmp/plans" && [ "$(find "$tmp/plans" -name '*.plan' | wc -l) $(find "$tmp/plans" -name '*.json' | wc -l)" = "$(find "$examples" -name '*.userdata' | wc -l | sed 's/.*/& &/')" ]; }
ok "the CI job checks and plans every example" checked
broken() { mkdir "$tmp/broken"; sed 's/strategy: RAID0/strategy: RAID5/' "$examples/p5-48xlarge.userdata" >"$tmp/broken/p5.userdata"; sed '/^#/d' "$examples/g6-xlarge.userdata" >"$tmp/broken/g6.userdata"
        ! PATH=$tmp/bin:$PATH bash "$examples/check-node-configs.sh" "$tmp/broken" >"$tmp/out" 2>&1 && grep -q '^p5: .*strategy' "$tmp/out" && grep -q '^g6: no instance type' "$tmp/out" || { cat "$tmp/out"; false; }; }
ok "the CI job fails for a wrong NodeConfig and for a NodeConfig without an instance type" broken
yaml() { mkdir "$tmp/yaml" && cp "$examples/g6-xlarge.userdata" "$tmp/yaml/g6.yaml" && cp "$examples/g6-xlarge.userdata" "$tmp/yaml/g6.userdata" &&
        PATH=$tmp/bin:$PATH bash "$examples/check-node-configs.sh" "$tmp/yaml" "$tmp/yaml-plans" && cmp "$tmp/yaml-plans/g6.plan" "$tmp/yaml-plans/g6.yaml.plan" &&
        sed 's/^kind: .*/kind: Node/' "$examples/g6-xlarge.userdata" >"$tmp/yaml/bad.yaml" && ! PATH=$tmp/bin:$PATH bash "$examples/check-node-configs.sh" "$tmp/yaml" >"$tmp/out" && grep -q '^bad.yaml: .*kind' "$tmp/out"; }
ok "the CI job takes a .yaml file beside a .userdata file of the same name" yaml
none() { ! PATH=$tmp/bin:$PATH bash "$examples/check-node-configs.sh" "$tmp/bin" >"$tmp/out" && grep -q 'it has no \*.userdata' "$tmp/out"; }
ok "the CI job fails with a message for a folder without NodeConfigs" none
# The aws of this test checks the request and saves the user data.
cat >"$tmp/bin/aws" <<'E'
#!/usr/bin/env python3
import base64, json, os, sys
assert sys.argv[1:5] == ["ec2", "create-launch-template", "--launch-template-name", "p5"], sys.argv
data = json.load(open(sys.argv[6][len("file://"):]))
assert set(data) == {"ImageId", "InstanceType", "IamInstanceProfile", "NetworkInterfaces", "MetadataOptions", "UserData"}, data
assert data["InstanceType"] == os.environ["TYPE"] and data["IamInstanceProfile"] == {"Name": "nodes"}, data
cards = [i["NetworkCardIndex"] for i in data["NetworkInterfaces"]]
assert cards[0] == 0 and len(set(cards)) == len(cards) and max(cards) < int(os.environ["CARDS"]), cards
efa = [i for i in data["NetworkInterfaces"] if i["InterfaceType"].startswith("efa")]
assert len(efa) == int(os.environ["EFA"]), data["NetworkInterfaces"]
open(os.environ["SENT"], "wb").write(base64.b64decode(data["UserData"]))
E
chmod +x "$tmp/bin/aws"; printf '#!/bin/sh\necho hello\n' >"$tmp/script"
dumped() { "$nodestrap" config dump -c "file://$1"; }
template() { # FILE [SCRIPT]: what it sends is the same NodeConfig
        PATH=$tmp/bin:$PATH SENT=$tmp/sent bash "$examples/launch-template.sh" p5 "$TYPE" ami-0123456789abcdef0 nodes sg-0123456789abcdef0 "$@" && diff <(dumped "$1") <(dumped "$tmp/sent")
}
export TYPE=p5.48xlarge CARDS=32 EFA=32
ok "a launch template gets the NodeConfig as MIME" template "$examples/p5-48xlarge.userdata"
with_script() { template "$examples/p5-48xlarge.userdata" "$tmp/script" && [ "$(python3 -c 'import email, sys; print(*(p.get_content_type() for p in email.message_from_file(open(sys.argv[1])).walk()))' "$tmp/sent")" = "multipart/mixed application/node.eks.aws text/x-shellscript" ]; }
ok "a launch template gets the NodeConfig and a script as MIME" with_script
of_type() { TYPE=$1 CARDS=$2 EFA=$3 template "$examples/$4.userdata"; }
ok "a launch template keeps a NodeConfig that is already a MIME message" of_type p6e-gb200.36xlarge 17 4 p6e-gb200
ok "a launch template of p6-b200.48xlarge has EFA on each network card" of_type p6-b200.48xlarge 8 8 p6-b200-48xlarge
ok "a launch template of p6-b300.48xlarge has EFA on all network cards but the first" of_type p6-b300.48xlarge 17 16 p6-b300-48xlarge
ok "a launch template of g6.xlarge has no EFA" of_type g6.xlarge 1 0 g6-xlarge
large() { { cat "$examples/p5-48xlarge.userdata"; for _ in {1..300}; do echo "# what makes it longer than EC2 takes, though it says the same over and over"; done; } >"$tmp/large"; template "$tmp/large" && [ "$(wc -c <"$tmp/sent")" -lt 16384 ]; }
ok "a launch template compresses a NodeConfig that is too long for EC2" large
# The units, files and options that the recipes name must exist.
named() { local u; for u in $(sed -n 's/^systemctl enable //p' "$examples/image.sh"); do [ -e "$top/units/$u.service" ] || { echo "no unit $u"; return 1; }; done
        for u in $(grep -ohE '[a-z0-9-]+\.(userdata|sh)\b' "$examples"/*.{hcl,tf,yml} | grep -vx karpenter.sh | sort -u); do [ -e "$examples/$u" ] || { echo "no file $u"; return 1; }; done
        for u in $(grep -oE -- ' --[a-z-]+' <<<"$(grep '^nodestrap doctor' "$examples/image.sh")"); do "$nodestrap" doctor --help | grep -qF -- "$u" || { echo "no option $u"; return 1; }; done; }
ok "the units, files and options that the recipes name exist" named
if python3 -c 'import yaml' 2>/dev/null; then ok "the GitHub workflow is YAML and runs the CI job" python3 - "$examples/github-actions.yml" <<'P'
import sys, yaml
steps = yaml.safe_load(open(sys.argv[1]))["jobs"]["check"]["steps"]
assert any("check-node-configs.sh node-configs plans" in s.get("run", "") for s in steps), steps
P
fi
done_testing
