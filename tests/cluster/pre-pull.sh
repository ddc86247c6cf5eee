#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# tree: containerd2
# cluster: no-controllers
# A pod whose image is in spec.containerd.prePull starts without a pull. kubelet counts the image as preloaded, so a private one needs no
# secret. The kubelet, containerd 2.x and runc are real; the registry is tests/mock/registry.py.
# By hand, LIMIT=10m BIG=10000000000 make test T=tests/cluster/pre-pull.sh does so with 10 GB; it needs 70 GB of disk.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
# shellcheck source=tests/cluster/lib/state.sh
. "$(dirname "$(realpath "$0")")/lib/state.sh"
wants runc python3 busybox
PATH=${CONTAINERD%/*}:$PATH program=$(dirname "$(realpath "$NODESTRAP")")/nodestrap-pre-pull big=${BIG:-48000000} limit=${LIMIT:-60s}
ecr=123456789012.dkr.ecr.us-west-2.amazonaws.com private=$ecr/private/big/training:1 public=plain.test/public/tool:1 late=$ecr/private/big/late:1

# ---- the machine ----
spawn registry python3 "$tests/mock/registry.py" --listen 127.0.0.1:5000 --login AWS:password --big "$big" --program "$(command -v busybox)" --log "$PWD/requests"
# The registry makes an image at the first question.
made() { local i; for i; do curl -sSfI --noproxy '*' --user AWS:password "http://127.0.0.1:5000/v2/$i/manifests/1" || return; done; }
comes registry listens 127.0.0.1 5000
try "images of $big bytes" made private/big/{training,late} public/tool
mkdir cni; echo '{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "loopback"}]}' >cni/10-pods.conflist
for name in $ecr plain.test; do
        mkdir -p certs.d/$name; printf 'server = "http://127.0.0.1:5000"\n[host."http://127.0.0.1:5000"]\ncapabilities = ["pull", "resolve"]\n' >certs.d/$name/hosts.toml
done
printf '[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "localhost/kubernetes/pause:latest"\nrestrict_oom_score_adj = true\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "%s/certs.d"\n' "$PWD" >containerd.more
ip address add 10.0.2.15/32 dev lo
try "the machine starts" machine_starts
python3 "$tests/boot/lib/archive.py" pause.tar localhost/kubernetes/pause:latest "$(command -v busybox)" sleep 100000
on_node() { ctr -a "$PWD/root/run/containerd/containerd.sock" -n k8s.io "$@"; }
try "containerd imports the sandbox image" on_node images import pause.tar
# The provider records each request. It has a login as long as /run/nodestrap/role is there.
mkdir -p root/bin root/run/nodestrap; cp "$(command -v busybox)" root/bin/; : >root/run/nodestrap/role
provider=root/etc/eks/image-credential-provider/ecr-credential-provider; rm -f $provider
printf '#!/bin/busybox sh\n/bin/busybox cat >>/run/nodestrap/asked\n[ -e /run/nodestrap/role ] || exit 1\necho '\''%s'\''\n' \
        '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Image", "auth": {"*.dkr.ecr.*.amazonaws.com": {"username": "AWS", "password": "password"}}}' >$provider
chmod 755 $provider
eval "cluster_$(declare -f user_data)"; user_data() { cluster_user_data; printf '  containerd: {prePull: [%s, %s]}\n' $private $public; }
# Paths of pods are the same for containerd, which is not below root.
for name in kubelet pods; do mkdir -p "$name" "root$PWD/$name"; mount --bind "$name" "root$PWD/$name"; done
# The disk of this machine may be full for kubelet.
settings="podLogsDir: $PWD/pods, imageGCHighThresholdPercent: 100, evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}"
certificate node ca "/O=system:nodes/CN=system:node:$NODE"; kubeconfig node node.kubeconfig
kubectl --kubeconfig node.kubeconfig config view --raw --flatten >root/kubelet.kubeconfig; kubectl create serviceaccount default >/dev/null; : >root/etc/resolv.conf; echo 127.0.0.1 localhost >root/etc/hosts

# ---- the images ----
pre_pull() { unshare --mount bash -c 'mount --bind root/run /run && mount --bind root/etc /etc && exec "$0"' "$program" >pulled 2>&1 && cat pulled; }
try "init succeeds" init "$settings"
try "nodestrap-pre-pull, with what init has written" pre_pull
try "containerd pulls both images" grep -F "2 of 2 pulled" root/run/nodestrap/pre-pull.json || sed 's/^/# /' pulled
try "the provider gets a request for the private image" is "$(cat root/run/nodestrap/asked)" '{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"'${private%:*}'"}'

# ---- pods ----
begins() { kubelet_begins --kubeconfig=/kubelet.kubeconfig --root-dir="$PWD/kubelet"; disown; }
ends() { kill -KILL "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; }
ready() { kubectl wait --for=create --timeout=60s "node/$NODE" && kubectl wait --for=condition=Ready --timeout=60s "node/$NODE"; }
kubelet_says() { grep -E '^[EF]' log | tail -8 | cut -c1-400 | sed 's/^/# /'; }
# pod NAME IMAGE: it is made; the file began says when
pod() {
        echo $EPOCHREALTIME >began; : >requests; : >root/run/nodestrap/asked
        kubectl create -f - <<-END
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {"nodeName": "$NODE", "hostNetwork": true, "dnsPolicy": "Default", "terminationGracePeriodSeconds": 0,
	 "automountServiceAccountToken": false, "enableServiceLinks": false, "tolerations": [{"operator": "Exists"}],
	 "containers": [{"name": "it", "image": "$2", "imagePullPolicy": "IfNotPresent", "command": ["/bin/busybox", "sleep", "100000"]}]}}
	END
}
runs() {
        kubectl wait --for=condition=Ready --timeout="$limit" "pod/$1" || { kubectl describe pod "$1" | tail -12; return 1; }
        awk -v a="$(cat began)" -v b="$EPOCHREALTIME" -v what="$1" 'BEGIN { printf "# pod %s ran %.1f s after its creation\n", what, b - a }' >&3
}
exec 3>&1
event() { kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o 'jsonpath={range .items[*]}{.message}{"\n"}{end}'; }
told() { within 30 eval "event $1 $2 | grep -F -- '$3'" || { event "$1" "$2"; return 1; }; }
asked_nobody() { is "$(cat requests)" '' && is "$(cat root/run/nodestrap/asked)" ''; }
waits() { kubectl get pod "$1" -o 'jsonpath={.status.containerStatuses[0].state.waiting.reason}' | grep -E 'ErrImagePull|ImagePullBackOff'; }

begins
try "the Node is Ready" ready || kubelet_says
try "a pod of the private image" pod private $private
try "the pod runs" runs private || kubelet_says
try "its image is there already" told private Pulled "Container image \"$private\" already present on machine"
try "kubelet asked neither registry nor provider" asked_nobody
try "a pod of the public one" pod public $public
try "the pod runs" runs public
try "the public image needs no pull either" told public Pulled "already present on machine"
try "the provider gets no request for an image that is there" asked_nobody

try "control: a pod of an image as large that is not in the list" pod late $late
try "a pod of another private image runs" runs late
try "kubelet has pulled that" told late Pulled "Successfully pulled image \"$late\""
try "the provider gets a request for the other image" grep -F '"image":"'${late%:*}'"' root/run/nodestrap/asked
try "kubelet pulls the other image from the registry" grep -E '^GET /v2/private/big/late/blobs/.* 200$' requests

# ---- policies ---- A preloaded image is free for all pods; one that kubelet has pulled wants its login.
rm root/run/nodestrap/role
try "a pod of the preloaded image begins without a login" pod free $private
try "the pod runs" runs free
try "the provider gets no request" asked_nobody
ends
try "init succeeds with AlwaysVerify" init "$settings, imagePullCredentialsVerificationPolicy: AlwaysVerify"
begins
try "the Node is Ready" ready
try "a pod of the preloaded image begins without a login, under AlwaysVerify" pod denied $private
try "that pod does not run" within 60 waits denied
try "the registry wants a login for it" told denied Failed "no basic auth credentials"
: >root/run/nodestrap/role
try "a pod of the preloaded image begins with a login" pod allowed $private
try "the pod runs" runs allowed
try "kubelet has asked the registry for it" grep -E '^(GET|HEAD) /v2/private/big/training/manifests/.* 200$' requests
ends
on_node tasks ls -q | while read -r task; do on_node tasks kill -s KILL "$task"; done
finish
