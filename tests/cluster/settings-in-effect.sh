#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 600
# kube: 1.37.0
# tree: enabled kube no_slices
# spec: {kubelet: {config: {maxPods: 40, evictionHard: {memory.available: 250Mi}}, flags: [--node-labels=team=blue]}}
# console: NODESTRAP verdict=ok
# What kubelet makes of its settings, asked at its own port, whose certificate the cluster has signed: every planned setting is in effect,
# it complains of none, and its statistics have containerd, in an image that puts it nowhere by itself.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
. /vmtest/ready.sh

# kubelet PATH: as an administrator, who is let in by the cluster's CA and by what the API server says of them
kubelet() { curl -sSf --noproxy '*' --max-time 20 --resolve "$NODE:10250:10.0.2.15" --cacert /etc/kubernetes/pki/ca.crt --cert admin.crt --key admin.key "https://$NODE:10250/$1"; }
# A number that is 0 is left out of what it has (omitempty).
in_effect() { kubelet configz >out/configz.json && python3 - out/configz.json /etc/kubernetes/kubelet/config.json /etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf <<'END'
import json, sys
has, *planned = (json.load(open(path)) for path in sys.argv[1:])
def merge(a, b):
    return {**a, **{k: merge(a.get(k, {}), v) if isinstance(v, dict) else v for k, v in b.items()}}
def missing(want, got, where=''):
    for key, value in want.items():
        if isinstance(value, dict) and isinstance(got.get(key), dict): yield from missing(value, got[key], f'{where}{key}/')
        elif got.get(key, 0 if value == 0 else None) != value: yield f'{where}{key}: {value!r} is planned, {got.get(key)!r} is in effect'
want = merge(*planned)
del want['kind'], want['apiVersion']
assert want['maxPods'] == 40 and want['clusterDNS'], want
sys.exit('\n'.join(missing(want, has['kubeletconfig'])) or 0)
END
}
containers() { kubelet stats/summary | tee out/summary.json | python3 -c 'import json, sys
print(*sorted(c["name"] for c in json.load(sys.stdin)["node"]["systemContainers"] if c["memory"]["workingSetBytes"] > 0))'; }
# They are measured one after the other once kubelet runs.
statistics() { local end=$((SECONDS + 60)); until is "$(containers)" "kubelet pods runtime"; do [ $SECONDS -lt $end ] || return; sleep 1; done >out/containers 2>&1; }

check_ready
for file in admin.crt admin.key; do host eval "cat \$CLUSTER/pki/$file" >$file; done
try "kubelet serves with a certificate that the cluster signed" is "$(kubelet healthz)" ok
try "every planned setting is in effect" in_effect
try "statistics have containerd" statistics
try "it is in kubelet's slice" runs_in /runtime.slice/containerd.service containerd
try "kubelet, too" runs_in /runtime.slice/kubelet.service kubelet
try "kubelet complains of no setting" is "$(grep -E 'unknown field|lenient decoding|has been deprecated|(GA|deprecated) feature gate|unrecognized' out/kubelet | grep -v 'FLAG: ')" ''
try "kubelet's log was read" grep -q 'FLAG: --node-labels="team=blue"' out/kubelet

finish
