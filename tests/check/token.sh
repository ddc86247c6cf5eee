#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `nodestrap token`: every source of credentials, every endpoint, every sentence of a failure; judged by credential.py as the cluster would.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp, here and the addresses are lib.sh's; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
ROLE=arn:aws:iam::123456789012:role/a+b@c
ROLE_KEY='ASIAROLE:role/secret+1:role//token+=='
IMDS_KEY='ASIAMOCK00000001:mock/secret+1:mock//session+token==1'
ENV_KEY='AKIDENV:env/secret:env-token'
mock4() { mock --sts-listen 127.0.0.1:0 --container-listen 127.0.0.1:0 --role-arn "$ROLE:$ROLE_KEY" "$@"; }

# nodestrap gets only the variables that a test sets. HOME and PATH are not among them.
vars=()
run() { env -i "AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_EC2_METADATA_SERVICE_ENDPOINT" "${vars[@]}" "$nodestrap" token "$@" >"$tmp/out" 2>"$tmp/err"; }
judge() { python3 "$here/credential.py" "$@" <"$tmp/out" >"$tmp/host"; }
quiet() { [ ! -s "$tmp/err" ] || { cat "$tmp/err"; false; }; }
# good KEY OPTION...: a credential for the cluster demo, signed with KEY, and nothing on stderr
good() { local key=$1; shift; run --cluster-name demo "$@" && quiet && judge demo "$key"; }
host() { [ "$(cat "$tmp/host")" = "$1" ] || { cat "$tmp/host"; false; }; }
# fails EXIT CAUSE WORDS OPTION...: one line on stderr, nothing on stdout, no secret in either
fails() {
        local code=$1 cause=$2 words=$3 rc; shift 3
        run "$@"; rc=$?
        [ "$rc" = "$code" ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && says "$words" && grep -qE "^nodestrap: failed \($code $cause\) at (token|start): " "$tmp/err" &&
                ! grep -E 'secret|session\+|env-token|role//' "$tmp/err" || { echo "exit $rc"; cat "$tmp/out" "$tmp/err"; false; }
}
fails_demo() { fails "$1" "$2" "$3" --cluster-name demo --region us-west-2; }

# ---- the role of the instance ----
mock4
ok 'with an almost empty environment, the role of the instance signs the token' good "$IMDS_KEY"
ok 'the token is for STS in the region of the instance' host sts.us-west-2.amazonaws.com
ok 'the token takes four requests to the metadata service' sent 4 imds
ok 'the four requests use one connection' sent 4 'imds c1'
mock4
ok 'with --region, the role of the instance signs the token' good "$IMDS_KEY" --region eu-north-1
ok 'the token is for STS in the region of --region' host sts.eu-north-1.amazonaws.com
ok 'with --region, the token takes three requests' sent 3 imds
ok 'the token is not valid for another cluster' eval '! judge other "$IMDS_KEY"'
run --cluster-id 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0
ok 'the token for the ID of a cluster on an Outpost is valid' judge 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0 ASIAMOCK00000002:mock/secret+2:mock//session+token==2
for fault in 'status=500*2' 'status=503*1' 'close*1' 'refuse*1' 'garbage*1' 'delay=0.2' 'status=404*1@/latest/meta-data/iam' 'status=401*1'; do
        mock4 --fault "imds:$fault"
        ok "token succeeds without a message after $fault of the metadata service" good "$IMDS_KEY"
done
mock4 --fault 'imds:status=404@/latest/meta-data/placement/region'
ok 'a missing region is an error that names --region' fails 20 EFACTS 'does not have the region; name it with --region' --cluster-name demo
broken=$tmp/broken/latest/meta-data/iam/security-credentials && mkdir -p "$broken"
echo role >"$broken/role"
for text in '{"Code": "AssumeRoleUnauthorizedAccess", "Message": "secret"}|a Code other than Success' '{"Code": "Success", "AccessKeyId": "A"}|lacks AccessKeyId or SecretAccessKey' 'secret|not JSON'; do
        echo "${text%|*}" >"$broken/role"
        mock4 --imds "$tmp/broken"
        ok "a role without credentials is an error: ${text#*|}" fails_demo 20 ECREDENTIALS "${text#*|}; the trust policy of the role must allow"
done

# ---- endpoints ----
mock4
vars=(AWS_ACCESS_KEY_ID=AKIDENV AWS_SECRET_ACCESS_KEY=env/secret AWS_SESSION_TOKEN=env-token)
environment=("${vars[@]}")
ok 'credentials in the environment sign the token' good "$ENV_KEY" --region us-west-2
ok 'credentials in the environment cause no request to the metadata service' sent 0 imds
while read -r words want; do
        IFS=, read -ra more <<<"$words"
        vars=("${environment[@]}" "${more[@]}")
        ok "the token is valid with $words" good "$ENV_KEY"
        ok "the token is for $want" host "$want"
done <<'END'
AWS_REGION=us-west-2,AWS_DEFAULT_REGION=us-east-1 sts.us-west-2.amazonaws.com
AWS_DEFAULT_REGION=ap-southeast-7 sts.ap-southeast-7.amazonaws.com
AWS_REGION=,AWS_DEFAULT_REGION=mx-central-1 sts.mx-central-1.amazonaws.com
AWS_REGION=cn-north-1 sts.cn-north-1.amazonaws.com.cn
AWS_REGION=us-gov-west-1 sts.us-gov-west-1.amazonaws.com
AWS_REGION=us-iso-east-1 sts.us-iso-east-1.c2s.ic.gov
AWS_REGION=us-isob-east-1 sts.us-isob-east-1.sc2s.sgov.gov
AWS_REGION=eu-isoe-west-1 sts.eu-isoe-west-1.cloud.adc-e.uk
AWS_REGION=us-isof-south-1 sts.us-isof-south-1.csp.hci.ic.gov
AWS_REGION=eusc-de-east-1 sts.eusc-de-east-1.amazonaws.eu
AWS_REGION=us-west-2,AWS_USE_FIPS_ENDPOINT=true sts-fips.us-west-2.amazonaws.com
AWS_REGION=us-west-2,AWS_USE_FIPS_ENDPOINT=TRUE sts-fips.us-west-2.amazonaws.com
AWS_REGION=us-west-2,AWS_USE_FIPS_ENDPOINT=1 sts.us-west-2.amazonaws.com
AWS_REGION=us-gov-east-1,AWS_USE_FIPS_ENDPOINT=true sts.us-gov-east-1.amazonaws.com
AWS_REGION=us-west-2,AWS_USE_DUALSTACK_ENDPOINT=true sts.us-west-2.api.aws
AWS_REGION=cn-north-1,AWS_USE_DUALSTACK_ENDPOINT=true sts.cn-north-1.api.amazonwebservices.com.cn
AWS_REGION=us-gov-east-1,AWS_USE_DUALSTACK_ENDPOINT=true,AWS_USE_FIPS_ENDPOINT=true sts-fips.us-gov-east-1.api.aws
AWS_REGION=us-west-2,AWS_STS_REGIONAL_ENDPOINTS=legacy sts.us-west-2.amazonaws.com
AWS_REGION=us-west-2,AWS_ENDPOINT_URL_STS=https://STS.example,AWS_ENDPOINT_URL=https://other.example STS.example
AWS_REGION=us-west-2,AWS_ENDPOINT_URL=https://sts.example:8443,AWS_USE_FIPS_ENDPOINT=true sts.example:8443
AWS_REGION=us-west-2,AWS_ENDPOINT_URL=https://sts.example,AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true sts.us-west-2.amazonaws.com
END
# Asks the mock of STS as the API server would.
resolve() {
        python3 -c 'import json, sys, urllib.request
sys.path.insert(0, sys.argv[1])
import credential
url = credential.url_of(json.load(open(sys.argv[2]))["status"]["token"])
urllib.request.urlopen(urllib.request.Request(url, headers={"x-k8s-aws-id": sys.argv[3]}))' "$here" "$tmp/out" "$1"
}
mock4 --key "$ENV_KEY"
vars=("${environment[@]}" AWS_REGION=us-west-2 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
run --cluster-name demo
ok 'STS accepts the token for its cluster' resolve demo
ok 'STS refuses the token for another cluster' eval '! resolve other'
vars=("${environment[@]}" AWS_ENDPOINT_URL_STS=ftp://x)
ok 'an invalid endpoint is an error that names the variable' fails_demo 2 EUSAGE 'AWS_ENDPOINT_URL_STS in the environment is not of the form http[s]://HOST[:PORT][/PATH]'
for region in '' us_west us/west -us us- 'us west' "$(printf '%064d' 0)"; do
        vars=("${environment[@]}" "AWS_REGION=us-west-2")
        [ -z "$region" ] || ok "\"$region\" is not a valid region" fails 2 EUSAGE 'is not the name of a region' --cluster-name demo --region "$region"
done

vars=(AWS_EC2_METADATA_DISABLED=true)
ok 'token fails without credentials and without the metadata service' fails_demo 12 EIMDS 'AWS_EC2_METADATA_DISABLED is true in the environment'
mock4
vars=(AWS_EC2_METADATA_DISABLED=1)
ok 'AWS_EC2_METADATA_DISABLED=1 does not disable the metadata service' good "$IMDS_KEY"

# ---- what token requests ----
vars=("${environment[@]}" AWS_REGION=us-west-2)
version() { vars=("${environment[@]}" AWS_REGION=us-west-2 "KUBERNETES_EXEC_INFO=$1"); run --cluster-name demo && judge demo "$ENV_KEY" "$2"; }
info() { printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/%s","spec":{"interactive":false}}' "$1"; }
for v in v1 v1beta1 v1alpha1; do
        ok "token prints ExecCredential $v if KUBERNETES_EXEC_INFO wants it" version "$(info $v)" $v
        ok 'token prints no warning for a known version of ExecCredential' quiet
done
for text in "$(info v2)" 'not JSON' '[]' '{}' '{"apiVersion": 1}' '"client.authentication.k8s.io/v1"'; do
        ok "token prints v1beta1 if KUBERNETES_EXEC_INFO is $text" version "$text" v1beta1
        ok 'a warning says that KUBERNETES_EXEC_INFO wants an unknown version' says 'warning: KUBERNETES_EXEC_INFO asks for an unknown version of ExecCredential'
done
vars=("${environment[@]}" AWS_REGION=us-west-2)
ok 'token without a cluster is an error' fails 2 EUSAGE 'token needs either --cluster-name NAME or --cluster-id ID'
ok '--cluster-name together with --cluster-id is an error' fails 2 EUSAGE 'token needs either' --cluster-name a --cluster-id b
ok 'an empty cluster name is an error' fails 2 EUSAGE 'the cluster name or id is empty' --cluster-name ''
ok 'a line end in the cluster name is an error' fails 2 EUSAGE 'has a control character' --cluster-name $'a\nx-k8s-aws-id: b'
ok 'an empty --role-arn is an error' fails 2 EUSAGE '--role-arn is empty' --cluster-name demo --role-arn ''
ok 'token does not take --root' fails 2 EUSAGE 'token does not take --root' --cluster-name demo --root /
ok 'plan does not take --cluster-name' eval '! "$nodestrap" plan --cluster-name demo 2>"$tmp/err" && says "plan does not take --cluster-name"'
ok "nodeadm has no token command" eval 'ln -s "$nodestrap" "$tmp/nodeadm"; ! "$tmp/nodeadm" token --cluster-name demo 2>"$tmp/err" && says "is not known"'

# ---- a web identity ----
mock4
printf 'identity\n' >"$tmp/identity"
web=(AWS_REGION=us-west-2 "AWS_WEB_IDENTITY_TOKEN_FILE=$tmp/identity" "AWS_ROLE_ARN=$ROLE" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
vars=("${web[@]}")
ok 'a web identity gets the credentials of its role' good "$ROLE_KEY"
ok 'the credentials of a web identity come from STS with one request' sent 1 AssumeRoleWithWebIdentity
ok 'a web identity causes no request to the metadata service' sent 0 imds
vars=("${web[@]}" AWS_ROLE_SESSION_NAME=me)
ok 'a web identity may have a session name' good "$ROLE_KEY"
vars=("${web[@]}" "${environment[@]}")
ok 'credentials in the environment take precedence over a web identity' good "$ENV_KEY"
vars=("${web[@]}" "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://$container/v1/credentials")
ok 'a web identity takes precedence over the endpoint of a container' good "$ROLE_KEY"
vars=("${web[@]}" AWS_ROLE_ARN=)
ok 'a web identity without a role is an error' fails_demo 20 ECREDENTIALS 'AWS_ROLE_ARN is not in the environment'
vars=("${web[@]}" "AWS_WEB_IDENTITY_TOKEN_FILE=$tmp/absent")
ok 'a missing web identity file is an error that names it' fails_demo 20 ECREDENTIALS "$tmp/absent, which AWS_WEB_IDENTITY_TOKEN_FILE names, cannot be read: No such file or directory"
: >"$tmp/empty"; printf 'secret secret' >"$tmp/two"
vars=("${web[@]}" "AWS_WEB_IDENTITY_TOKEN_FILE=$tmp/empty")
ok 'an empty web identity file is an error' fails_demo 20 ECREDENTIALS 'is empty'
vars=("${web[@]}" "AWS_WEB_IDENTITY_TOKEN_FILE=$tmp/two")
ok 'a web identity file with more than one token is an error' fails_demo 20 ECREDENTIALS 'contains no valid token'
echo another >"$tmp/other"
vars=("${web[@]}" "AWS_WEB_IDENTITY_TOKEN_FILE=$tmp/other")
ok 'a web identity that STS refuses is an error with the code of STS' fails_demo 20 ESTS "refused AssumeRoleWithWebIdentity: InvalidIdentityToken (HTTP 400, request 4d5c1e2a-mock): a retry will not help"
for fault in 'error=IDPCommunicationError*2' 'error=Throttling*1' 'status=503*1' 'not-xml*1' 'close*1'; do
        mock4 --fault "sts:$fault"
        vars=("${web[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
        ok "token succeeds without a message after $fault of STS" good "$ROLE_KEY"
done
mock4 --fault sts:error=ExpiredTokenException
vars=("${web[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
ok 'the error for an expired web identity names the variable and the cause' fails_demo 20 ESTS 'the token in AWS_WEB_IDENTITY_TOKEN_FILE has expired'
mock4 --fault sts:error=AccessDenied
vars=("${web[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
ok 'the error for a role that denies the web identity names the trust policy' fails_demo 20 ESTS 'the trust policy of AWS_ROLE_ARN must name the identity provider'

# ---- a container's endpoint ----
mock4 --container-token 'agent-token'
printf 'agent-token\n' >"$tmp/agent"
pod=(AWS_REGION=us-west-2 "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://$container/v1/credentials?id=1" "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$tmp/agent")
vars=("${pod[@]}")
ok 'the endpoint of EKS Pod Identity gives the credentials' good "$IMDS_KEY"
ok 'token requests the path in AWS_CONTAINER_CREDENTIALS_FULL_URI once' sent 1 'container .*/v1/credentials.id=1 200'
ok 'EKS Pod Identity causes no request to the metadata service' sent 0 imds
vars=("${pod[@]}" AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE= AWS_CONTAINER_AUTHORIZATION_TOKEN=agent-token)
ok 'AWS_CONTAINER_AUTHORIZATION_TOKEN replaces the authorization token file' good ASIAMOCK00000002:mock/secret+2:mock//session+token==2
vars=("${pod[@]}" AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=)
ok 'a container endpoint that answers HTTP 401 is an error' fails_demo 20 ECREDENTIALS 'gives no credentials: HTTP 401; check the EKS Pod Identity agent and its association'
ok 'token does not retry after HTTP 401 of the container endpoint' sent 1 'container .* 401'
vars=("${pod[@]}" "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$tmp/absent")
ok 'a missing authorization token file is an error' fails_demo 20 ECREDENTIALS 'which AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE names, cannot be read'
vars=("${pod[@]}" AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE= $'AWS_CONTAINER_AUTHORIZATION_TOKEN=a\r\nX: b')
ok 'an authorization token with a line end is an error' fails_demo 20 ECREDENTIALS 'AWS_CONTAINER_AUTHORIZATION_TOKEN in the environment has invalid characters'
while IFS='|' read -r words want; do
        vars=("${pod[@]}" AWS_CONTAINER_CREDENTIALS_FULL_URI= "$words")
        ok "$words is refused" fails_demo 20 ECREDENTIALS "$want"
done <<'END'
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://10.0.0.1/v1/credentials|names another machine
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1.example/v1/credentials|names another machine
AWS_CONTAINER_CREDENTIALS_FULL_URI=https://127.0.0.1/v1/credentials|AWS_CONTAINER_CREDENTIALS_FULL_URI in the environment is not of the form http://HOST
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1#x|is not of the form
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/a b|is not of the form
AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=.example/v2|AWS_CONTAINER_CREDENTIALS_RELATIVE_URI in the environment is not of the form /PATH
END
for fault in 'status=500*2' 'status=429*1' 'close*1' 'refuse*1'; do
        mock4 --key "$IMDS_KEY" --container-token agent-token --fault "container:$fault"
        vars=("${pod[@]}" "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://$container/v1/credentials")
        ok "token succeeds without a message after $fault of the container endpoint" good "$IMDS_KEY"
done
mock4 --fault 'container:body=secret'
vars=("${pod[@]}" "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://$container")
ok 'an answer of the container endpoint that is not JSON is an error' fails_demo 20 ECREDENTIALS 'its answer is not JSON'

# ---- another role ----
mock4 --key "$ENV_KEY"
assume=("${environment[@]}" AWS_REGION=us-west-2 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
vars=("${assume[@]}")
ok 'with --role-arn, the assumed role signs the token' good "$ROLE_KEY" --role-arn "$ROLE"
ok '--role-arn causes one AssumeRole request' sent 1 'AssumeRole 200'
ok 'the error for a role that may not be assumed names its trust policy' fails 20 ESTS 'refused AssumeRole: AccessDenied (HTTP 403, request 4d5c1e2a-mock): the trust policy of the role in --role-arn must name the identity in use' \
        --cluster-name demo --role-arn "$ROLE/other"
vars=("${assume[@]}" AWS_SECRET_ACCESS_KEY=false-secret)
ok 'the error for a wrong secret key has the time of the clock' fails 20 ESTS 'it does not accept the credentials or the signature; the clock here is' --cluster-name demo --role-arn "$ROLE"
mock4 --key "$ENV_KEY" --fault sts:no-date
vars=("${assume[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS" AWS_SECRET_ACCESS_KEY=false-secret)
ok 'the error for a wrong secret key says that the answer has no date to compare' fails 20 ESTS 'its answer has no date to check this clock against' \
        --cluster-name demo --role-arn "$ROLE"
mock4
vars=(AWS_REGION=us-west-2 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
ok 'the role of the instance may assume another role' good "$ROLE_KEY" --role-arn "$ROLE"
for code in 'ExpiredToken|the credentials in use have expired' 'RegionDisabledException|activate STS for this region' 'ValidationError|a retry will not help'; do
        mock4 --fault "sts:error=${code%|*}"
        vars=("${environment[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
        ok "${code%|*} from STS is an error that explains the code" fails 20 ESTS "${code#*|}" --cluster-name demo --region us-west-2 --role-arn "$ROLE"
done
mock4 --fault sts:expired
vars=(AWS_REGION=us-west-2 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
ok 'token succeeds after STS says that the credentials have expired' good "$ROLE_KEY" --role-arn "$ROLE"
ok 'token fetches expired credentials again, once' sent 2 security-credentials/mock-role
ok 'token sends AssumeRole again after the credentials have expired' sent 2 AssumeRole
for skew in 3600 -3600; do
        mock4 --key "$ENV_KEY" --fault "sts:skew=$skew"
        vars=("${environment[@]}" AWS_REGION=us-west-2 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
        ok "token corrects a clock that is off by $skew s" run --cluster-name demo --role-arn "$ROLE"
        ok 'a clock that is off takes one more request' sent 2 AssumeRole
        ok 'a warning says that token signs by the time of STS' says "STS; signing requests with the time from STS. Check chrony."
        ok 'STS accepts the token after the clock was corrected' resolve demo
done
for fault in 'skew=3600|RequestExpired (HTTP 400)' 'expired|ExpiredToken (HTTP 403)'; do
        mock4 --fault "sts:${fault%|*}"
        vars=(AWS_REGION=us-west-2 AWS_MAX_ATTEMPTS=1 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
        run --cluster-name demo --role-arn "$ROLE"
        ok "the error after ${fault%|*} has the last answer if no attempt is left" says "the last one: ${fault#*|}. STS itself reports"
        ok 'the error without another attempt has no (null)' lacks '(null)'
done
for fault in 'redirect|HTTP 307, a redirect, which nodestrap never follows: a server other than STS answers there' 'status=503|an answer that is not from STS (HTTP 503)' \
             'not-xml|a non-XML answer from STS' 'error=Throttling|Throttling (HTTP 400)'; do
        mock4 --fault "sts:${fault%|*}"
        vars=("${environment[@]}" AWS_REGION=us-west-2 AWS_MAX_ATTEMPTS=2 "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
        ok "${fault%|*} until the last attempt is an error that has the last answer" fails 20 ESTS "; the last one: ${fault#*|}. " --cluster-name demo --role-arn "$ROLE"
        ok 'token stops after AWS_MAX_ATTEMPTS requests' sent 2 sts
done
if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$tmp/key" -out "$tmp/cert" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null; then
        mock4 --key "$ENV_KEY" --tls "$tmp/cert:$tmp/key"
        vars=("${environment[@]}" AWS_REGION=us-west-2 "AWS_ENDPOINT_URL_STS=https://localhost:${sts##*:}" "AWS_CA_BUNDLE=$tmp/cert")
        ok 'token uses TLS with STS' good "$ROLE_KEY" --role-arn "$ROLE"
        vars=("${vars[@]:0:5}" "REQUESTS_CA_BUNDLE=$tmp/cert")
        ok 'token trusts the CA in REQUESTS_CA_BUNDLE, like the AWS CLI' good "$ROLE_KEY" --role-arn "$ROLE"
        vars+=(AWS_CA_BUNDLE=/dev/null)
        ok 'AWS_CA_BUNDLE takes precedence over REQUESTS_CA_BUNDLE' fails 20 ESTS '/dev/null, which AWS_CA_BUNDLE names, has no PEM certificate' --cluster-name demo --role-arn "$ROLE"
        ok 'a token that is only presigned needs no CA' good "$ENV_KEY"
else
        count=$((count + 1))
        echo "ok $count - token uses TLS with STS # SKIP no openssl program"
fi

# ---- bad places ----
mock4
vars=()
closed() { (exec <&- 2>&-; run --cluster-name demo --region us-west-2 2>&-) && judge demo "$IMDS_KEY"; }
ok 'token succeeds without stdin and stderr' closed
mock4
full() { env -i "AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_EC2_METADATA_SERVICE_ENDPOINT" "$nodestrap" token --cluster-name demo >/dev/full 2>"$tmp/err"; [ $? = 40 ] && says 'stdout cannot be written'; }
ok 'token fails if its output cannot be written' full
mock4
# A file may not get a single byte, so the command works on any full disk.
no_files() {
        env -i "AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_EC2_METADATA_SERVICE_ENDPOINT" bash -c 'ulimit -f 0; exec "$0" token --cluster-name demo' "$nodestrap" 2>&1 | cat >"$tmp/out"
        judge demo "$IMDS_KEY"
}
ok 'token writes no file' no_files
mock4 --key "$ENV_KEY" --fault imds:delay=0.05
crowd() {
        local n pids=() bad=0
        for n in {1..20}; do
                env -i "AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_EC2_METADATA_SERVICE_ENDPOINT" "$nodestrap" token --cluster-name demo >"$tmp/out.$n" 2>"$tmp/err.$n" & pids+=($!)
        done
        for n in "${pids[@]}"; do wait "$n" || bad=1; done
        for n in {1..20}; do cp "$tmp/out.$n" "$tmp/out"; judge demo "$ENV_KEY" || bad=1; [ ! -s "$tmp/err.$n" ] || { cat "$tmp/err.$n"; bad=1; }; done
        return $bad
}
ok 'twenty processes get a token in parallel' crowd
loaded() { env -i LD_DEBUG=files "${vars[@]}" "$nodestrap" token --cluster-name demo --region us-west-2 "$@" 2>&1 >/dev/null | grep -q 'calling init: .*libcurl'; }
vars=("${environment[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
if [[ $(file -L "$nodestrap" 2>/dev/null) != *statically* ]]; then
        ok '--role-arn loads libcurl and its libraries' loaded --role-arn "$ROLE"
        ok 'a token without --role-arn does not load libcurl' eval '! loaded'
fi
vars=("${assume[@]}" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS")
ok 'token succeeds with debug messages' run --cluster-name demo --role-arn "$ROLE" --development
ok 'debug messages have no secret' eval '! grep -E "secret|token" "$tmp/err"'

# A service that never recovers takes the whole time.
if [ -n "${NODESTRAP_LONG:-}" ]; then
        mock4 --fault imds:silent --fault sts:silent --fault container:silent
        forever() {
                local name=$1; shift
                env -i "AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_EC2_METADATA_SERVICE_ENDPOINT" "AWS_ENDPOINT_URL_STS=$AWS_ENDPOINT_URL_STS" "$@" \
                        timeout 20 "$nodestrap" token --cluster-name demo --region us-west-2 ${role:+--role-arn "$role"} >"$tmp/$name.out" 2>"$tmp/$name.err"
                echo $? >"$tmp/$name.rc"
        }
        role='' forever imds & role='' forever web "${web[@]:1:2}" & role=$ROLE forever assume "${environment[@]}" &
        role='' forever pod "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://$container/v1/credentials" &
        for name in imds web assume pod; do wait -n; done
        judged() { [ "$(cat "$tmp/$1.rc")" = "$2" ] && [ "$(wc -l <"$tmp/$1.err")" = 1 ] && grep -F -- "$3" "$tmp/$1.err" || { cat "$tmp/$1.rc" "$tmp/$1.err"; false; }; }
        ok 'a metadata service that never answers is an error' judged imds 12 'no answer in time'
        ok 'STS that never answers a web identity is an error' judged web 20 'no usable answer from STS at'
        ok 'STS that never answers AssumeRole is an error' judged assume 20 'Check the network path to STS'
        ok 'a container endpoint that never answers is an error' judged pod 20 'gives no credentials: no answer in time'
        vars=()
        mock4 --fault 'imds:status=403@/latest/api/token'
        ok 'a metadata service that is switched off is an error' fails_demo 12 EIMDS 'HTTP 403: the metadata service is switched off in the metadata options of this instance'
        mock4 --no-role
        ok 'an instance without a role is an error' fails_demo 20 ECREDENTIALS 'it was launched without an instance profile, or the profile has no role'
else
        count=$((count + 1))
        echo "ok $count - a service that never answers is an error # SKIP they take ten seconds: NODESTRAP_LONG=1"
fi
done_testing
