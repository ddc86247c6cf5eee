# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/cluster/ready-*.sh inside their guests, and by others for its parts. From power-on to a Ready Node, by our units alone,
# over three boots; each script names a kubelet, a systemd and a containerd.
# shellcheck source=tests/cluster/lib/guest.sh
. /vmtest/cluster.sh
KUBELET_ROOT=${KUBELET_ROOT-/var/lib/kubelet} CONTAINERD_ROOT=${CONTAINERD_ROOT-/var/lib/containerd} POD_LOGS=${POD_LOGS-/var/log/pods}

kubelet_says() { journalctl -b -u kubelet --no-pager -o cat | grep -E '^[EF]' | tail -12 | cut -c1-400 | sed 's/^/# /'; }
node_field() { host kubectl get node "$NODE" -o "jsonpath=$1{\"\\n\"}"; }
# kubelet PATH: as an administrator, with a certificate of the cluster CA and rights by the API server
kubelet() { curl -sSf --noproxy '*' --max-time 60 --resolve "$NODE:10250:10.0.2.15" --cacert /etc/kubernetes/pki/ca.crt --cert admin.crt --key admin.key "https://$NODE:10250/$1"; }
# within SECONDS COMMAND…: it succeeds, sooner or later; the output is that of the last time
within() {
        local end=$((SECONDS + $1)) said; shift
        until said=$("$@" 2>&1); do [ $SECONDS -lt $end ] || { printf '%s\n' "$said"; return 1; }; sleep 0.5; done
        printf '%s\n' "$said"
}

# ---- kubelet registers, and nodestrap-joined, for which nothing waits, says when (tree: joined_enabled pods_network_later) ----
join_not_ready() { nodestrap wait --timeout 40s 2>out/not-ready; is $? 60 || { cat out/not-ready; return 1; }; }
join_gone() { nodestrap wait --timeout 40s 2>out/gone; is $? 60 && grep -F "$1" out/gone || { cat out/gone; return 1; }; }
# The creation of a Node is known in whole seconds (metav1.Time), so it may seem up to one second early.
join_times() { python3 -c 'import json, sys
j, s = (json.load(open("/run/nodestrap/" + f)) for f in ("joined.json", "status.json"))
assert j["bootId"] == s["bootId"] and j["planId"] == s["planId"] and j["verdict"] == "ok", j
assert s["runs"]["config"]["endUsec"] < j["registeredUsec"] + 1000000, (j, s["runs"])
assert j["registeredUsec"] <= j["readyUsec"] <= j["endUsec"], (j, s["runs"])'; }
joins() {       # the unit ends with the verdict
        local main; main=$(property nodestrap-joined MainPID)
        [ "$main" = 0 ] || tail --pid="$main" -f /dev/null
        is "$(property nodestrap-joined Result) $(property nodestrap-joined ExecMainStatus)" "success 0"
}
check_join() {
        try "the boot is over while the unit still waits" is "$(cat out/state) $(property nodestrap-joined ActiveState)" "running active"
        try "the run phase came first" before "$(property nodestrap-run ExecMainExitTimestampMonotonic)" "$(property nodestrap-joined ExecMainStartTimestampMonotonic)"
        try "kubelet registers its Node" nodestrap wait --for registered --timeout 180s || kubelet_says
        try "wait fails at its deadline while the Node is not Ready" join_not_ready
        try "wait says what is missing" grep -E 'is registered with cluster training, but not Ready: KubeletNotReady: .*container runtime network not ready' out/not-ready
        try "wait names the pod that installs the network" grep -F 'which the pod aws-node installs' out/not-ready
        try "status tells as much" sh -c "nodestrap status | head -n 2 | grep -A 1 -F 'NOT JOINED (60 ENOTREADY):' | grep -F 'Node '"

        cp /vmtest/10-pods.conflist /etc/cni/net.d/     # a file that is moved there, containerd does not see
        try "nodestrap-joined succeeds with a network" joins || kubelet_says
        try "the verdict is in the journal, with fields" sh -c "journalctl -b -o json NODESTRAP_STEP=join NODESTRAP_VERDICT=ok _SYSTEMD_UNIT=nodestrap-joined.service | grep -q NODESTRAP_SECONDS"
        try "status tells when it joined" sh -c "nodestrap status | grep -E '^joined: registered [0-9.]+ s, ready [0-9.]+ s after the kernel started'"
        try "its times lie where they must" join_times
        try "the metrics have the seconds to Ready" grep -E '^nodestrap_ready_seconds [0-9.]+$' /run/nodestrap/joined.prom
        # one is enough; a busy API server may end a watch
        try "the unit watches, and does not ask again and again" python3 -c 'import json; n = json.load(open("/run/nodestrap/joined.json"))["requests"]; assert 1 <= n <= 3, n'
        # shellcheck disable=SC2016 # for the host
        try "the authenticator accepted all tokens" is "$(host eval 'grep -q "access granted" $CLUSTER/log/authenticator || echo none; grep "access denied" $CLUSTER/log/authenticator')" ""
}
# A kubelet that does not come back: what systemd knows of it is in the sentence, what it says itself is not.
check_gone() {
        systemctl stop kubelet
        host kubectl delete node "$NODE" >/dev/null
        try "wait fails if the Node is gone" join_gone "(60 ENOTREGISTERED) at join: cluster training has no Node $NODE: kubelet has not registered it; kubelet.service is inactive (dead)"
        try "the messages of kubelet are not among them" no grep -E '[IWEF][0-9]{4} [0-9:.]+ ' out/gone
}

check_ready() {
        try "nodestrap-config.service succeeded" exited nodestrap-config 0
        try "nodestrap-run.service is active" active nodestrap-run
        try "the Node is Ready" node_ready || kubelet_says
        host kubectl get node "$NODE" -o yaml >out/node.yaml
        host kubectl describe node "$NODE" >out/node.txt
        try "kubelet.service is active" active kubelet
        try "kubelet was started once" is "$(property kubelet NRestarts)" 0
        try "no ordering cycle was broken" no_cycle
        journalctl -b -u kubelet --no-pager -o short-monotonic >out/kubelet
}

# ---- the Node is as planned ---- To the letter: by now all of it can be measured, and the additions of kubelet are known.
as_planned() { host kubectl get node "$NODE" -o json >out/node.json && python3 - plan.json out/node.json <<'END'
import json, sys
plan, node = (json.load(open(path)) for path in sys.argv[1:])
plan, name, bad = plan['node'], node['metadata']['name'], []
def same(what, have, want):
    if have != want: bad.append(f'{what}: the Node has {have!r}, planned {want!r}')
same('name', name, plan['name'])
same('providerID', node['spec'].get('providerID'), plan['providerID'])
same('labels', node['metadata']['labels'], plan['labels'] | {'kubernetes.io/hostname': name} | {f'{p}kubernetes.io/{k}': v for k, v in (('arch', 'amd64'), ('os', 'linux')) for p in ('', 'beta.')})
cloud = [{'key': 'node.cloudprovider.kubernetes.io/uninitialized', 'value': 'true', 'effect': 'NoSchedule'}]
order = lambda taints: sorted(({k: v for k, v in t.items() if k != 'timeAdded'} for t in taints), key=lambda t: t['key'])
same('taints', order(node['spec'].get('taints', [])), order(plan['taints'] + [t for t in cloud if t not in plan['taints']]))
same('plan has no unknown and no approximate values', plan['unknown'] | plan['approximate'], {})
for what in ('capacity', 'allocatable'):
    have, want = node['status'][what], plan[what]
    same(f'resources of {what}', sorted(have), sorted(want))
    for k in have.keys() & want.keys(): same(f'{what} {k}', have[k], want[k])
sys.exit('\n'.join(bad) or 0)
END
}
check_as_planned() {
        plan >plan.json
        try "the plan that ran is the plan that is shown" python3 compare.py applied plan.json /run/nodestrap/status.json
        tail -z -n +2 "/proc/$(property kubelet MainPID)/cmdline" >out/argv
        try "kubelet got exactly the planned flags" python3 compare.py kubelet plan.json out/argv
        try "name, providerID, labels, taints and resources are the planned ones" as_planned
        try "the Node has the huge pages of the configuration" is "$(node_field '{.status.capacity.hugepages-2Mi} {.status.capacity.hugepages-1Gi}')" "128Mi 0"
        try "the most pods, too" is "$(node_field '{.status.allocatable.pods}')" 40
        try "the Node has the id of its instance" is "$(node_field '{.spec.providerID}')" aws:///us-west-2b/i-0f1e2d3c4b5a69788
        try "the Node has the addresses that kubelet found" is "$(node_field '{range .status.addresses[*]}{.type}={.address} {end}')" "InternalIP=10.0.2.15 Hostname=$NODE "
        try "the Node has the address for the cloud controller" is "$(node_field '{.metadata.annotations.alpha\.kubernetes\.io/provided-node-ip}')" 10.0.2.15
        try "its label is the user's" is "$(node_field '{.metadata.labels.team}')" blue
        try "the Node has the taint of the configuration" is "$(node_field '{.spec.taints[?(@.key=="team")].value}')" blue
        try "ephemeral storage is the array" is "$(($(node_field '{.status.capacity.ephemeral-storage}' | numfmt --from=auto) >> 20))" "$(($(stat -f -c '%b * %S' /mnt/k8s-disks/0) >> 20))"
}

# ---- the kubelet settings are in effect ----
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
if want.get('reservedSystemCPUs'): del want['kubeReserved']['cpu']      # kubelet takes the CPUs in its place
sys.exit('\n'.join(missing(want, has['kubeletconfig'])) or 0)
END
}
# They are measured one after the other once kubelet runs.
containers() { kubelet stats/summary >out/summary.json && is "$(python3 -c 'import json
print(*sorted(c["name"] for c in json.load(open("out/summary.json"))["node"]["systemContainers"] if c["memory"]["workingSetBytes"] > 0))')" "kubelet pods runtime"; }
check_settings() {
        local file; for file in admin.crt admin.key; do host eval "cat \$CLUSTER/pki/$file" >$file; done
        try "kubelet serves with a certificate that the cluster signed" is "$(within 60 kubelet healthz)" ok
        try "every planned setting is in effect" in_effect
        try "kubelet statistics have containerd" within 90 containers
        try "containerd runs in the slice that kubelet expects" runs_in /runtime.slice/containerd.service containerd
        try "kubelet runs in its slice, too" runs_in /runtime.slice/kubelet.service kubelet
        try "kubelet complains of no setting" is "$(grep -E 'unknown field|lenient decoding|has been deprecated|(GA|deprecated) feature gate|unrecognized' out/kubelet | grep -v 'FLAG: ')" ''
        try "the log of kubelet has its flags" grep -q 'FLAG: --node-labels="team=blue"' out/kubelet
}

# ---- pods ----
on_array() { local device; device=$(stat -c %d /mnt/k8s-disks/0); [ "$device" != "$(stat -c %d /)" ] && is "$(stat -L -c %d "$1")" "$device"; }
pages_taken() { is "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" 62; }
# pod NAME: it takes two of the huge pages that it asks for, and some of its ephemeral storage (tree: pods_network_later has the image)
pod() {
        ctr -n k8s.io images import /vmtest/work.tar >out/imported && host eval "kubectl create -f - <<<'$(cat <<END
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {"nodeName": "$NODE", "terminationGracePeriodSeconds": 1,
 "automountServiceAccountToken": false, "enableServiceLinks": false, "tolerations": [{"operator": "Exists"}],
 "volumes": [{"name": "pages", "emptyDir": {"medium": "HugePages"}}, {"name": "scratch", "emptyDir": {}}],
 "containers": [{"name": "writer", "image": "localhost/work:latest", "imagePullPolicy": "Never",
  "args": ["sh", "-c", "/bin/busybox fallocate -l 4194304 /pages/file && /bin/busybox fallocate -l 4194304 /scratch/file && echo has both && exec /bin/busybox sleep 100000"],
  "volumeMounts": [{"name": "pages", "mountPath": "/pages"}, {"name": "scratch", "mountPath": "/scratch"}],
  "resources": {"requests": {"cpu": "10m", "memory": "32Mi", "hugepages-2Mi": "8Mi", "ephemeral-storage": "16Mi"},
   "limits": {"memory": "32Mi", "hugepages-2Mi": "8Mi", "ephemeral-storage": "16Mi"}}}]}}
END
)'"
}
pod_field() { host kubectl get pod "$1" -o "jsonpath=$2{\"\\n\"}"; }
pod_runs() { host kubectl wait --for=condition=Ready --timeout=180s "pod/$1" || { host kubectl describe pod "$1" | tail -20; return 1; }; }
pause_containers() { ctr -n k8s.io containers ls | grep -F 'localhost/kubernetes/pause:latest'; }
check_pod() {   # NAME
        local log
        try "a pod can be made" within 60 pod "$1"
        try "a pod that asks for huge pages and ephemeral storage runs" pod_runs "$1" || kubelet_says
        log=$POD_LOGS/default_$1_$(pod_field "$1" '{.metadata.uid}')/writer/0.log
        try "the pod says that it has both" grep -E 'stdout F has both$' "$log"
        try "its log is on the array" on_array "$log"
        try "files of the pod are on the array" on_array "$KUBELET_ROOT/pods/$(pod_field "$1" '{.metadata.uid}')/volumes/kubernetes.io~empty-dir/scratch/file"
        try "data of containerd is on the array" on_array "$CONTAINERD_ROOT"
        try "kubelet shows the log" is "$(kubelet "containerLogs/default/$1/writer")" "has both"
        try "its huge pages are in use" pages_taken
        try "its sandbox is of the AMI's image" pause_containers
}

# ---- image garbage collection ----
images() { ctr -n k8s.io images ls -q | grep -v '^sha256:' | sort | xargs; }
only_pause() { is "$(images)" localhost/kubernetes/pause:latest; }
# An array that is nearly full makes kubelet evict the pod and remove every image that nothing uses.
check_collection() { # POD: whose image is unused then, too
        local size available
        try "an image that nothing uses" ctr -n k8s.io images import /vmtest/unused.tar
        try "the node has three images" is "$(images)" "localhost/kubernetes/pause:latest localhost/unused:latest localhost/work:latest"
        read -r size available < <(df -B1 --output=size,avail /mnt/k8s-disks/0 | tail -1)
        try "the array is nearly full" fallocate -l $((available - size / 20)) /mnt/k8s-disks/0/fill
        try "kubelet evicts the pod" host kubectl wait --for=jsonpath='{.status.reason}'=Evicted --timeout=180s "pod/$1"
        try "kubelet removes images, but not the sandbox image" within 180 only_pause
        try "the journal says that kubelet removed them" sh -c "[ \$(journalctl -b -u kubelet -o cat --no-pager | grep -c 'Removing image to free bytes') -ge 2 ]"
        try "no container uses the sandbox image" no pause_containers
        try "the sandbox image is pinned" sh -c "ctr -n k8s.io images ls name==localhost/kubernetes/pause:latest | grep io.cri-containerd.pinned=pinned"
        rm /mnt/k8s-disks/0/fill
        try "there is room again" host kubectl wait --for=condition=DiskPressure=False --timeout=180s "node/$NODE"
        host kubectl delete pod "$1" --grace-period=0 --force >/dev/null 2>&1
}

# ---- the same Node after whatever comes ----
check_again() { # WHAT
        try "after $1: the unit says that the node has joined" joins || { cat /run/nodestrap/joined.json; kubelet_says; }
        try "after $1: the Node is that of this boot" is "$(node_field '{.status.nodeInfo.bootID}')" "$(cat /proc/sys/kernel/random/boot_id)"
        try "after $1: it is the same Node" is "$(node_field '{.metadata.uid}')" "$(cat out/uid)"
        try "after $1: it is Ready" node_ready
        try "after $1: kubelet and containerd were started once" is "$(property kubelet NRestarts) $(property containerd NRestarts)" "0 0"
        try "after $1: no ordering cycle was broken" no_cycle
        plan >plan.json
        try "after $1: all of the Node is what is planned" within 60 as_planned  # the cluster takes the taint of its absence off
}
reboots() { systemctl reboot; sleep infinity; } # kubelet may hold it up for some seconds
check_boots() {
        case $VMTEST_BOOT in
        1)      check_join
                check_ready
                node_field '{.metadata.uid}' >out/uid
                check_as_planned
                check_settings
                check_pod first
                check_second_run
                try "the Node is the same" is "$(node_field '{.metadata.uid}')" "$(cat out/uid)"
                reboots;;
        2)      check_again "a reboot"
                # one that kubelet has ended in good order, where systemd lets it know (shutdownGracePeriod), does not run again
                try "the pod of before can be deleted" host kubectl delete pod first --timeout=180s
                check_pod second
                check_collection second
                echo "VMTEST blank-drives" >/dev/ttyS0
                reboots;;
        *)      check_again "a stop and start with blank disks"
                try "the sandbox image is there again" only_pause
                check_pod third
                check_gone
                finish;;
        esac
}
