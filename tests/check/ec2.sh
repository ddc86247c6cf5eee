#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# EC2's two questions against a service that checks our signature, throttles, refuses, and has another idea of the time.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }
NAME=ip-10-0-0-10.us-west-2.compute.internal
run() { "$tool" "$@" >"$tmp/out" 2>"$tmp/err"; }
fails() { run "$@"; failed; }
# fails_at HOST VARIABLE=VALUE...: where EC2 is asked with this environment, by a proxy that is none
fails_at() {
        local host=$1; shift
        ! env AWS_MAX_ATTEMPTS=1 HTTPS_PROXY=http://127.0.0.1:1 "$@" "$tool" name i-1 2>"$tmp/err" && says "no usable answer from EC2 at $host to"
}
mock2() { mock --ec2-listen 127.0.0.1:0 "$@"; }

mock2
ok 'the name of an instance' run name i-0123
ok 'is that of the instance, not of an interface' equal "$NAME"
ok 'for three requests of metadata and one of EC2' says 'requests imds=3 ec2=1'
ok 'no secret is shown' lacks 'mock/secret'
ok 'an instance id that is none is not sent' fails name 'i-1&Action=TerminateInstances'
ok 'no request was made of it' sent 1 ec2

for fault in throttle*2 empty*2 notfound*1 status=500*1 status=503*1 status=407*1 not-xml*1 redirect*1 close*1 refuse*1 hang*1 \
             error=InternalError*1 chunked until-close no-keepalive; do
        mock2 --fault "ec2:$fault"
        ok "recovers from $fault" run name i-0123
        ok "and reads the name after $fault" equal "$NAME"
done

# A kept connection stays broken.
connections() { local n; n=$(awk -v s="$1" '$2 == s { print $3 }' "$tmp/log" | sort -u | wc -l); [ "$n" = "$2" ] || { cat "$tmp/log"; false; }; }
mock2 --fault 'ec2:status=503*1'; run name i-0123
ok 'behind an error of EC2 another connection is taken' connections ec2 2
mock2 --fault 'status=503*1'; run name i-0123
ok 'as behind one of the metadata service' connections imds 2

# The figure compares the date of an answer with the clock when it is read. It may be off by the seconds of the run, and by the fraction
# that the date lacks.
clock_run() { local begin=$EPOCHSECONDS rc; run "$@"; rc=$?; took=$((EPOCHSECONDS - begin + 1)); return $rc; }
by_about() { # LEAST MOST WORD
        local n; n=$(sed -n "s/.* \([0-9]*\) s $3 EC2.*/\1/p" "$tmp/err") && [ "$n" -ge "$1" ] && [ "$n" -le "$2" ] || { echo "$1 to $2"; cat "$tmp/err"; false; }
}
for skew in 86400 400; do
        mock2 --fault "ec2:skew=$skew"
        clock_run name i-0123; rc=$?
        ok "a clock that is $skew s behind is corrected" test $rc = 0
        ok 'with one more request' sent 2 ec2
        ok 'and the journal says by how much' by_about $((skew - took)) $((skew + 1)) behind
done
for skew in 86400 400; do
        mock2 --fault "ec2:skew=-$skew"
        clock_run name i-0123; rc=$?
        ok "a clock that is $skew s ahead is corrected" test $rc = 0
        ok 'with one more request' sent 2 ec2
        ok 'and the journal says by how much' by_about $((skew - 1)) $((skew + took)) "ahead of"
done

mock2 --fault ec2:expired
ok 'expired credentials are fetched again' run name i-0123
ok 'once' sent 2 security-credentials/mock-role
mock2 --fault ec2:error=ExpiredToken
ok 'and if the new ones have expired too' fails name i-0123
ok 'that is the end' says 'even after a new fetch'
ok 'after two requests' sent 2 ec2

for fault in skew=3600 expired; do
        mock2 --fault "ec2:$fault"
        AWS_MAX_ATTEMPTS=1 ok "where no attempt is left after $fault" fails name i-0123
        ok 'the answer is told all the same' eval 'says "the last one: RequestExpired (HTTP 400). EC2 itself reports this error" && lacks "(null)"'
done

mock2 --fault ec2:unauthorized
ok 'a missing permission is final' fails name i-0123
ok 'and named' says 'lacks the permission ec2:DescribeInstances'
ok 'after one request' sent 1 ec2
mock2 --fault ec2:error=SignatureDoesNotMatch
ok 'a refused signature is final' fails name i-0123
ok 'and EC2'"'"'s own message, which repeats the token, is not shown' lacks session+token
ok 'the clock here is beside the date of the answer' says "s behind EC2"
mock2 --fault ec2:error=SignatureDoesNotMatch --fault ec2:no-date
ok 'so is a signature refused by an answer without a date' fails name i-0123
ok 'which says nothing of the clock here' says 'its answer has no date to compare the clock here with'
ok 'but that' lacks '0 s behind'
mock2 --fault ec2:throttle
AWS_MAX_ATTEMPTS=3 fails name i-0123
ok 'AWS_MAX_ATTEMPTS is the number of attempts' sent 3 ec2
ok 'after which the last answer is told' says 'the last one: RequestLimitExceeded (HTTP 503)'

# After a throttle the next request comes 1.5 s later at least, by the clock of the mock, and heeds its Retry-After.
apart() { awk -v least="$1" '$2 == "ec2" { if (last && $1 - last < least) { print; bad = 1 } last = $1 } END { exit bad }' "$tmp/log"; }
mock2 --fault 'ec2:throttle*1'
ok 'who is throttled asks again' run name i-0123
ok 'once' sent 2 ec2
ok 'and not soon' apart 1.4
mock2 --fault 'ec2:throttle*1' --fault 'ec2:retry-after=3*1'
ok 'who is told how long to wait' run name i-0123
ok 'waits' apart 2.9
mock2 --fault 'ec2:status=503*1' --fault 'ec2:retry-after=1*1'
ok 'also by what stands before EC2' run name i-0123
ok 'as long' apart 0.9
mock2 --fault 'ec2:status=503*1' --fault 'ec2:retry-after=soon*1'
ok 'a header that is no number is none' run name i-0123

for settings in 2:2 +2:2 0:4 -1:4 two:4; do
        mock2 --fault 'ec2:error=InternalError*3'
        AWS_MAX_ATTEMPTS=${settings%:*} run name i-0123
        ok "AWS_MAX_ATTEMPTS=${settings%:*} is ${settings#*:} attempts of the 4 that are needed" sent "${settings#*:}" ec2
done
ok 'a text is no number, which is said' says 'AWS_MAX_ATTEMPTS in the environment is not a number'
for mode in standard adaptive legacy; do
        mock2
        AWS_RETRY_MODE=$mode ok "AWS_RETRY_MODE=$mode" run name i-0123
        ok 'is one of three' lacks AWS_RETRY_MODE
done
AWS_RETRY_MODE=sometimes ok 'another one is no reason to stay without a name' run name i-0123
ok 'but said' says 'AWS_RETRY_MODE in the environment has no effect: it must be standard, adaptive or legacy'

mock2 --no-role --key AKIDENV:env/secret:env-token
export AWS_ACCESS_KEY_ID=AKIDENV AWS_SECRET_ACCESS_KEY=env/secret AWS_SESSION_TOKEN=env-token
ok 'credentials of the environment' run name i-0123
ok 'need no metadata' sent 0 imds
AWS_SECRET_ACCESS_KEY=other ok 'a wrong secret is refused' fails name i-0123
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN

mock2 --eni p9.large=7,30
ok 'limits of a type' run limits p9.large
ok 'are those of the default network card' equal '7 30'
ok 'a type that there is not' fails limits x9.none
mock2 --eni p9.large=7,30 --fault ec2:throttle
ok 'limits are not worth a long wait' fails limits p9.large
ok 'but a few attempts' sent 4 ec2
mock2 --eni p9.large=7,30 --fault 'ec2:throttle*5'
AWS_MAX_ATTEMPTS=6 ok 'also where AWS_MAX_ATTEMPTS has more for the name' fails limits p9.large
ok 'and no more than those' sent 4 ec2
mock2 --eni p9.large=7,30 --fault ec2:throttle
AWS_MAX_ATTEMPTS=2 ok 'fewer hold for the limits, too' fails limits p9.large
ok 'but the first ones' sent 2 ec2
mock2 --eni p9.large=7,30
AWS_REGION=eu-west-1 ok 'they are those of the region where the instance is' run limits p9.large

# libcurl quotes a proxy that it cannot read, password and all.
for proxy in 'http://user:canary@pro xy:1' 'sock9://user:canary@proxy:1' 'http://user:canary@proxy.invalid:99999' 'canary canary'; do
        bad_proxy() {
                ! HTTPS_PROXY=$proxy AWS_MAX_ATTEMPTS=1 AWS_ENDPOINT_URL_EC2=https://ec2.invalid AWS_ACCESS_KEY_ID=A AWS_SECRET_ACCESS_KEY=b run name i-1 &&
                        says 'check the address in HTTPS_PROXY' && lacks canary
        }
        ok 'no part of a proxy that is none is shown' bad_proxy
done

export AWS_ENDPOINT_URL=http://$ec2
unset AWS_ENDPOINT_URL_EC2
mock
ok 'AWS_ENDPOINT_URL is the second choice' env AWS_MAX_ATTEMPTS=1 bash -c '! "$1" name i-1 2>"$2"' - "$tool" "$tmp/err"
ok 'seen in the message' says "at ${AWS_ENDPOINT_URL#http://}"
unset AWS_ENDPOINT_URL
ok 'the endpoint is made of region and domain' env AWS_MAX_ATTEMPTS=1 AWS_REGION=eu-nowhere-9 HTTPS_PROXY=http://127.0.0.1:1 \
        bash -c '! "$1" name i-1 2>"$2"' - "$tool" "$tmp/err"
ok 'with the region of the environment' says ec2.eu-nowhere-9.amazonaws.com
AWS_REGION='us west' ok 'a region that is none' fails name i-1
ok 'is told' says 'EEC2: "us west" is not the name of a region; AWS_REGION takes one like us-west-2'
AWS_ENDPOINT_URL_EC2=ftp://x ok 'so is an endpoint that is none' fails name i-1
ok 'by its variable' says 'AWS_ENDPOINT_URL_EC2 is not of the form http[s]://HOST[:PORT][/PATH]'
ok 'before credentials are waited for' env AWS_ENDPOINT_URL_EC2=ftp://x AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1 \
        bash -c '! timeout 120 "$1" name i-1 2>"$2" && grep -q "EEC2: AWS_ENDPOINT_URL_EC2" "$2"' - "$tool" "$tmp/err"
# The tool gives the domain that the instance knows: amazonaws.com.
while read -r words want; do
        IFS=, read -ra more <<<"$words"
        ok "$words" fails_at "$want" "${more[@]}"
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

# A proxy that answers CONNECT with this status. Only a proxy that found no way says something of the name it was to find.
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
        ok "a proxy that finds no way, $status" proxy_says $status
        ok 'may look for an endpoint that there is not' says 'EC2 may have no FIPS endpoint in us-west-2'
done
for status in 403 407; do
        ok "a proxy that refuses, $status" proxy_says $status
        ok 'has not looked for it' lacks 'no FIPS endpoint'
        ok 'and is named' says HTTPS_PROXY
done

# One handle asks STS here, without a proxy, and then EC2, through one.
mock --sts-listen 127.0.0.1:0 --role-arn arn:aws:iam::123456789012:role/web:AKIDWEB:web/secret:web-token
echo identity >"$tmp/identity"
ok 'EC2 is asked through a proxy' fails_at ec2.invalid AWS_ENDPOINT_URL_EC2=https://ec2.invalid AWS_ROLE_ARN=arn:aws:iam::123456789012:role/web \
        AWS_WEB_IDENTITY_TOKEN_FILE="$tmp/identity"
ok 'also behind STS on this machine, which is asked without: its name is left to the proxy' lacks resolve
ok 'and was' sent 1 AssumeRoleWithWebIdentity
unset AWS_ENDPOINT_URL_STS

if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$tmp/key" -out "$tmp/cert" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null; then
        mock2 --tls "$tmp/cert:$tmp/key"
        export AWS_ENDPOINT_URL_EC2=https://localhost:${ec2##*:}
        AWS_CA_BUNDLE=$tmp/cert ok 'TLS with a certificate that is trusted' run name i-0123
        AWS_MAX_ATTEMPTS=1 ok 'TLS with one that is not' fails name i-0123
        ok 'asks for a look at the clock' says 'is the clock here right?'
        REQUESTS_CA_BUNDLE=$tmp/cert AWS_MAX_ATTEMPTS=1 ok 'what Python programs trust is not asked for' fails name i-0123
        AWS_CA_BUNDLE=$tmp/none ok 'a file of certificates that is not there' fails name i-0123
        ok 'is told' says "EEC2: $tmp/none, which AWS_CA_BUNDLE names, cannot be read: No such file or directory"
        AWS_CA_BUNDLE=/dev/null ok 'so is an empty one' fails name i-0123
        ok 'which has none' says '/dev/null, which AWS_CA_BUNDLE names, has no PEM certificate'
        AWS_CA_BUNDLE=$tmp/key ok 'so is a key' fails name i-0123
        ok 'by what it is not' says 'has no PEM certificate'
        printf -- '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' >"$tmp/bad"
        AWS_CA_BUNDLE=$tmp/bad ok 'one that libcurl cannot read' fails name i-0123
        ok 'is not tried again' says 'requests imds=3 ec2=1'
        ok 'and told' says 'Check the file that AWS_CA_BUNDLE names'
        ok 'nothing of all that went to EC2' sent 1 Describe
else
        count=$((count + 1))
        echo "ok $count - TLS # SKIP no openssl program"
fi
done_testing
