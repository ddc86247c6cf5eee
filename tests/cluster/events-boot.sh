#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S trixie -d 0 -m 3G -t 600
# kube: 1.37.0
# tree: enabled kube
# spec: {instance: {sysctl: {net.ipv4.no_such_setting: "1"}}}
# console: NODESTRAP verdict=failed code=ESYSCTL step=set-sysctl:net.ipv4.no_such_setting
# init fails on a machine (failurePolicy: hold). It never becomes a Node, but its cluster hears why, by our units alone. After a repair
# kubelet joins, and kubectl describe node shows both.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
. /vmtest/cluster.sh

event() { host kubectl get events -n default --field-selector "reason=$1" -o "jsonpath={.items[*]$2}{\"\\n\"}"; }
# The path unit may not have started it yet.
sender_rests() { for _ in {1..600}; do is "$(property nodestrap-event ActiveState) $(property nodestrap-event Result) $(find /run/nodestrap/events -type f | wc -l)" "inactive success 0" >out/sender && return; sleep 0.1; done; cat out/sender; return 1; }
failed_units() { systemctl list-units --failed --plain --no-legend | awk '{ print $1 }' | sort | xargs; }
# From each verdict to the sender's word that the cluster has it, in seconds: for the reader.
latency() { python3 - <<'END'
import json, subprocess
entries = [json.loads(l) for l in subprocess.run(['journalctl', '-b', '-o', 'json', '--no-pager'], capture_output=True, text=True).stdout.splitlines()]
at = lambda e: int(e['__MONOTONIC_TIMESTAMP']) / 1e6
told = [at(e) for e in entries if 'Sent to cluster' in str(e.get('MESSAGE'))]
print('#', [round(t - at(v), 2) for v, t in zip([e for e in entries if e.get('NODESTRAP_VERDICT') == 'failed'], told)], 's from a verdict to its Event')
END
}
try "init failed, and nothing else" is "$(failed_units)" "nodestrap-devices.service nodestrap-run.service"
try "the sender has nothing left to do" sender_rests
try "the cluster has heard of both phases, as one Event" is "$(event NodestrapFailed '.count}{" "}{.items[*].involvedObject.name')" "2 $NODE"
try "the Event has the words of the last failure" grep -E '^ESYSCTL at set-sysctl:net.ipv4.no_such_setting: .*; kubelet was not started' <(event NodestrapFailed .message)
try "the Node does not exist" no host kubectl get node $NODE
try "kubectl get events shows the failure anyway" grep -E "Warning +NodestrapFailed +node/$NODE" <(host kubectl get events)
latency

rm /etc/eks/nodeadm.d/50-spec.yaml
# shellcheck disable=SC2046 # sources are words
try "an init by hand that ends well" nodestrap init --skip config $(sources)
host kubectl wait --for=create --timeout=180s "node/$NODE" >out/created
try "kubelet registers the Node" host kubectl get node $NODE
told() { for _ in {1..600}; do [ -z "$(event NodestrapRecovered .type)" ] || return 0; sleep 0.1; done; return 1; }
try "the cluster hears that, too" told
host kubectl describe node $NODE >out/node.txt
try "kubectl describe node shows what failed" grep -E 'Warning +NodestrapFailed .*\(x2 over .*\) +nodestrap +ESYSCTL at ' out/node.txt
try "the Node has an Event of the recovery" grep -E 'Normal +NodestrapRecovered ' out/node.txt
sed -n '/^Events:/,$s/^/# /p' out/node.txt

# The condition stands beside those of kubelet, which goes on to write the status.
condition() { host kubectl get node $NODE -o "jsonpath={.status.conditions[?(@.type=='NodestrapReady')]$1}{\"\\n\"}"; }
becomes() { for _ in {1..60}; do [ "$(condition .status) $(condition .reason)" = "$1" ] && return; sleep 1; done
        condition ''; ls /run/nodestrap/events; journalctl -b -u nodestrap-event --no-pager -o cat | tail; return 1; }
try "the Node says NodestrapReady" becomes "True NodestrapDone"
since=$(condition .lastTransitionTime)
echo '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"instance": {"sysctl": {"net.ipv4.no_such_setting": "1"}}}}' >/etc/eks/nodeadm.d/50-spec.yaml
# shellcheck disable=SC2046
try "a typed init that fails beside kubelet" no nodestrap init --skip config $(sources)
try "the Node says so" becomes "False ESYSCTL"
try "kubelet is still Ready, or becomes so" host kubectl wait --for=condition=Ready --timeout=240s "node/$NODE"
rm /etc/eks/nodeadm.d/50-spec.yaml
# shellcheck disable=SC2046
try "init succeeds after the repair" nodestrap init --skip config $(sources)
try "the Node says that, too" becomes "True NodestrapDone"
try "since the last change" no is "$(condition .lastTransitionTime)" "$since"
host kubectl describe node $NODE | sed -n '/^Conditions:/,/^Addresses:/s/^/# /p'

finish
