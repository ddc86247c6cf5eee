#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The metadata client against a service that misbehaves in every way we know of.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }
MAC=02:00:00:00:00:01 ID=i-0123456789abcdef0 LINE=meta-data/mac
get() { "$tool" imds "$@" >"$tmp/out" 2>"$tmp/err"; }
fails() { get "$@"; failed; }

mock
ok 'several answers come by one connection' get 5 meta-data/mac meta-data/instance-id meta-data/services/domain
ok 'with their bytes' equal "$MAC$ID"amazonaws.com
ok 'and one token' sent 1 PUT
ok 'all of it on the first connection' sent 4 ' c1 '
ok 'what is not there is not asked for again' fails 5 meta-data/none
ok 'the count of requests says so' says 'requests imds=2'
ok 'a path cannot smuggle a header' fails 5 $'meta-data/mac HTTP/1.1\r\nX: y'

# Each fault once or twice, then well: the answer must be right anyway.
for fault in 'status=401*1' "status=401*1@/latest/$LINE" 'status=503*3' "status=500*2@/latest/$LINE" 'status=429*1' 'status=403*1' 'refuse*2' \
             'close*2' "close*2@/latest/$LINE" 'garbage*1' 'long*1' 'surplus*2' "surplus*1@/latest/$LINE" 'bad-token*1' 'redirect*2' \
             'status=204*1' "status=404*1@/latest/api" 'chunked' 'until-close' 'no-keepalive' 'drop' 'delay=0.1'; do
        mock --fault "$fault"
        ok "recovers from $fault" get 20 meta-data/mac meta-data/instance-id
        ok "and reads what is there after $fault" equal "$MAC$ID"
done
mock --fault "status=401*1@/latest/$LINE"
get 20 meta-data/mac
ok 'a 401 brings a second token' sent 2 PUT
mock --fault 'short*1@/latest/api'
ok 'a token whose length is understated is noticed' get 20 meta-data/mac
ok 'and asked for again' sent 2 PUT
mock --fault 'hang*1@/latest/user-data' --user-data "$0"
ok 'an answer that hangs in the middle is asked for again' get 20 user-data
ok 'after one attempt' sent 2 user-data
ok 'and comes whole' cmp "$0" "$tmp/out"

mock --fault status=503
ok 'a service that never recovers uses the budget up' fails 1 meta-data/mac
ok 'and the message says what was seen last' says 'asking for a session token: HTTP 503'
ok 'which path was asked for' says '/latest/meta-data/mac'
ok 'and what next' says 'Check the network of this instance'
ok 'after more than one attempt' at_least 2 PUT
mock --fault redirect
ok 'a redirect is a failure' fails 1 meta-data/mac
ok 'that says so' says 'HTTP 302, a redirect, which nodestrap never follows'
mock --fault status=403
fails 1 meta-data/mac
ok 'a service that is switched off is named' says 'switched off in the metadata options'
mock --fault 'big=4194305@/latest/user-data'
ok 'an answer past the limit is refused' fails 5 user-data
ok 'at once' sent 1 user-data
ok 'naming the limit' says 'ELIMIT: /latest/user-data of the instance metadata exceeds the limit of 4 MiB'
mock --fault 'big=4194304@/latest/user-data'
ok 'an answer at the limit is not' get 20 user-data

read_sources() { "$tool" source "$@" >"$tmp/out" 2>"$tmp/err"; }
mock --user-data "$0"
echo one >"$tmp/one.yaml"
ok 'user data and a file' read_sources 5 imds://user-data "file://$tmp/one.yaml"
ok 'in the order given' equal "user-data $(stat -c %s "$0")"$'\n'"$tmp/one.yaml 4"
mock
ok 'no user data is no failure' read_sources 20 imds://user-data
ok 'and asked for once' sent 1 user-data
ok 'and as good as empty' equal 'user-data 0'

mock
mock_stop
ok 'a port where nobody listens' fails 1 meta-data/mac
ok 'is tried until the budget is spent' says 'Connection refused'
ok 'for user data, too' fails 1 user-data
ok 'and who has it in a file is told at once' eval 'head -n 1 "$tmp/err" | grep -F "trying again for " | grep -F "needs a file: -c file://PATH"'
AWS_EC2_METADATA_SERVICE_ENDPOINT=ftp://x fails 1 meta-data/mac
ok 'an endpoint of another kind is named by its variable' says 'AWS_EC2_METADATA_SERVICE_ENDPOINT in the environment'
unset AWS_EC2_METADATA_SERVICE_ENDPOINT
AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv5 fails 1 meta-data/mac
ok 'so is a mode that there is not' says AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE
mock
HTTP_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 ok 'no proxy is used' get 5 meta-data/mac
if unshare -n true 2>/dev/null; then
        unset AWS_EC2_METADATA_SERVICE_ENDPOINT
        unreachable() { unshare -n "$tool" imds 1 meta-data/mac >"$tmp/out" 2>"$tmp/err"; failed; }
        ok 'a network that is not up' unreachable
        ok 'is waited for at the address of old' says '169.254.169.254 for /latest/meta-data/mac'
        ok 'and named' says 'Network is unreachable'
        AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=ipv6 ok 'also by IPv6' unreachable
        ok 'at its address there' says '[fd00:ec2::254] for'
else
        count=$((count + 1))
        echo "ok $count - a network that is not up # SKIP no network namespaces here"
fi
if [ -e /proc/net/if_inet6 ] && grep -q '^0*1 ' /proc/net/if_inet6; then
        mock --listen '[::1]:0'
        ok 'an IPv6 endpoint' get 5 meta-data/mac
else
        count=$((count + 1))
        echo "ok $count - an IPv6 endpoint # SKIP no ::1 here"
fi
done_testing
