#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The metadata client against a service that misbehaves in every known way.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }
MAC=02:00:00:00:00:01 ID=i-0123456789abcdef0 LINE=meta-data/mac
get() { "$tool" imds "$@" >"$tmp/out" 2>"$tmp/err"; }
fails() { get "$@"; failed; }

mock
ok 'nodestrap fetches three metadata paths' get 5 meta-data/mac meta-data/instance-id meta-data/services/domain
ok 'each metadata answer has the right bytes' equal "$MAC$ID"amazonaws.com
ok 'three metadata paths cost one session token' sent 1 PUT
ok 'the token and three metadata paths use one connection' sent 4 ' c1 '
ok 'a missing metadata path is an error' fails 5 meta-data/none
ok 'nodestrap does not retry for a missing metadata path' says 'requests imds=2'
ok 'a path cannot smuggle a header' fails 5 $'meta-data/mac HTTP/1.1\r\nX: y'

# Each fault occurs once or a few times, then the service is well: the answer must be right anyway.
for fault in 'status=401*1' "status=401*1@/latest/$LINE" 'status=503*3' "status=500*2@/latest/$LINE" 'status=429*1' 'status=403*1' 'refuse*2' \
             'close*2' "close*2@/latest/$LINE" 'garbage*1' 'long*1' 'surplus*2' "surplus*1@/latest/$LINE" 'bad-token*1' 'redirect*2' \
             'status=204*1' "status=404*1@/latest/api" 'chunked' 'until-close' 'no-keepalive' 'drop' 'delay=0.1'; do
        mock --fault "$fault"
        ok "nodestrap recovers from the metadata fault $fault" get 20 meta-data/mac meta-data/instance-id
        ok "nodestrap reads the right bytes after the metadata fault $fault" equal "$MAC$ID"
done
mock --fault "status=401*1@/latest/$LINE"
get 20 meta-data/mac
ok 'nodestrap fetches a second token after HTTP 401' sent 2 PUT
mock --fault 'short*1@/latest/api'
ok 'nodestrap recovers from a token that is too short' get 20 meta-data/mac
ok 'nodestrap fetches a second token after a token that is too short' sent 2 PUT
mock --fault 'hang*1@/latest/user-data' --user-data "$0"
ok 'nodestrap retries after an answer that hangs in the middle' get 20 user-data
ok 'nodestrap retries once after an answer that hangs in the middle' sent 2 user-data
ok 'the answer is complete after one that hung in the middle' cmp "$0" "$tmp/out"

mock --fault status=503
ok 'a metadata service that always answers 503 is an error' fails 1 meta-data/mac
ok 'the message has the last answer, HTTP 503' says 'asking for a session token: HTTP 503'
ok 'the message for HTTP 503 has the metadata path' says '/latest/meta-data/mac'
ok 'the message for HTTP 503 says to check the network' says 'Check the network of this instance'
ok 'nodestrap makes more than one attempt after HTTP 503' at_least 2 PUT
mock --fault redirect
ok 'a redirect of the metadata service is an error' fails 1 meta-data/mac
ok 'the message says that nodestrap never follows a redirect' says 'HTTP 302, a redirect, which nodestrap never follows'
mock --fault status=403
fails 1 meta-data/mac
ok 'the message for HTTP 403 says that the metadata service is switched off' says 'switched off in the metadata options'
mock --fault 'big=4194305@/latest/user-data'
ok 'user data above the limit is an error' fails 5 user-data
ok 'nodestrap does not retry after user data above the limit' sent 1 user-data
ok 'the message names the limit of 4 MiB' says 'ELIMIT: /latest/user-data of the instance metadata exceeds the limit of 4 MiB'
mock --fault 'big=4194304@/latest/user-data'
ok 'nodestrap accepts user data at the limit' get 20 user-data

read_sources() { "$tool" source "$@" >"$tmp/out" 2>"$tmp/err"; }
mock --user-data "$0"
echo one >"$tmp/one.yaml"
ok 'nodestrap reads user data and a file' read_sources 5 imds://user-data "file://$tmp/one.yaml"
ok 'nodestrap reads the sources in the given order' equal "user-data $(stat -c %s "$0")"$'\n'"$tmp/one.yaml 4"
mock
ok 'missing user data is not an error' read_sources 20 imds://user-data
ok 'nodestrap asks once for missing user data' sent 1 user-data
ok 'missing user data counts as empty' equal 'user-data 0'

mock
mock_stop
ok 'a closed port of the metadata service is an error' fails 1 meta-data/mac
ok 'the message for a closed port says connection refused' says 'Connection refused'
ok 'a closed port is an error for user data, too' fails 1 user-data
ok 'the first retry message for user data suggests a file with -c' eval 'head -n 1 "$tmp/err" | grep -F "trying again for " | grep -F "needs a file: -c file://PATH"'
AWS_EC2_METADATA_SERVICE_ENDPOINT=ftp://x fails 1 meta-data/mac
ok 'the message for an invalid endpoint names AWS_EC2_METADATA_SERVICE_ENDPOINT' says 'AWS_EC2_METADATA_SERVICE_ENDPOINT in the environment'
unset AWS_EC2_METADATA_SERVICE_ENDPOINT
AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv5 fails 1 meta-data/mac
ok 'the message for an invalid endpoint mode names AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE' says AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE
mock
HTTP_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 ok 'nodestrap uses no proxy for the metadata service' get 5 meta-data/mac
if unshare -n true 2>/dev/null; then
        unset AWS_EC2_METADATA_SERVICE_ENDPOINT
        unreachable() { unshare -n "$tool" imds 1 meta-data/mac >"$tmp/out" 2>"$tmp/err"; failed; }
        ok 'a network that is down is an error' unreachable
        ok 'the message for a network that is down has the IPv4 address 169.254.169.254' says '169.254.169.254 for /latest/meta-data/mac'
        ok 'the message says that the network is unreachable' says 'Network is unreachable'
        AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=ipv6 ok 'a network that is down is an error in the IPv6 mode' unreachable
        ok 'the message in the IPv6 mode has the address [fd00:ec2::254]' says '[fd00:ec2::254] for'
else
        count=$((count + 1))
        echo "ok $count - a network that is not up # SKIP no network namespaces here"
fi
if [ -e /proc/net/if_inet6 ] && grep -q '^0*1 ' /proc/net/if_inet6; then
        mock --listen '[::1]:0'
        ok 'nodestrap takes an IPv6 endpoint of the metadata service' get 5 meta-data/mac
else
        count=$((count + 1))
        echo "ok $count - an IPv6 endpoint # SKIP no ::1 here"
fi
done_testing
