#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# User data that cannot become a node: the message says where and what, the exit code which kind, and nothing on the machine changes.
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"

# bad DESCRIPTION CODE WORD STEP WORDS: stdin has the user data
bad() {
        cat >"$tmp/user-data"
        init --config-cache "$cache"
        ok "$1: init fails with exit status $2 ($3)" fails "$2" "$3" "$4"
        ok "$1: the last line says where and what" says_last "$5"
}
mock --imds "$fixtures/imds-m5" --user-data "$tmp/user-data"
settled
rm "$root$cache"                # nothing to fall back on
none='add a NodeConfig, bare or as MIME type'
bad 'empty user data' 10 ENOCONFIG source "no NodeConfig found in user-data (empty)" </dev/null
bad 'a script alone' 10 ENOCONFIG source "$none" <<<$'#!/bin/sh\nexport PASSWORD=CANARYscript'
ok 'a script alone: a message calls it a script' says 'user-data: foreign-data: the first line marks this as a script'
none='user-data: still base64 after decoding'
bad 'base64 twice' 10 ENOCONFIG source "$none" < <(good | base64 | base64 -w 0)
bad 'gzip twice' 10 ENOCONFIG source "${none/base64/gzip}" < <(good | gzip | gzip | base64)
none='add a NodeConfig, bare or as MIME type'
bad 'a MIME message with only a script' 10 ENOCONFIG source "$none" <"$fixtures/user-data/shell-only"
bad 'a manifest of another kind' 10 ENOCONFIG source 'the first one is of kind "Secret"' <<<$'apiVersion: v1\nkind: Secret\ndata: {a: CANARYsecret}'
typed() { printf '%s\n' 'MIME-Version: 1.0' 'Content-Type: multipart/mixed; boundary="//"' '' '--//' "$1" ''; good; printf '\n--//--\n'; }
for type in application/node.eks.awz text/x-nodeconfig application/yaml text/plain text/cloud-config text/x-shellscript text/jinja2; do
        bad "a part of type $type" 10 ENOCONFIG source "user-data, part 1, line 5: this part is of type \"$type\", so it is not read as a NodeConfig; did you mean application/node.eks.aws?" \
                < <(typed "Content-Type: $type; charset=utf-8")
done
bad 'a part without a type' 10 ENOCONFIG source 'user-data, part 1, line 5: this part has no Content-Type' < <(typed 'X-Mine: yes')
bad 'a script that writes a NodeConfig' 10 ENOCONFIG source "$none" < <(typed $'Content-Type: text/x-shellscript\n\n#!/bin/sh\ncat >/x <<EOF')
settled

message() {
        printf '%s\n' 'MIME-Version: 1.0' 'Content-Type: multipart/mixed; boundary="//"' '' '--//' 'Content-Type: text/x-shellscript' '' \
                '#!/bin/sh' 'export PASSWORD=CANARYscript' '--//' 'Content-Type: application/node.eks.aws' ''
        cat
        printf '\n--//--\n'
}
# Line 12 of a message is line 1 of its NodeConfig.
bad 'a tab' 11 ESYNTAX decode 'user-data, part 2, line 15, column 1: not YAML: a tab indents this line, but YAML accepts only spaces' < <(good | sed 's/^  cluster/\tcluster/' | message)
bad 'a no-break space in front of a line' 11 ESYNTAX decode 'user-data, line 5, column 1: not YAML: a no-break space (U+00A0) looks like a space' \
        < <(good | sed $'s/^  cluster: {name: demo, /  cluster:\\n\u00a0\u00a0name: demo\\n    {/')
bad 'a no-break space behind a colon' 11 ESYNTAX decode 'user-data, part 2, line 14, column 6: not YAML: a narrow no-break space (U+202F) looks like a space' < <(good | sed $'s/^spec:/&\u202f/' | message)
bad 'user data that is not YAML' 11 ESYNTAX decode 'user-data, line 4, column 3: not YAML: ' < <(good | sed 's/^  cluster/  : cluster/')
bad 'a truncated gzip' 11 ESYNTAX decode 'user-data: the gzip data cannot be trusted: it ends too early' < <(good | gzip | head -c 200)
bad 'a gzip bomb' 11 ELIMIT decode 'user-data: unpacked, this is larger than the limit of 1048576 bytes' < <({ good; head -c 2000000 /dev/zero | tr '\0' '#'; } | gzip)
aliases() {
        good
        echo '  kubelet: {config: {a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9],'
        for i in 1 2 3 4 5; do echo "    a$i: &a$i [$(printf "*a$((i - 1)), %.0s" {1..9})],"; done
        echo '  }}'
}
bad 'an alias bomb' 11 ELIMIT decode 'exceeds the limit of 10000 YAML nodes at this line; use fewer aliases (*name)' < <(aliases)
bad 'deep nesting' 11 ELIMIT decode 'user-data, line 14: maps and lists are nested deeper here than the depth limit of 100 allows' < <({ good; printf '  kubelet: {config: {a: '; printf '[%.0s' {1..120}; printf ']%.0s' {1..120}; echo '}}'; })
bad 'another apiVersion' 11 EINVALID validate \
                'user-data, part 2, line 12: apiVersion: is "node.eks.aws/v1beta1"; it must be node.eks.aws/v1alpha1' < <(good | sed 's/v1alpha1/v1beta1/' | message)
bad 'another kind of this group' 11 EINVALID validate 'user-data, line 2: kind: is "NodeConfigs"' < <(good | sed 's/NodeConfig/NodeConfigs/')

# set PATH PATTERN REPLACEMENT: one value of the good one replaced; its line is where the pattern is found
set_to() { good | sed "s|$1|$2|"; }
cluster='user-data, line 4: spec.cluster'
bad 'a CA that is not base64' 11 EINVALID validate "$cluster.certificateAuthority: must be padded base64" < <(set_to "$CA" '"CANARY*"')
bad 'a missing CA' 11 EINVALID validate "$cluster.certificateAuthority: is missing" < <(set_to "$CA" '""')
bad 'an ftp endpoint' 11 EINVALID validate "$cluster.apiServerEndpoint: must be an https:// URL" < <(set_to https: ftp:)
bad 'a line end in the name of the cluster' 11 EINVALID validate "$cluster.name: contains a line break" < <(set_to 'name: demo' 'name: "de\\nmo"')
bad 'a wrong range' 11 EINVALID validate "$cluster.cidr: must be an IPv4 or IPv6 address and a prefix length" < <(set_to 10.100.0.0/16 10.100.0.0/33)
bad 'an unknown strategy' 11 EINVALID validate \
                'user-data, part 2, line 18: spec.instance.localStorage.strategy: "RAID5" is not one of RAID0, RAID10, Mount' < <(set_to '^  instance:' '  instance:\n    localStorage: {strategy: RAID5}' | message)
for path in /mnt/../etc mnt /etc/x / '/mnt/a/..'; do
        bad "mountPath $path" 11 EINVALID validate \
                'user-data, line 7: spec.instance.localStorage.mountPath: must be absolute, without ".."' < <(set_to '^  instance:' "  instance:\n    localStorage: {strategy: RAID0, mountPath: \"$path\"}")
done
for service in ../../x 'a/b' '..' 'x\\ny'; do
        bad "a service named $service" 11 EINVALID validate 'spec.instance.environment: a service name is empty, or contains a slash' < <(set_to '^      kubelet:' "      \"$service\":")
done
bad 'a line end in a variable' 11 EINVALID validate 'user-data, line 9: spec.instance.environment.kubelet.TOKEN: contains a line break' < <(set_to 'TOKEN: CANARYkubelet' 'TOKEN: "CANARY\\nLD_PRELOAD=x"')
bad 'a map for a variable' 11 EINVALID validate 'user-data, line 9: spec.instance.environment.kubelet.TOKEN: ' < <(set_to 'TOKEN: CANARYkubelet' 'TOKEN: {a: CANARY}')
bad 'a containerd.config that is not TOML' 11 EINVALID validate 'spec.containerd.config: ' < <(set_to 'password = ' 'password CANARY')
bad 'a containerd.config that is not TOML, in a part of a message' 11 EINVALID validate 'user-data, part 2, line 24: spec.containerd.config: is not TOML: ' < <(set_to 'password = ' 'password CANARY' | message)
bad 'a password in the URL that names a table' 11 EINVALID validate 'registry.configs.https://(hidden)@reg.example.auth.password: must be a string' \
        < <(good | sed 's/configs\..*\.auth/configs."https:\/\/me:CANARYurl@reg.example".auth/; s/password = .*/password = 5/')
bad 'a missing blank after a colon' 11 ESYNTAX decode 'user-data, part 2, line 14, column 1: not YAML: a space is missing after the colon on line 13' < <(good | sed 's/^kind: /kind:/' | message)
bad 'folded TOML' 11 EINVALID validate 'YAML folds the lines after config: > into one; did you mean config: |?' < <(good | sed 's/config: |/config: >/')
bad 'a line end in a flag' 11 EINVALID validate 'user-data, line 14: spec.kubelet.flags[0]: contains a line break' < <({ good; echo '  kubelet: {flags: ["--x=CANARY\n--y"]}'; })
bad 'two mistakes' 11 EINVALID validate "$cluster.apiServerEndpoint: must be an https:// URL" < <(set_to 'cidr: .*}' 'cidr: x}' | sed 's/https:/ftp:/')
ok 'two mistakes: stderr has both' says "error: $cluster.cidr: must be"
ok 'two mistakes: the last line counts them' says_last '(the first of 2 errors)'

{ good; echo '  kubelt: {flags: [CANARY]}'; } >"$tmp/user-data"
init --strict --config-cache "$cache"
ok 'a misspelt key with --strict: init fails with exit status 11' fails 11 ESTRICT validate
ok 'a misspelt key with --strict: the last line has the warning as the error' says_last 'user-data, line 14: spec.kubelt: unknown-field: is not known and is ignored; did you mean kubelet?'
good | sed 's/{name: /{"TOKEN:CANARYtoken": 1, name: /' >"$tmp/user-data"
init --strict --config-cache "$cache"
ok 'a key without a blank before its value is an error with --strict' fails 11 ESTRICT validate
ok 'the message has such a key without its value' says_last 'user-data, line 4: spec.cluster.TOKEN: unknown-field: is not known and is ignored: a space is missing after the colon'
good | sed 's/,.example"/"/' >"$tmp/user-data"
ok 'config check --strict accepts a cluster that only the proxy reaches' eval '"$nodestrap" config check --strict "$tmp/user-data" 2>"$tmp/err" && says "api-by-proxy"'
echo "  kubelt: {}" >>"$tmp/user-data"
ok 'config check --strict refuses an unknown key beside that' eval '! "$nodestrap" config check --strict "$tmp/user-data" 2>"$tmp/err" && says "error: spec.kubelt: unknown-field"'
# ---- contradictions ----
# instance TEXT, nvidia TEXT, kubelet TEXT: the good one with lines below instance, accelerator.nvidia, kubelet; line 7 is the first of instance
instance() { set_to '^  instance:' "  instance:\\n    $1"; }
nvidia() { good; printf '  accelerator:\n    nvidia:\n'; printf '      %s\n' "$@"; }
kubelet() { good; printf '  kubelet: %s\n' "$1"; }
pages='user-data, line 7: spec.instance.hugePages.pages'
bad 'explicit huge pages without a list of pages' 11 EINVALID validate "$pages: is missing or empty" < <(instance 'hugePages: {mode: explicit}')
bad 'huge pages over all nodes and on one' 11 EINVALID validate "$pages: sets one size twice" \
                < <(instance 'hugePages: {mode: explicit, pages: [{size: 2Mi, count: 1}, {size: 2048Ki, count: 1, numaNode: 0}]}')
bad 'huge pages of one node twice' 11 EINVALID validate "$pages: sets one size twice" \
                < <(instance 'hugePages: {mode: explicit, pages: [{size: 2Mi, count: 1, numaNode: 1}, {size: 2Mi, count: 2, numaNode: 1}]}')
bad 'huge pages of an odd size' 11 EINVALID validate "${pages}[0].size: must be a power of two" < <(instance 'hugePages: {mode: explicit, pages: [{size: 3Mi, count: 1}]}')
pool=$root/sys/devices/system/node/node0/hugepages/hugepages-1048576kB; mkdir -p "$pool"; echo 0 >"$pool/nr_hugepages"
bad 'more huge pages than memory' 11 EINVALID plan 'spec.instance.hugePages.pages: asks for 1048576 MiB, but the machine has only ' \
                < <(instance 'hugePages: {mode: explicit, pages: [{size: 1Gi, count: 1024}]}')
bad 'huge pages on a NUMA node that does not exist' 11 EINVALID plan 'spec.instance.hugePages.pages: names NUMA node 7, which this machine does not have' \
                < <(instance 'hugePages: {mode: explicit, pages: [{size: 2Mi, count: 1, numaNode: 7}]}')
bad 'huge pages in reserved memory' 11 EINVALID validate 'spec.kubelet.config.reservedMemory[0].limits: reserves huge pages' \
                < <(kubelet '{config: {reservedMemory: [{numaNode: 0, limits: {hugepages-2Mi: 100Mi}}]}}')
bad 'huge pages in the flag for reserved memory' 11 EINVALID validate 'spec.kubelet.flags[0]: reserves huge pages' \
                < <(kubelet '{flags: ["--reserved-memory=0:hugepages-1Gi=2Gi"]}')
bad 'a word for a number of kubelet' 11 EINVALID validate 'user-data, line 16: spec.kubelet.config.maxPods: must be a whole number, without quotes; as it is, kubelet would not start' \
                < <(kubelet $'\n    config:\n      maxPods: CANARY')
bad 'huge pages in two ways' 11 EINVALID validate 'user-data, line 7: spec.instance.sysctl.vm.nr_hugepages: reserves huge pages, and so does spec.instance.hugePages' \
                < <(instance 'sysctl: {vm.nr_hugepages: "8"}\n    hugePages: {mode: off}')
for name in ../etc/passwd vm..x vm//x /vm.x 'vm.x/../../y' 'vm x'; do
        bad "the kernel setting $name" 11 EINVALID validate 'user-data, line 7: spec.instance.sysctl: contains a name that is not a kernel setting' < <(instance "sysctl: {\"$name\": \"1\"}")
done
bad 'a kernel setting that is a secret' 11 EINVALID validate 'user-data, line 7: spec.instance.sysctl.net.ipv4.tcp_fastopen_key: is a secret, which plans and logs would show' \
        < <(instance 'sysctl: {net.ipv4.tcp_fastopen_key: "00000001-00000002-00000003-00000004"}')
bad 'a line end in a kernel setting' 11 EINVALID validate 'spec.instance.sysctl.vm.x: contains a line break' < <(instance 'sysctl: {vm.x: "1\\nkernel.y = 2"}')
bad 'a kernel setting that names a program' 11 EINVALID validate 'user-data, line 7: spec.instance.sysctl.kernel.modprobe: names a program that the kernel would start as root: set it in the image' \
        < <(instance 'sysctl: {kernel.modprobe: /tmp/hunter2}')
bad 'a kernel setting by two names' 11 EINVALID validate 'user-data, line 7: spec.instance.sysctl.vm/max_map_count: is set twice, under two names' \
                < <(instance 'sysctl: {vm.max_map_count: "1", vm/max_map_count: "2"}')
bad 'a kernel setting that kubelet refuses' 11 EINVALID validate 'user-data, line 7: spec.instance.sysctl.vm.overcommit_memory: kubelet starts only with the value 1' \
                < <(instance 'sysctl: {vm.overcommit_memory: "2"}')
gpu='spec.accelerator.nvidia'
bad 'IMEX without nodes' 11 EINVALID validate "$gpu.imex.nodes: is missing or empty" < <(nvidia 'imex: {mode: host}')
bad 'MIG and CDMM' 11 EINVALID validate "$gpu.mig: contradicts memoryMode: driver (CDMM)" < <(nvidia 'mig: "19"' 'memoryMode: driver')
bad 'one GPU divided twice' 11 EINVALID validate "$gpu.mig: configures a GPU twice" \
                < <(nvidia 'mig: [{devices: [0, 1], profiles: {1g.5gb: 1}}, {devices: [1], profiles: {1g.5gb: 2}}]')
bad 'all GPUs divided, and one' 11 EINVALID validate "$gpu.mig: configures a GPU twice" \
                < <(nvidia 'mig: [{devices: all, profiles: {1g.5gb: 1}}, {devices: [1], profiles: {1g.5gb: 2}}]')
bad 'MIG without a profile' 11 EINVALID validate "$gpu.mig[0].profiles: is missing or empty: name a profile" < <(nvidia 'mig: [{devices: all}]')
bad 'MIG that is 0' 11 EINVALID validate "$gpu.mig: is 0, which is ambiguous: write \"off\" to turn MIG off" < <(nvidia 'mig: 0')
bad 'a fabric gate without time' 11 EINVALID validate "$gpu.fabric.timeout: must be a time span above zero" < <(nvidia 'fabric: {timeout: 0s}')

# The same for other types of machines: settings that their GPUs cannot have.
refused() { # TYPE CODE WORD WORDS: stdin is the NodeConfig
        cat >"$root/gpu.yaml"
        "$nodestrap" plan --root "$root" -c file:///gpu.yaml --instance-type "$1" >"$tmp/out" 2>"$tmp/err"; code=$?
        ok "$1: plan exits with $2: $4" same_word $code "$2"
        ok "$1: the last line has the line in the file: $4" says_last "($2 $3) at plan: /gpu.yaml, line "
        ok "$1: the last line says: $4" says_last ": $4"
}
refused p6e-gb200.36xlarge 11 EINVALID "$gpu.mig: contradicts memoryMode auto, which here means CDMM" < <(nvidia 'mig: "1g.23gb"')
refused p4d.24xlarge 33 EMIG "$gpu.mig: a100-40gb holds at most 2 x 3g.20gb, not 3 x 3g.20gb (devices: all)" < <(nvidia 'mig: "3g.20gb,3g.20gb,9"')
refused p4d.24xlarge 33 EMIG "$gpu.mig: 1g.10mb is not a profile of this GPU (a100-40gb); use one of 7g.40gb, 4g.20gb" < <(nvidia 'mig: "1g.10mb"')
refused p4d.24xlarge 33 EMIG "$gpu.mig: names GPU 8, but this machine has only 8, numbered from 0" < <(nvidia 'mig: [{devices: [8], profiles: {1g.5gb: 1}}]')
refused g5.xlarge 33 EMIG "$gpu.mig: this GPU (a10g) does not support MIG" < <(nvidia 'mig: "19"')
refused g6.xlarge 11 EINVALID 'spec.kubelet.flags[0]: kubelet 1.33.4 does not know --node-lables and would exit; did you mean --node-labels?' < <(kubelet '{flags: [--node-lables=CANARY]}')
gates=spec.kubelet.config.featureGates
refused g6.xlarge 11 EINVALID "$gates.DynamicResourceAlocation: kubelet 1.33.4 exits: it does not know the feature gate \"DynamicResourceAlocation\"; did you mean DynamicResourceAllocation?" \
        < <(kubelet '{config: {featureGates: {DynamicResourceAlocation: true}}}')
refused g6.xlarge 11 EINVALID "$gates.SidecarContainers: kubelet 1.33.4 exits with the feature gate SidecarContainers=false: it is locked to true; remove it" \
        < <(kubelet '{config: {featureGates: {SidecarContainers: false}}}')
refused g6.xlarge 11 EINVALID "spec.kubelet.flags[0]: kubelet 1.33.4 exits with the feature gate CPUManager, which kubelet 1.33 removed; remove it" \
        < <(kubelet '{flags: ["--feature-gates=CPUManager=true"]}')
refused g6.xlarge 32 EEFA "$gpu.gpuDirect: expects 1 EFA device, but g6.xlarge has none: the boot fails" < <(nvidia 'gpuDirect: on')
refused g6.xlarge 11 EINVALID "$gpu.fabric.manager: is on, but this machine (class single) has no NVSwitch" < <(nvidia 'fabric: {manager: on}')
refused g6.xlarge 32 EEFA 'spec.instance.network.efa.mode: expects 1 EFA device, but g6.xlarge has none: the boot fails' < <(instance 'network: {efa: {mode: require}}')
refused p5.48xlarge 32 EEFA 'spec.instance.network.efa.expectedDevices: expects 64 EFA devices, but p5.48xlarge has at most 32: the boot fails' < <(instance 'network: {efa: {expectedDevices: 64}}')
refused p5.48xlarge 30 EDISKS 'spec.instance.localStorage.expectedDisks: expects 9 instance stores, but p5.48xlarge has at most 8: the boot fails' < <(instance 'localStorage: {strategy: RAID0, expectedDisks: 9}')
refused p5.48xlarge 33 EFABRIC "$gpu.fabric.gate: fabric-gate: kubelet waits in vain: manager is off, so nothing here starts the fabric" < <(nvidia 'fabric: {manager: off}')
refused p5.48xlarge 11 EINVALID 'spec.kubelet.config: reserved-too-much: kubelet cannot start: the cpu reservation is 640' < <(kubelet '{config: {kubeReserved: {cpu: "640"}}}')

# nodestrap warns of a doubtful setting, and obeys it.
told() { # TYPE CODE PATH: stdin is the NodeConfig
        cat >"$root/gpu.yaml"
        "$nodestrap" plan --root "$root" -c file:///gpu.yaml --instance-type "$1" --output json >"$tmp/out" 2>"$tmp/err"; code=$?
        ok "$1: plan succeeds in spite of $2" test $code = 0
        ok "$1: the plan has the warning $2 at $3" python3 -c 'import json, sys; sys.exit(not [w for w in json.load(open(sys.argv[1]))["warnings"] if w["code"] == sys.argv[2] and w.get("path") == sys.argv[3]])' \
                "$tmp/out" "$2" "$3"
}
told m5.large no-effect spec.instance.hugePages.pages < <(instance 'hugePages: {mode: auto, pages: [{size: 2Mi, count: 1}]}')
told m5.large no-effect "$gpu" < <(nvidia 'mig: "19"')
told m5.large no-effect "$gpu" < <(nvidia 'gpuDirect: on')
told p5.48xlarge fabric-gate "$gpu.fabric.gate" < <(nvidia 'fabric: {manager: off}' && echo '  failurePolicy: join-tainted')
told p5.48xlarge no-effect "$gpu.memoryMode" < <(nvidia 'memoryMode: numa')
told p5.48xlarge imex-without-domain "$gpu.imex.mode" < <(nvidia 'imex: {mode: dra}')
told p5.48xlarge no-effect "$gpu.mig" < <(nvidia 'mig: []')
told p6-b200.48xlarge mig-fit "$gpu.mig" < <(nvidia 'mig: "4g.90gb,4g.90gb"')
told p5.48xlarge too-many-efa spec.instance.network.efa.expectedDevices < <(instance 'network: {efa: {expectedDevices: 64}}' && echo '  failurePolicy: join-tainted')
told g6.xlarge accelerator "$gpu.mode" < <(nvidia 'mode: off')

good >"$root/good.yaml"
plan() { "$nodestrap" plan --root "$root" -c file:///good.yaml "$@" >"$tmp/out" 2>"$tmp/err"; }
for form in text json; do
        plan --output $form
        ok "plan ($form) shows no secret" lacks CANARY
        ok "plan ($form) has the file of the variables that hold secrets" grep -q /etc/systemd/system/kubelet.service.d/environment.conf "$tmp/out"
done

# config check has the same messages.
good | sed 's/https:/ftp:/' >"$root/bad.yaml"
"$nodestrap" config check --root "$root" -c file:///bad.yaml 2>"$tmp/err" >"$tmp/out"; code=$?
ok 'config check has the exit status of init' same_word $code 11
ok 'config check prints one line' same_word "$(wc -l <"$tmp/err")" 1
ok 'config check names file, line and path' says_last 'nodestrap: failed (11 EINVALID) at validate: /bad.yaml, line 4: spec.cluster.apiServerEndpoint: '
{ good; echo '  kubelet: {maxPodsExpression: "max_pods +"}'; } >"$root/bad.yaml"
"$nodestrap" config check --root "$root" -c file:///bad.yaml 2>"$tmp/err" >"$tmp/out"; code=$?
ok 'config check accepts a doubtful expression' same_word $code 0
ok 'config check warns of the expression with its line' says 'warning: /bad.yaml, line 14: spec.kubelet.maxPodsExpression: max-pods-expression: '
for command in 'config check' plan; do
        # shellcheck disable=SC2086  # two words
        "$nodestrap" $command --strict --root "$root" -c file:///bad.yaml 2>"$tmp/err" >"$tmp/out"; code=$?
        ok "$command --strict refuses the doubtful expression" says_last 'failed (11 ESTRICT) at validate: /bad.yaml, line 14: spec.kubelet.maxPodsExpression: max-pods-expression: '
done

# A good one after all that: the machine is still as it was.
settled
good >"$tmp/user-data"
init --config-cache "$cache"
ok 'init succeeds with the good configuration after all these' same_word $code 0
ok 'init changes nothing with the good configuration' unchanged
ok 'init shows no secret of the good configuration' silent
: >"$tmp/user-data"
init --config-cache "$cache"
ok 'init succeeds without user data from the cached configuration' same_word $code 0
ok 'a message says that init uses the cached configuration' says "config-from-cache: no source has a NodeConfig; using $cache instead"
ok 'init shows no secret of the cached configuration' silent
done_testing
