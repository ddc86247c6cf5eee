#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a awscli,kubectl,libfaketime
# imds: imds-m5
# tree: cluster
# nodestrap and the AWS CLI of Debian 13 print the same token, byte for byte, at the same second with the same credentials. Then kubectl
# with the kubeconfig that nodestrap wrote, and an API server that verifies who asks.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

now=$(date -u '+%F %T') clock=$now
at_that_second() {                      # the clock stands still, nothing else is in the environment
        env -i PATH=/usr/bin HOME=/nonexistent TZ=UTC LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 "FAKETIME=$clock" "$@"
}
# same NAME [VARIABLE=VALUE…] -- OPTION…
same() {
        local vars=(); shift
        while [ "$1" != -- ]; do vars+=("$1"); shift; done; shift
        at_that_second "${vars[@]}" aws eks get-token "$@" >theirs 2>theirs.err || { cat theirs.err; return 1; }
        at_that_second "${vars[@]}" nodestrap token "$@" >ours || return
        grep -q k8s-aws-v1 theirs && cmp theirs ours
}
try_same() { try "nodestrap and the AWS CLI print the same token $1" same "$@"; }

keys=(AWS_ACCESS_KEY_ID=AKIDEXAMPLE00000000 AWS_SECRET_ACCESS_KEY=se/cret+0 AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjE//+token==)
for region in us-west-2 ap-southeast-7 cn-north-1 us-gov-west-1 us-iso-east-1 us-isob-east-1 eu-isoe-west-1 us-isof-south-1; do
        try_same "in $region" "${keys[@]}" -- --cluster-name demo --region $region
        case $region in us-iso*|eu-iso*) continue;; esac        # this CLI knows of no IPv6 there yet
        for endpoint in FIPS DUALSTACK; do
                try_same "with the $endpoint endpoint in $region" "${keys[@]}" AWS_REGION=$region AWS_USE_${endpoint}_ENDPOINT=true -- --cluster-name demo
        done
        try_same "with the FIPS endpoint and IPv6 in $region" "${keys[@]}" AWS_REGION=$region AWS_USE_FIPS_ENDPOINT=true AWS_USE_DUALSTACK_ENDPOINT=True -- --cluster-name demo
done
try_same "with a FIPS endpoint where there is none" "${keys[@]}" AWS_REGION=eu-west-1 AWS_USE_FIPS_ENDPOINT=true -- --cluster-name demo
try_same "with a FIPS setting that is not a truth value" "${keys[@]}" AWS_REGION=us-west-2 AWS_USE_FIPS_ENDPOINT=1 AWS_USE_DUALSTACK_ENDPOINT=yes -- --cluster-name demo
try_same "with settings for requests that are not made" "${keys[@]}" AWS_REGION=us-west-2 AWS_CA_BUNDLE=/none AWS_RETRY_MODE=adaptive AWS_MAX_ATTEMPTS=7 -- --cluster-name demo
try_same "without a session token" "${keys[@]:0:2}" AWS_DEFAULT_REGION=eu-central-1 -- --cluster-name demo
try_same "for a cluster by its id" "${keys[@]}" AWS_REGION=us-west-2 -- --cluster-id 3f2a1b5c-0000-4000-8000-1234567890ab
try_same "for a cluster name with blanks" "${keys[@]}" AWS_REGION=us-west-2 -- --cluster-name " a  b "
try_same "with the older variable of STS set" "${keys[@]}" AWS_REGION=us-west-2 AWS_STS_REGIONAL_ENDPOINTS=legacy -- --cluster-name demo
try_same "with another endpoint" "${keys[@]}" AWS_REGION=us-west-2 AWS_ENDPOINT_URL_STS=https://VPCE-0123.sts.us-west-2.vpce.amazonaws.com AWS_ENDPOINT_URL=http://x -- --cluster-name demo
try_same "with another endpoint of all services" "${keys[@]}" AWS_REGION=us-west-2 AWS_ENDPOINT_URL=http://127.0.0.1:5000 AWS_USE_FIPS_ENDPOINT=true -- --cluster-name demo
try_same "with another endpoint that is not to be used" "${keys[@]}" AWS_REGION=us-west-2 AWS_ENDPOINT_URL=http://127.0.0.1:5000 AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true -- --cluster-name demo
for version in v1 v1beta1 v1alpha1 v9; do
        try_same "for ExecCredential $version" "${keys[@]}" AWS_REGION=us-west-2 "KUBERNETES_EXEC_INFO={\"apiVersion\": \"client.authentication.k8s.io/$version\"}" -- --cluster-name demo
done
for clock in '2024-02-29 23:59:59' '2026-12-31 23:50:00' '2038-01-19 03:14:08' '2100-01-01 00:00:00'; do
        try_same "at $clock" "${keys[@]}" AWS_REGION=us-west-2 -- --cluster-name demo
done
clock=$now
try_same "from the instance role" -- --cluster-name demo
role=arn:aws:iam::123456789012:role/other
exec 9< <(exec python3 /vmtest/aws.py --sts-listen 127.0.0.1:8102 --container-listen 127.0.0.1:8103 --container-token agent \
        --key ASIAEXAMPLEEXAMPLE00:exampleexampleexampleexampleexample00000:example-session-token --role-arn "$role:ASIAROLE:role/secret+1:role//token+==" --log out/services.log)
read -r _ <&9 && read -r _ <&9 && read -r _ <&9
printf agent >agent; printf identity >identity
pod=(AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:8103/v1/credentials AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/vmtest/agent)
web=(AWS_ENDPOINT_URL_STS=http://127.0.0.1:8102 AWS_WEB_IDENTITY_TOKEN_FILE=/vmtest/identity "AWS_ROLE_ARN=$role")
try_same "from EKS Pod Identity" AWS_REGION=us-west-2 "${pod[@]}" -- --cluster-name demo
try_same "from a web identity" AWS_REGION=us-west-2 "${web[@]}" -- --cluster-name demo
try_same "from the first of all sources" AWS_REGION=us-west-2 "${pod[@]}" "${web[@]}" -- --cluster-name demo
try_same "in another role" AWS_REGION=us-west-2 AWS_ENDPOINT_URL_STS=http://127.0.0.1:8102 -- --cluster-name demo --role-arn $role
# The CLI keeps what STS gave it for a web identity, and has no need to ask for it again.
try "STS and the container agent get the requests of nodestrap and the AWS CLI" is "$(awk '{ print $2, $5 }' out/services.log | sort | uniq -c | xargs)" "2 container /v1/credentials 2 sts AssumeRole 3 sts AssumeRoleWithWebIdentity"

# ---- kubectl ----
exec 8< <(exec python3 /vmtest/kube.py serve /vmtest/pki --listen 127.0.0.1:6443 --has ip-10-0-0-10 --log out/api.log \
        --key ASIAEXAMPLEEXAMPLE00:exampleexampleexampleexampleexample00000:example-session-token)
read -r _ <&8
try "init writes a kubeconfig" nodestrap init --skip run -c file:///vmtest/cluster.yaml
config=/var/lib/kubelet/kubeconfig
kubectl() { env -i HOME=/nonexistent "$@" /usr/bin/kubectl --kubeconfig "${kubeconfig:-$config}" --cache-dir=/nonexistent get "${get[@]}"; }
get=(--raw /version)
try "kubectl gets the version from the API server, without a message of nodestrap" is "$(kubectl 2>&1)" "$(printf '{"major": "1", "minor": "33", "gitVersion": "v1.33.4", "platform": "linux/amd64"}')"
get=(node ip-10-0-0-10 -o 'jsonpath={.status.conditions[1].message}')
try "kubectl sees the node with the kubeconfig of init" is "$(kubectl 2>&1)" "kubelet is posting ready status"
sed 's/v1beta1/v1\n        interactiveMode: Never/' $config >v1.config
try "kubectl sees the node with a kubeconfig that asks for v1" is "$(kubeconfig=v1.config kubectl 2>&1)" "kubelet is posting ready status"
sed 's/"training"/"production"/' $config >other.config
get=(--raw /version)
refused() { kubeconfig=other.config kubectl >refused 2>&1; ! grep -q major refused && grep -qiE 'unauthorized|logged in' refused || { cat refused; return 1; }; }
try "the API server refuses a token for another cluster" refused
try "the API server logs that the signature of that token does not match" grep -q '401 SignatureDoesNotMatch' out/api.log
told() { kubectl AWS_WEB_IDENTITY_TOKEN_FILE=/absent AWS_ROLE_ARN=$role >told 2>&1; grep -F 'nodestrap: failed (20 ECREDENTIALS) at token: /absent, which AWS_WEB_IDENTITY_TOKEN_FILE names, cannot be read' told || { cat told; return 1; }; }
try "kubectl shows why nodestrap has no token to give" told

finish
