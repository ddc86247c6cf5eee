#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The two EC2 requests of nodestrap, against a mock that checks signatures, throttles, refuses, and has another clock.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }
NAME=ip-10-0-0-10.us-west-2.compute.internal
run() { "$tool" "$@" >"$tmp/out" 2>"$tmp/err"; }
fails() { run "$@"; failed; }
# fails_at HOST VARIABLE=VALUE...: with this environment and a dead proxy the request fails, and the message names HOST
fails_at() {
        local host=$1; shift
        ! env AWS_MAX_ATTEMPTS=1 HTTPS_PROXY=http://127.0.0.1:1 "$@" "$tool" name i-1 2>"$tmp/err" && says "no usable answer from EC2 at $host for"
}
mock2() { mock --ec2-listen 127.0.0.1:0 "$@"; }

mock2
ok 'nodestrap reads the node name from EC2' run name i-0123
ok 'the node name is the private DNS name of the instance, not of a network interface' equal "$NAME"
ok 'a node name costs three metadata requests and one EC2 request' says 'requests imds=3 ec2=1'
ok 'the output has no secret' lacks 'mock/secret'
ok 'an invalid instance id is an error' fails name 'i-1&Action=TerminateInstances'
ok 'nodestrap does not send an invalid instance id to EC2' sent 1 ec2

for fault in throttle*2 empty*2 notfound*1 status=500*1 status=503*1 status=407*1 not-xml*1 redirect*1 close*1 refuse*1 hang*1 \
             error=InternalError*1 chunked until-close no-keepalive; do
        mock2 --fault "ec2:$fault"
        ok "nodestrap recovers from the EC2 fault $fault" run name i-0123
        ok "nodestrap reads the node name after the EC2 fault $fault" equal "$NAME"
done

# A connection that is kept after an error may stay broken.
connections() { local n; n=$(awk -v s="$1" '$2 == s { print $3 }' "$tmp/log" | sort -u | wc -l); [ "$n" = "$2" ] || { cat "$tmp/log"; false; }; }
mock2 --fault 'ec2:status=503*1'; run name i-0123
ok 'after an EC2 error nodestrap opens a new connection' connections ec2 2
mock2 --fault 'status=503*1'; run name i-0123
ok 'after a metadata error nodestrap opens a new connection' connections imds 2

# nodestrap compares the date of an answer with the clock at the time of reading. The result may be off by the seconds of the run,
# and by the fraction of a second that the date lacks.
clock_run() { local begin=$EPOCHSECONDS rc; run "$@"; rc=$?; took=$((EPOCHSECONDS - begin + 1)); return $rc; }
by_about() { # LEAST MOST WORD
        local n; n=$(sed -n "s/.* \([0-9]*\) s $3 EC2.*/\1/p" "$tmp/err") && [ "$n" -ge "$1" ] && [ "$n" -le "$2" ] || { echo "$1 to $2"; cat "$tmp/err"; false; }
}
for skew in 86400 400; do
        mock2 --fault "ec2:skew=$skew"
        clock_run name i-0123; rc=$?
        ok "nodestrap corrects for a clock that is $skew s behind" test $rc = 0
        ok "a clock that is $skew s behind costs one more EC2 request" sent 2 ec2
        ok "the message says that the clock is about $skew s behind" by_about $((skew - took)) $((skew + 1)) behind
done
for skew in 86400 400; do
        mock2 --fault "ec2:skew=-$skew"
        clock_run name i-0123; rc=$?
        ok "nodestrap corrects for a clock that is $skew s ahead" test $rc = 0
        ok "a clock that is $skew s ahead costs one more EC2 request" sent 2 ec2
        ok "the message says that the clock is about $skew s ahead" by_about $((skew - 1)) $((skew + took)) "ahead of"
done

mock2 --fault ec2:expired
ok 'nodestrap fetches expired credentials again' run name i-0123
ok 'nodestrap fetches expired credentials again only once' sent 2 security-credentials/mock-role
mock2 --fault ec2:error=ExpiredToken
ok 'new credentials that have expired, too, are an error' fails name i-0123
ok 'the message says that even the new credentials have expired' says 'even the newly fetched credentials have expired'
ok 'nodestrap stops after two EC2 requests with expired credentials' sent 2 ec2

for fault in skew=3600 expired; do
        mock2 --fault "ec2:$fault"
        AWS_MAX_ATTEMPTS=1 ok "$fault is an error if no attempt is left" fails name i-0123
        ok "the message has the last answer of EC2 for $fault if no attempt is left" eval 'says "the last one: RequestExpired (HTTP 400). EC2 itself reports this error" && lacks "(null)"'
done

mock2 --fault ec2:unauthorized
ok 'a missing permission is an error' fails name i-0123
ok 'the message names the missing permission ec2:DescribeInstances' says 'lacks the permission ec2:DescribeInstances'
ok 'nodestrap does not retry after a missing permission' sent 1 ec2
mock2 --fault ec2:error=SignatureDoesNotMatch
ok 'a refused signature is an error' fails name i-0123
ok "nodestrap does not show the EC2 message for a refused signature, which repeats the token" lacks session+token
ok 'the message for a refused signature compares the local clock with EC2' says "s behind EC2"
mock2 --fault ec2:error=SignatureDoesNotMatch --fault ec2:no-date
ok 'a refused signature in an answer without a date is an error' fails name i-0123
ok 'the message says that the answer has no date to compare the clock with' says 'its answer has no date to check this clock against'
ok 'the message has no clock difference if the answer has no date' lacks '0 s behind'
mock2 --fault ec2:throttle
AWS_MAX_ATTEMPTS=3 fails name i-0123
ok 'AWS_MAX_ATTEMPTS is the number of attempts' sent 3 ec2
ok 'after the last attempt the message has the last answer of EC2' says 'the last one: RequestLimitExceeded (HTTP 503)'

# After a throttle the next request comes 1.5 s later at least, by the clock of the mock, and heeds its Retry-After.
apart() { awk -v least="$1" '$2 == "ec2" { if (last && $1 - last < least) { print; bad = 1 } last = $1 } END { exit bad }' "$tmp/log"; }
mock2 --fault 'ec2:throttle*1'
ok 'nodestrap retries after a throttle' run name i-0123
ok 'nodestrap retries once after one throttle' sent 2 ec2
ok 'nodestrap waits at least 1.4 s before it retries after a throttle' apart 1.4
mock2 --fault 'ec2:throttle*1' --fault 'ec2:retry-after=3*1'
ok 'nodestrap retries after a throttle with Retry-After' run name i-0123
ok 'nodestrap waits as long as the Retry-After of a throttle says' apart 2.9
mock2 --fault 'ec2:status=503*1' --fault 'ec2:retry-after=1*1'
ok 'nodestrap retries after HTTP 503 with Retry-After' run name i-0123
ok 'nodestrap waits as long as the Retry-After of HTTP 503 says' apart 0.9
mock2 --fault 'ec2:status=503*1' --fault 'ec2:retry-after=soon*1'
ok 'nodestrap ignores a Retry-After that is not a number' run name i-0123

for settings in 2:2 +2:2 0:4 -1:4 two:4; do
        mock2 --fault 'ec2:error=InternalError*3'
        AWS_MAX_ATTEMPTS=${settings%:*} run name i-0123
        ok "AWS_MAX_ATTEMPTS=${settings%:*} makes ${settings#*:} attempts of the 4 that are needed" sent "${settings#*:}" ec2
done
ok 'a warning says that AWS_MAX_ATTEMPTS is not a number' says 'AWS_MAX_ATTEMPTS in the environment is not a number'
for mode in standard adaptive legacy; do
        mock2
        AWS_RETRY_MODE=$mode ok "nodestrap reads the node name with AWS_RETRY_MODE=$mode" run name i-0123
        ok "AWS_RETRY_MODE=$mode causes no warning" lacks AWS_RETRY_MODE
done
AWS_RETRY_MODE=sometimes ok 'nodestrap reads the node name with an unknown AWS_RETRY_MODE' run name i-0123
ok 'a warning says that the unknown AWS_RETRY_MODE has no effect' says 'AWS_RETRY_MODE in the environment has no effect: it must be standard, adaptive or legacy'

mock2 --no-role --key AKIDENV:env/secret:env-token
export AWS_ACCESS_KEY_ID=AKIDENV AWS_SECRET_ACCESS_KEY=env/secret AWS_SESSION_TOKEN=env-token
ok 'nodestrap takes credentials from the environment' run name i-0123
ok 'credentials from the environment need no metadata request' sent 0 imds
AWS_SECRET_ACCESS_KEY=other ok 'a wrong secret in the environment is an error' fails name i-0123
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN

mock2 --eni p9.large=7,30
ok 'nodestrap reads the limits of an instance type' run limits p9.large
ok 'the limits are those of the default network card' equal '7 30'
ok 'an instance type that EC2 does not know is an error' fails limits x9.none
mock2 --eni p9.large=7,30 --fault ec2:throttle
ok 'limits are an error if EC2 throttles all requests' fails limits p9.large
ok 'nodestrap makes four attempts for the limits' sent 4 ec2
mock2 --eni p9.large=7,30 --fault 'ec2:throttle*5'
AWS_MAX_ATTEMPTS=6 ok 'limits are an error if EC2 throttles, also with AWS_MAX_ATTEMPTS=6' fails limits p9.large
ok 'nodestrap makes four attempts for the limits, also with AWS_MAX_ATTEMPTS=6' sent 4 ec2
mock2 --eni p9.large=7,30 --fault ec2:throttle
AWS_MAX_ATTEMPTS=2 ok 'limits are an error if EC2 throttles, with AWS_MAX_ATTEMPTS=2' fails limits p9.large
ok 'AWS_MAX_ATTEMPTS=2 makes two attempts for the limits' sent 2 ec2
mock2 --eni p9.large=7,30
AWS_REGION=eu-west-1 ok 'nodestrap reads the limits with another AWS_REGION in the environment' run limits p9.large

# libcurl quotes a proxy that it cannot read, with the password.
for proxy in 'http://user:canary@pro xy:1' 'sock9://user:canary@proxy:1' 'http://user:canary@proxy.invalid:99999' 'canary canary'; do
        bad_proxy() {
                ! HTTPS_PROXY=$proxy AWS_MAX_ATTEMPTS=1 AWS_ENDPOINT_URL_EC2=https://ec2.invalid AWS_ACCESS_KEY_ID=A AWS_SECRET_ACCESS_KEY=b run name i-1 &&
                        says 'check the address in HTTPS_PROXY' && lacks canary
        }
        ok 'the message names HTTPS_PROXY and shows no part of an invalid proxy' bad_proxy
done

export AWS_ENDPOINT_URL=http://$ec2
unset AWS_ENDPOINT_URL_EC2
mock
ok 'nodestrap takes AWS_ENDPOINT_URL if AWS_ENDPOINT_URL_EC2 is unset' env AWS_MAX_ATTEMPTS=1 bash -c '! "$1" name i-1 2>"$2"' - "$tool" "$tmp/err"
ok 'the message names the host of AWS_ENDPOINT_URL' says "at ${AWS_ENDPOINT_URL#http://}"
unset AWS_ENDPOINT_URL
ok 'a request to an EC2 endpoint built from region and domain fails at a dead proxy' env AWS_MAX_ATTEMPTS=1 AWS_REGION=eu-nowhere-9 HTTPS_PROXY=http://127.0.0.1:1 \
        bash -c '! "$1" name i-1 2>"$2"' - "$tool" "$tmp/err"
ok 'the EC2 endpoint has the region of the environment' says ec2.eu-nowhere-9.amazonaws.com
AWS_REGION='us west' ok 'an invalid AWS_REGION is an error' fails name i-1
ok 'the message names the invalid AWS_REGION' says 'EEC2: "us west" is not the name of a region; AWS_REGION takes one like us-west-2'
AWS_ENDPOINT_URL_EC2=ftp://x ok 'an invalid AWS_ENDPOINT_URL_EC2 is an error' fails name i-1
ok 'the message names AWS_ENDPOINT_URL_EC2 and the form that it must have' says 'AWS_ENDPOINT_URL_EC2 is not of the form http[s]://HOST[:PORT][/PATH]'
ok 'an invalid AWS_ENDPOINT_URL_EC2 is an error before nodestrap waits for credentials' env AWS_ENDPOINT_URL_EC2=ftp://x AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1 \
        bash -c '! timeout 120 "$1" name i-1 2>"$2" && grep -q "EEC2: AWS_ENDPOINT_URL_EC2" "$2"' - "$tool" "$tmp/err"
# The tool gives the domain that the instance knows: amazonaws.com.
while read -r words want; do
        IFS=, read -ra more <<<"$words"
        ok "with $words nodestrap asks EC2 at $want" fails_at "$want" "${more[@]}"
done <<'END'
AWS_USE_FIPS_ENDPOINT=true ec2-fips.us-west-2.amazonaws.com
AWS_USE_FIPS_ENDPOINT=FALSE,AWS_USE_DUALSTACK_ENDPOINT= ec2.us-west-2.amazonaws.com
AWS_USE_FIPS_ENDPOINT=true,AWS_REGION=us-gov-east-1 ec2.us-gov-east-1.amazonaws.com
AWS_USE_DUALSTACK_ENDPOINT=True ec2.us-west-2.api.aws
AWS_DEFAULT_REGION=eu-west-3 ec2.eu-west-3.amazonaws.com
AWS_REGION=cn-north-1,AWS_DEFAULT_REGION=eu-west-3 ec2.cn-north-1.amazonaws.com.cn
AWS_USE_DUALSTACK_ENDPOINT=true,AWS_REGION=cn-north-1 ec2.cn-north-1.api.amazonwebservices.com.cn
AWS_USE_DUALSTACK_ENDPOINT=true,AWS_USE_FIPS_ENDPOINT=true ec2-fips.us-west-2.api.aws
AWS_USE_FIPS_ENDPOINT=true,AWS_ENDPOINT_URL=https://EC2.example:443 ec2.example
AWS_ENDPOINT_URL=http://127.0.0.1:9,AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true ec2.us-west-2.amazonaws.com
AWS_ENDPOINT_URL_EC2=http://127.0.0.1:9,AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true ec2.us-west-2.amazonaws.com
END

# A proxy that answers CONNECT with this status. Only a proxy that finds no route has looked up the name of the endpoint.
proxy_says() {
        exec 8< <(exec python3 -c "
import socket
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
conn = listener.accept()[0]
request = b''
while not request.endswith(b'\r\n\r\n'):
    request += conn.recv(4096)
conn.sendall(b'HTTP/1.1 $1 X\r\nContent-Length: 0\r\n\r\n')
conn.close()")
        proxy_pid=$!
        read -r proxy <&8
        exec 8<&-
        fails_at ec2-fips.us-west-2.amazonaws.com AWS_USE_FIPS_ENDPOINT=true "HTTPS_PROXY=http://127.0.0.1:$proxy" && says "$1"
        local r=$?
        kill "$proxy_pid" 2>/dev/null
        return $r
}
for status in 502 503 504; do
        ok "the message has status $status of a proxy that finds no route" proxy_says $status
        ok "after proxy status $status the message says that EC2 may have no FIPS endpoint" says 'EC2 may have no FIPS endpoint in us-west-2'
done
for status in 403 407; do
        ok "the message has status $status of a proxy that refuses" proxy_says $status
        ok "after proxy status $status the message does not mention a missing FIPS endpoint" lacks 'no FIPS endpoint'
        ok "after proxy status $status the message names HTTPS_PROXY" says HTTPS_PROXY
done

# One curl handle asks STS on this machine without a proxy, and then EC2 through a proxy.
mock --sts-listen 127.0.0.1:0 --role-arn arn:aws:iam::123456789012:role/web:AKIDWEB:web/secret:web-token
echo identity >"$tmp/identity"
ok 'nodestrap asks EC2 through a proxy after STS without a proxy' fails_at ec2.invalid AWS_ENDPOINT_URL_EC2=https://ec2.invalid AWS_ROLE_ARN=arn:aws:iam::123456789012:role/web \
        AWS_WEB_IDENTITY_TOKEN_FILE="$tmp/identity"
ok 'the proxy resolves the EC2 name after a request to STS without a proxy' lacks resolve
ok 'nodestrap asks STS once, without a proxy' sent 1 AssumeRoleWithWebIdentity
unset AWS_ENDPOINT_URL_STS

if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$tmp/key" -out "$tmp/cert" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null; then
        mock2 --tls "$tmp/cert:$tmp/key"
        export AWS_ENDPOINT_URL_EC2=https://localhost:${ec2##*:}
        AWS_CA_BUNDLE=$tmp/cert ok 'nodestrap accepts a certificate that AWS_CA_BUNDLE trusts' run name i-0123
        AWS_MAX_ATTEMPTS=1 ok 'an untrusted certificate is an error' fails name i-0123
        ok 'the message for an untrusted certificate asks if the clock is right' says 'is the clock here right?'
        REQUESTS_CA_BUNDLE=$tmp/cert AWS_MAX_ATTEMPTS=1 ok 'nodestrap ignores REQUESTS_CA_BUNDLE' fails name i-0123
        AWS_CA_BUNDLE=$tmp/none ok 'a missing AWS_CA_BUNDLE file is an error' fails name i-0123
        ok 'the message names the missing AWS_CA_BUNDLE file' says "EEC2: $tmp/none, which AWS_CA_BUNDLE names, cannot be read: No such file or directory"
        AWS_CA_BUNDLE=/dev/null ok 'an empty AWS_CA_BUNDLE file is an error' fails name i-0123
        ok 'the message says that the empty AWS_CA_BUNDLE file has no PEM certificate' says '/dev/null, which AWS_CA_BUNDLE names, has no PEM certificate'
        AWS_CA_BUNDLE=$tmp/key ok 'a key in AWS_CA_BUNDLE is an error' fails name i-0123
        ok 'the message says that the key in AWS_CA_BUNDLE is not a PEM certificate' says 'has no PEM certificate'
        printf -- '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' >"$tmp/bad"
        AWS_CA_BUNDLE=$tmp/bad ok 'a certificate that libcurl cannot read is an error' fails name i-0123
        ok 'nodestrap does not retry with a certificate that libcurl cannot read' says 'requests imds=3 ec2=1'
        ok 'the message says to check the file of AWS_CA_BUNDLE' says 'Check the file that AWS_CA_BUNDLE names'
        ok 'EC2 gets a request only over the trusted TLS connection' sent 1 Describe
else
        count=$((count + 1))
        echo "ok $count - TLS # SKIP no openssl program"
fi
done_testing
