# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The control plane of a cluster named training, in a network namespace with a loopback alone. tests/run/cluster.sh, scripts on this machine
# and requests of guests source it. $KUBE is a directory of tests/tools/kube.sh, $CLUSTER the folder of this cluster: pki/, log/ (one of
# each program), imds/ (metadata of its instance), kubeconfig (of an administrator).
#   10.0.2.100:6443       the API server: the endpoint of nodes, from here and from a guest
#   10.0.2.101:443        EC2 (ec2.us-west-2.amazonaws.com, TLS of pki/aws.crt)
#   10.0.2.103:443        STS
#   169.254.169.254:80    instance metadata, for programs on this machine
# A function starts and stops each part, from any shell with $CLUSTER: etcd, authenticator, aws, api, controllers.
#   cluster_start [WORD…] / cluster_stop      all of it; ready when it returns. Words, the options of the cluster:
#       unmapped          no user has the role of the nodes
#       front             the API server stands behind lib/front.py, which can answer in its place (front_says)
#       down              the API server is not started
#       no-controllers    neither is the controller manager, for tests that want Nodes and Events alone
#       aws=OPTION        one more option of tests/mock/aws.py (--fault sts:delay=5)
#       audit             the API server writes log/audit: each request, and what it answered about Nodes
: "${KUBE:?}" "${CLUSTER:?}"
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
# For the programs here: settings of the caller would count.
unset "${!AWS_@}" {HTTP,HTTPS,NO,ALL}_PROXY {http,https,no,all}_proxy SSL_CERT_FILE SSL_CERT_DIR KUBECONFIG
export KUBECONFIG=$CLUSTER/kubeconfig PATH=$KUBE:$PATH
API=https://10.0.2.100:6443
REGION=us-west-2 ACCOUNT=111122223333 ROLE=example-node-role
# shellcheck disable=SC2034 # of the instance that $CLUSTER/imds describes
INSTANCE=i-0f1e2d3c4b5a69788 NODE=ip-10-0-2-15.us-west-2.compute.internal

# ---- programs in the background ----
running() { local pid; read -r pid <"$CLUSTER/pid/$1" && kill -0 "$pid"; } 2>/dev/null
# spawn NAME COMMAND…: its output is appended to log/NAME; it outlives this shell
spawn() {
        local name=$1; shift
        ! running "$name" || return 0
        # shellcheck disable=SC2016 # for that shell
        setsid bash -c 'echo $$ >"$0"; exec "$@"' "$CLUSTER/pid/$name" "$@" </dev/null >>"$CLUSTER/log/$name" 2>&1 &
        disown
        until [ -s "$CLUSTER/pid/$name" ]; do sleep 0.01; done
}
# Its parent has not yet asked for its status, but it holds nothing any more: as long as one thread is left, its sockets are.
ended() { grep -q '^State:.Z' "/proc/$1/status" && [ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]; } 2>/dev/null
# stop NAME [SIGNAL]: it is gone when this returns
stop() {
        local pid; read -r pid 2>/dev/null <"$CLUSTER/pid/$1" || return 0
        rm -f "$CLUSTER/pid/$1"
        kill "-${2:-KILL}" "$pid" 2>/dev/null || return 0
        while kill -0 "$pid" 2>/dev/null && ! ended "$pid"; do sleep 0.02; done
}
# comes NAME COMMAND…: waits until COMMAND succeeds, as long as the program NAME runs, 90 s at most
comes() {
        local name=$1 end=$((SECONDS + 90)); shift
        until "$@" >/dev/null 2>&1; do
                running "$name" || { echo "$name ended: $(tail -3 "$CLUSTER/log/$name")" >&2; return 1; }
                [ $SECONDS -lt $end ] || { echo "$name does not answer: $(tail -3 "$CLUSTER/log/$name")" >&2; return 1; }
                sleep 0.05
        done
}
listens() { (exec 3<>"/dev/tcp/$1/$2"); } 2>/dev/null

# ---- certificates ----
openssl_quiet() { openssl "$@" 2>>"$CLUSTER/log/openssl" || { cat "$CLUSTER/log/openssl" >&2; return 1; }; }
ca() {          # NAME SUBJECT: an authority, pki/NAME.crt and .key
        openssl_quiet req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$CLUSTER/pki/$1.key" -out "$CLUSTER/pki/$1.crt" -subj "$2" \
                -days 3650 -addext keyUsage=critical,keyCertSign,cRLSign
}
certificate() { # NAME CA SUBJECT [NAMES]: pki/NAME.crt and .key, for servers and clients
        local p=$CLUSTER/pki
        openssl_quiet req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$p/$1.key" -out "$p/$1.csr" -subj "$3" &&
                openssl_quiet x509 -req -in "$p/$1.csr" -CA "$p/$2.crt" -CAkey "$p/$2.key" -CAcreateserial -days 3650 -out "$p/$1.crt" \
                        -extfile <(printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n%s' "${4:+subjectAltName=$4}")
}
kubeconfig() {  # NAME FILE: of the certificate pki/NAME.crt
        local p=$CLUSTER/pki
        cat >"$2" <<-END
	apiVersion: v1
	kind: Config
	clusters: [{name: training, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $p/ca.crt}}]
	users: [{name: me, user: {client-certificate: $p/$1.crt, client-key: $p/$1.key}}]
	contexts: [{name: me, context: {cluster: training, user: me}}]
	current-context: me
	END
}
make_pki() {
        ca ca /CN=kubernetes && ca other /CN=kubernetes && ca aws-ca /CN=mock-aws-ca &&
                certificate api ca /CN=kube-apiserver DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.2.100,IP:10.100.0.1 &&
                certificate admin ca /O=system:masters/CN=admin && certificate controllers ca /CN=system:kube-controller-manager &&
                certificate aws aws-ca /CN=mock-aws "DNS:*.$REGION.amazonaws.com,DNS:*.$REGION.api.aws,DNS:sts.amazonaws.com" &&
                openssl_quiet ecparam -name prime256v1 -genkey -noout -out "$CLUSTER/pki/accounts.key" || return
        kubeconfig admin "$KUBECONFIG"; kubeconfig controllers "$CLUSTER/controllers.kubeconfig"
}

# ---- the parts ----
etcd_start() {
        spawn etcd "$KUBE/etcd" --data-dir "$CLUSTER/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
                --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380 --unsafe-no-fsync
}
etcd_stop() { stop etcd; }
# The alarm that etcd raises by itself when its quota is used up: it takes no more writes until the alarm is put out.
etcd_alarm() { curl -sSf --noproxy '*' http://127.0.0.1:2379/v3/maintenance/alarm -d "{\"action\": \"$1\", \"alarm\": \"NOSPACE\"}"; }
etcd_fill() { etcd_alarm ACTIVATE; }
etcd_empty() { etcd_alarm DEACTIVATE; }

# AWS is tests/mock/aws.py here, with its options. The role's keys are those of $CLUSTER/imds; the authenticator has some of its own.
aws_start() {
        spawn aws python3 "$tests/mock/aws.py" --imds "$CLUSTER/imds" --listen 169.254.169.254:80 --ec2-listen 10.0.2.101:443 --sts-listen 10.0.2.103:443 \
                --tls "$CLUSTER/pki/aws.crt:$CLUSTER/pki/aws.key" --key AKIDAUTHENTICATOR:authenticator-secret --log "$CLUSTER/log/aws.requests" "$@"
        comes aws listens 10.0.2.103 443 || return
}
aws_stop() { stop aws; }

# authenticator_start [mapped|unmapped [USER GROUP…]]: who a role is; without a user that of a node
authenticator_start() {
        local role=$ROLE user='system:node:{{EC2PrivateDNSName}}' groups=(system:bootstrappers system:nodes)
        [ "${1-mapped}" = mapped ] || role=somebody-else
        [ $# -lt 3 ] || { user=$2; groups=("${@:3}"); }
        cat >"$CLUSTER/authenticator.yaml" <<-END
	clusterID: training
	server:
	  mapRoles:
	    - roleARN: arn:aws:iam::$ACCOUNT:role/$role
	      username: $user
	      groups: [$(IFS=,; echo "${groups[*]}")]
	END
        spawn authenticator env AWS_ACCESS_KEY_ID=AKIDAUTHENTICATOR AWS_SECRET_ACCESS_KEY=authenticator-secret AWS_REGION=$REGION \
                AWS_STS_REGIONAL_ENDPOINTS=regional SSL_CERT_FILE="$CLUSTER/pki/aws-ca.crt" "$KUBE/aws-iam-authenticator" server --config "$CLUSTER/authenticator.yaml" \
                --state-dir "$CLUSTER/authenticator" --generate-kubeconfig "$CLUSTER/webhook.kubeconfig"
        comes authenticator test -s "$CLUSTER/webhook.kubeconfig" && comes authenticator listens 127.0.0.1 21362
}
authenticator_stop() { stop authenticator; }

api_ready() { curl -sSf --noproxy '*' --max-time 5 --cacert "$CLUSTER/pki/ca.crt" https://127.0.0.1:6443/readyz; }
# api_start [OPTION…]: of kube-apiserver
# shellcheck disable=SC2120 # for scripts that have some
api_start() {
        local p=$CLUSTER/pki
        spawn api "$KUBE/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address="$(cat "$CLUSTER/api-address")" --secure-port=6443 --advertise-address=10.0.2.100 \
                --tls-cert-file="$p/api.crt" --tls-private-key-file="$p/api.key" --client-ca-file="$p/ca.crt" \
                --kubelet-client-certificate="$p/admin.crt" --kubelet-client-key="$p/admin.key" --kubelet-certificate-authority="$p/ca.crt" \
                --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --authentication-token-webhook-config-file="$CLUSTER/webhook.kubeconfig" \
                --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$p/accounts.key" --service-account-signing-key-file="$p/accounts.key" \
                --service-cluster-ip-range=10.100.0.0/16 --allow-privileged=true --endpoint-reconciler-type=none "$@"
        comes api api_ready
}
api_stop() { stop api; }

controllers_start() {
        local p=$CLUSTER/pki
        spawn controllers "$KUBE/kube-controller-manager" --kubeconfig="$CLUSTER/controllers.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true \
                --service-account-private-key-file="$p/accounts.key" --root-ca-file="$p/ca.crt" --cluster-signing-cert-file="$p/ca.crt" --cluster-signing-key-file="$p/ca.key" \
                --controllers=serviceaccount-controller,root-ca-certificate-publisher-controller,certificatesigningrequest-signing-controller,node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller,namespace-controller
}
controllers_stop() { stop controllers; }

# Answers in place of the API server (word front): pass, status=503, status=429,retry-after=3, status=409/404/cut, hang, close
front_says() { echo "$1" >"$CLUSTER/front.says.new"; mv "$CLUSTER/front.says.new" "$CLUSTER/front.says"; }
front_start() {
        front_says pass
        spawn front python3 "$tests/cluster/lib/front.py" 10.0.2.100:6443 127.0.0.1:6443 "$CLUSTER/pki/api.crt" "$CLUSTER/pki/api.key" "$CLUSTER/front.says"
        comes front listens 10.0.2.100 6443
}

# EKS signs what its nodes ask for to serve with: approves those requests as they come. The watch shows each once, and kubelet asks again
# after minutes.
approver_start() {
        # shellcheck disable=SC2016 # for that shell
        spawn approver bash -c 'while :; do kubectl get csr --watch -o "jsonpath={.metadata.name} {.spec.signerName} {.status}{\"\n\"}" | while read -r name signer status; do
                [ "$signer$status" = "kubernetes.io/kubelet-serving{}" ] || continue
                        for _ in {1..50}; do ! kubectl certificate approve "$name" || break; sleep 0.2; done; done; sleep 1; done'
}

cluster_start() {
        local word aws=() mapped=mapped front='' down='' controllers=1 audit=()
        for word; do case $word in
                unmapped) mapped=$word;; front) front=1;; down) down=1;; no-controllers) controllers='';; aws=*) aws+=("${word#aws=}");; audit) audit=("--audit-policy-file=$CLUSTER/audit.yaml" "--audit-log-path=$CLUSTER/log/audit");;
                *) echo "no such word: $word" >&2; return 1;;
        esac; done
        mkdir -p "$CLUSTER"/{pki,log,pid,etcd,authenticator}; chmod 700 "$CLUSTER/etcd"; [ -e "$CLUSTER/pki/ca.crt" ] || make_pki || return
        if [ -n "$front" ]; then echo 127.0.0.1; else echo 0.0.0.0; fi >"$CLUSTER/api-address"
        etcd_start && aws_start "${aws[@]}" && authenticator_start $mapped || return
        [ -z "$front" ] || front_start || return
        printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'omitStages: [RequestReceived]' 'rules:' \
                '- {level: RequestResponse, resources: [{group: "", resources: [nodes, nodes/status]}]}' '- {level: Metadata}' >"$CLUSTER/audit.yaml"
        [ -n "$down" ] || api_start "${audit[@]}" || return
        [ -z "$controllers" ] || { controllers_start; approver_start; }
}
cluster_stop() { local name; for name in "$CLUSTER"/pid/*; do stop "${name##*/}"; done; }

# ---- the instance ----
# Metadata of one in 10.0.2.0/24, which is what QEMU gives to a guest, and the names by which AWS is reached.
make_instance() {
        cp -a "$tests/fixtures/imds-m5" "$CLUSTER/imds"; rm "$CLUSTER/imds/latest/user-data"; ln -s latest "$CLUSTER/imds/2009-04-04"
        find "$CLUSTER/imds/latest" -type f -exec sed -i 's/10\.11\.12\.13/10.0.2.15/; s/ip-10-11-12-13/ip-10-0-2-15/; s,10\.11\.0\.0/20,10.0.2.0/24,; s,10\.11\.0\.0/16,10.0.0.0/16,' {} +
        printf '10.0.2.101 ec2.%s.amazonaws.com\n10.0.2.103 sts.%s.amazonaws.com sts.amazonaws.com\n' $REGION $REGION >"$CLUSTER/hosts"
}
# Of who joins this cluster: user_data [CA], without an argument that of the cluster
# shellcheck disable=SC2120 # for scripts that have one
user_data() {
        printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: training\n    apiServerEndpoint: %s\n    certificateAuthority: %s\n    cidr: 10.100.0.0/16\n' \
                $API "$(base64 -w0 "$CLUSTER/pki/${1:-ca}.crt")"
}
make_user_data() { user_data >"$CLUSTER/imds/latest/user-data"; }
# How a guest reaches all of this: QEMU starts one of these programs for each connection. 10.0.2.102:7 takes one line of shell and answers
# with what it prints here and its status.
make_forwards() {
        local f=$CLUSTER/forward name mac='' word=''; mkdir -p "$f"
        printf '#!/bin/sh\nexec socat - TCP:10.0.2.100:6443 2>/dev/null\n' >"$f/api"
        printf '#!/bin/sh\nexec socat - TCP:10.0.2.101:443 2>/dev/null\n' >"$f/ec2"
        { printf '#!/bin/bash\nexport KUBE=%q CLUSTER=%q\n. %q\n' "$KUBE" "$CLUSTER" "$tests/cluster/lib/control-plane.sh"
          # shellcheck disable=SC2016 # for that shell
          printf 'read -r line; exec 2>&1; (eval "$line") </dev/null; echo "status $?"\n'; } >"$f/host"
        chmod 755 "$f"/*
        for name in 10.0.2.100:6443=api 10.0.2.101:443=ec2 10.0.2.102:7=host; do word+=,guestfwd=tcp:${name%=*}-cmd:$f/${name#*=}; done
        read -r mac <"$CLUSTER/imds/latest/meta-data/mac" || [ -n "$mac" ]
        export NODESTRAP_TEST_QEMU_ARGS="${NODESTRAP_TEST_QEMU_ARGS-} -netdev user,id=n1,net=10.0.2.0/24,restrict=on$word -device virtio-net-pci,netdev=n1,mac=$mac,romfile="
}
