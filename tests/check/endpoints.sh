#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The endpoints of EC2 and STS: for every partition the hosts that the AWS SDKs make, with FIPS, with IPv6 and with both. For init the
# environment in a NodeConfig counts like the process environment. (ec2.sh and token.sh try one endpoint at a time.)
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154  # tmp, root and code are set there
. "$(dirname "$0")/../mock/bad.sh"
tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }

# ---- the rules ----
# host SERVICE REGION FIPS DUALSTACK WANT
host() { same_word "$(AWS_USE_FIPS_ENDPOINT=$3 AWS_USE_DUALSTACK_ENDPOINT=$4 "$tool" endpoint "$1" "$2" 2>/dev/null)" "$5"; }
NONE='AWS_USE_FIPS_ENDPOINT is true, in the environment or in spec.instance.environment, but EC2 has no known FIPS endpoint in %s. Unset it, or name the endpoint with AWS_ENDPOINT_URL_EC2'
# A region, its domain, the domain of its endpoints with IPv6, and its FIPS endpoints of EC2: some, the usual, or none
while read -r region domain dual fips; do
        for service in ec2 sts; do
                kind=$fips
                [ "$service$fips" != stsnone ] || kind=some             # as the AWS CLI does: the name may not exist
                infix=-fips; [ "$kind" != usual ] || infix=
                # shellcheck disable=SC2059
                [ "$kind" = none ] && some=$(printf "$NONE" "$region") both=$some || some=$service$infix.$region.$domain both=$service-fips.$region.$dual
                ok "the $service endpoint in $region is the usual one" host $service "$region" false '' "$service.$region.$domain"
                ok "the $service endpoint in $region with IPv6 is right" host $service "$region" '' TRUE "$service.$region.$dual"
                ok "the $service endpoint in $region with FIPS is right" host $service "$region" true false "$some"
                ok "the $service endpoint in $region with FIPS and IPv6 is right" host $service "$region" True true "$both"
        done
done <<'END'
us-east-1 amazonaws.com api.aws some
us-west-1 amazonaws.com api.aws some
ca-central-1 amazonaws.com api.aws some
ca-west-1 amazonaws.com api.aws some
eu-west-1 amazonaws.com api.aws none
ap-southeast-7 amazonaws.com api.aws none
mx-central-1 amazonaws.com api.aws none
cn-northwest-1 amazonaws.com.cn api.amazonwebservices.com.cn none
us-gov-east-1 amazonaws.com api.aws usual
us-gov-west-1 amazonaws.com api.aws usual
us-iso-east-1 c2s.ic.gov api.aws.ic.gov some
us-isob-east-1 sc2s.sgov.gov api.aws.scloud some
us-isof-south-1 csp.hci.ic.gov api.aws.hci.ic.gov some
eu-isoe-west-1 cloud.adc-e.uk api.cloud-aws.adc-e.uk some
eusc-de-east-1 amazonaws.eu api.amazonwebservices.eu none
END
for variable in AWS_USE_FIPS_ENDPOINT AWS_USE_DUALSTACK_ENDPOINT AWS_IGNORE_CONFIGURED_ENDPOINT_URLS; do
        neither() { same_word "$(env "$variable=1" "$tool" endpoint "$1" us-east-1 2>/dev/null)" "$2"; }
        ok "for EC2 a $variable that is neither true nor false is an error" neither ec2 "$variable in the environment is neither true nor false"
        ok "for STS a $variable that is neither true nor false counts as false, as in the AWS CLI" neither sts sts.us-east-1.amazonaws.com
done
given() { same_word "$(env AWS_USE_FIPS_ENDPOINT=true "AWS_ENDPOINT_URL_EC2=$1" "$tool" endpoint ec2 eu-west-1 2>/dev/null)" "$2"; }
ok 'nodestrap takes a given EC2 endpoint unchanged' given https://ec2-fips.eu-west-1.amazonaws.com ec2-fips.eu-west-1.amazonaws.com
ok 'an EC2 endpoint without a scheme is an error' given ec2.example 'AWS_ENDPOINT_URL_EC2 is not of the form http[s]://HOST[:PORT][/PATH]'
nowhere() {
        ! env AWS_MAX_ATTEMPTS=1 AWS_ACCESS_KEY_ID=A AWS_SECRET_ACCESS_KEY=b AWS_REGION=us-iso-east-1 "$@" "$tool" name i-1 2>"$tmp/err" && says "$WORDS"
}
WORDS='EC2 may have no FIPS endpoint in us-iso-east-1: unset AWS_USE_FIPS_ENDPOINT, or name the endpoint with AWS_ENDPOINT_URL_EC2'
ok 'for an unresolved name the message says that EC2 may have no FIPS endpoint' nowhere AWS_USE_FIPS_ENDPOINT=true
WORDS='EC2 may have no FIPS and dual-stack endpoint in us-iso-east-1: unset AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT, or name'
ok 'for an unresolved name the message says that EC2 may have no FIPS and dual-stack endpoint' nowhere AWS_USE_FIPS_ENDPOINT=true AWS_USE_DUALSTACK_ENDPOINT=true
WORDS='with AWS_ENDPOINT_URL_EC2. Check the network path to the EC2 API'
ok 'for an unresolved dual-stack name the message says to check the network path' nowhere AWS_USE_DUALSTACK_ENDPOINT=true
WORDS='us-iso-east-1.c2s.ic.gov. Check the network path to the EC2 API'
ok 'for an unresolved usual name the message says to check the network path' nowhere AWS_USE_FIPS_ENDPOINT=false

# ---- by a NodeConfig ----
# wants DEFAULT [FEATURE-GATE]: user data with these variables for all services; without that gate the node name comes from EC2
wants() { good | sed "s|InstanceIdNodeName: true|${2-}|; s|default: {.*|default: {$1}|" >"$tmp/wants"; }
# started REGION OPTION...: starts the services in that region; each run reads the user data again
started() {
        rm -rf "$tmp/imds" && cp -r "$fixtures/imds-m5" "$tmp/imds" && grep -rl us-west-2 "$tmp/imds" | xargs sed -i "s/us-west-2/$1/g"
        mock --imds "$tmp/imds" --ec2-listen 127.0.0.1:0 --user-data "$tmp/wants" "${@:2}"
        unset AWS_ENDPOINT_URL_EC2
}
exits() { same_word "$code" "$1"; }
wants ''
started us-west-2
settled
wants "AWS_ENDPOINT_URL_EC2: http://$ec2"
AWS_ENDPOINT_URL_EC2=http://127.0.0.1:1 AWS_MAX_ATTEMPTS=1 init
ok 'the EC2 endpoint of the NodeConfig overrides that of the environment' exits 0
ok 'init asks the EC2 endpoint of the NodeConfig once' sent 1 'ec2 '
wants "AWS_ENDPOINT_URL: http://$ec2"
init
ok 'init asks the AWS_ENDPOINT_URL of the NodeConfig' sent 2 'ec2 '
wants "AWS_ENDPOINT_URL: http://$ec2, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: maybe"
init
ok 'AWS_IGNORE_CONFIGURED_ENDPOINT_URLS that is neither true nor false is an error' fails 20 EEC2 detect
ok 'the message names AWS_IGNORE_CONFIGURED_ENDPOINT_URLS' says_last 'AWS_IGNORE_CONFIGURED_ENDPOINT_URLS in the environment is neither true nor false'
wants "AWS_EC2_METADATA_SERVICE_ENDPOINT: \"http://127.0.0.1:1\", AWS_EC2_METADATA_DISABLED: \"true\", AWS_ENDPOINT_URL_EC2: http://$ec2"
init
ok 'init ignores settings of the metadata service in the NodeConfig' exits 0
wants "AWS_ENDPOINT_URL_EC2: http://$ec2"
AWS_EC2_METADATA_DISABLED=TRUE init
ok 'init fails with EIMDS if the environment disables the metadata service' fails 12 EIMDS source
ok 'the message says that AWS_EC2_METADATA_DISABLED is true' says_last 'AWS_EC2_METADATA_DISABLED is true in the environment'
wants "AWS_USE_FIPS_ENDPOINT: \"true\", AWS_ENDPOINT_URL_EC2: http://$ec2"
init
ok 'init asks a given EC2 endpoint also with AWS_USE_FIPS_ENDPOINT' exits 0
wants "AWS_ACCESS_KEY_ID: AKIDCONFIG, AWS_SECRET_ACCESS_KEY: CANARYsecret, AWS_ENDPOINT_URL_EC2: http://$ec2"
started us-west-2 --no-role --key AKIDCONFIG:CANARYsecret && wants "AWS_ACCESS_KEY_ID: AKIDCONFIG, AWS_SECRET_ACCESS_KEY: CANARYsecret, AWS_ENDPOINT_URL_EC2: http://$ec2"
init
ok 'init takes credentials from the NodeConfig' exits 0
ok 'init shows no credentials of the NodeConfig' silent

wants 'AWS_USE_FIPS_ENDPOINT: "true"'
started eu-west-1
init
ok 'AWS_USE_FIPS_ENDPOINT in a region without a FIPS endpoint of EC2 is an error' fails 20 EEC2 detect
ok 'the message says that EC2 has no known FIPS endpoint in eu-west-1' says_last 'but EC2 has no known FIPS endpoint in eu-west-1. Unset it, or name the endpoint with AWS_ENDPOINT_URL_EC2'
ok 'init fails for a missing FIPS endpoint before it asks for credentials' sent 0 security-credentials
wants 'AWS_USE_FIPS_ENDPOINT: "true"' 'InstanceIdNodeName: true'
init
ok 'a missing FIPS endpoint of EC2 is not an error with InstanceIdNodeName' exits 0
ok 'a warning says that STS has no known FIPS endpoint in eu-west-1' says 'fips-endpoint: AWS_USE_FIPS_ENDPOINT is true, but STS has no known FIPS endpoint in eu-west-1'
started us-east-1
init
ok 'init does not warn in a region that has FIPS endpoints' lacks fips-endpoint

if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$tmp/key" -out "$tmp/cert" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null; then
        started us-west-2 --tls "$tmp/cert:$tmp/key"
        wants "AWS_CA_BUNDLE: $tmp/cert, AWS_ENDPOINT_URL_EC2: \"https://localhost:${ec2##*:}\""
        init
        ok 'init trusts the AWS_CA_BUNDLE of the NodeConfig' exits 0
        AWS_CA_BUNDLE=/dev/null init
        ok 'the AWS_CA_BUNDLE of the NodeConfig overrides that of the environment' exits 0
        wants "AWS_CA_BUNDLE: /none.pem, AWS_ENDPOINT_URL_EC2: \"https://localhost:${ec2##*:}\""
        init
        ok 'a missing AWS_CA_BUNDLE file of the NodeConfig is an error' fails 20 EEC2 detect
        ok 'the message names the missing AWS_CA_BUNDLE file of the NodeConfig' says_last '/none.pem, which AWS_CA_BUNDLE names, cannot be read: No such file or directory'
else
        count=$((count + 1))
        echo "ok $count - TLS # SKIP no openssl program"
fi
done_testing
