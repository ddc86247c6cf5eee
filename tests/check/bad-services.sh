#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# init beside a metadata service or EC2 that misbehaves. For a while: it succeeds and says nothing false. For ever: the last line names
# service, request, number of tries, time, and the next place to look. (imds.sh and ec2.sh try the clients alone.)
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"
export AWS_MAX_ATTEMPTS=2
good >"$tmp/by-id"
sed '/InstanceIdNodeName/d' "$tmp/by-id" >"$tmp/by-name"
mock --imds "$fixtures/imds-m5"
settled

# Services that never recover use up the budget of a minute: all of them side by side, and judged at the end. NODESTRAP_LONG=1 only.
long=${NODESTRAP_LONG:-}
forever() {
        local dir=$tmp/forever-$1 address
        mkdir "$dir" && cp -a "$root" "$dir"
        exec 8< <(exec python3 "$here/aws.py" --imds "$fixtures/imds-m5" --user-data "$tmp/by-name" "${@:2}")
        echo $! >"$dir/mock"
        read -r _ address <&8
        [ "$1" != down ] || address=127.0.0.1:1
        (root=$dir/root tmp=$dir AWS_EC2_METADATA_SERVICE_ENDPOINT=http://$address; init; echo "$code" >"$dir/code") &
        echo $! >"$dir/pid"
}
# judge NAME DESCRIPTION CODE WORD STEP PATH WORDS [TIME]
judge() {
        local dir=$tmp/forever-$1
        wait "$(cat "$dir/pid")"
        kill "$(cat "$dir/mock")"
        cp "$dir/err" "$dir/out" "$dir/before" "$dir/after" "$tmp"
        root=$dir/root code=$(cat "$dir/code")
        ok "$2 for ever: init fails with exit status $3 ($4)" fails "$3" "$4" "$5"
        ok "$2 for ever: the message has address, path, number of requests and time" grep -qE "at 127.0.0.1:[0-9]+ for /latest/$6 after [0-9]+ requests in ${8:-([6-9][0-9]|[1-9][0-9][0-9])}\.[0-9] s; the last one: " "$tmp/err"
        ok "$2 for ever: the last line has the last error and what to do next" says_last "$7. Check the network of this instance and its metadata options"
}
if [ "$long" ]; then
        forever down
        forever unauthorized --fault status=401@/latest/user-data
        forever hanging --fault hang@/latest/user-data
        forever facts --fault status=503@/latest/dynamic
fi

# well DESCRIPTION WORDS OPTION...: init succeeds and mentions the trouble
well() {
        mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 "${@:3}"
        init --config-cache "$cache"
        ok "$1: init succeeds" same_word "$code" 0
        ok "$1: the last line says ok" says_last 'nodestrap: ok: '
        ok "$1: stderr has one line about it" same_word "$(grep -cF -- "$2" "$tmp/err")" "$([ -z "$2" ] && wc -l <"$tmp/err" || echo 1)"
        ok "$1: init shows no secret" silent
}
id=(--user-data "$tmp/by-id") name=(--user-data "$tmp/by-name")
well 'a token after 6 s' 'Instance metadata, user-data: asking for a session token: no answer in time; trying again' "${id[@]}" --fault 'delay=6*1'
well 'a refused token' '' "${id[@]}" --fault 'status=401*1@/latest/user-data'
ok 'a refused token: init takes a new one' sent 2 PUT
well 'a service that is busy for a while' 'asking for a session token: HTTP 503; trying again' "${id[@]}" --fault 'status=503*4'
well 'a redirect' 'HTTP 302, a redirect, which nodestrap never follows' "${id[@]}" --fault 'redirect*1'
well 'EC2 that throttles' 'EC2, DescribeInstances: RequestLimitExceeded (HTTP 503); trying again' "${name[@]}" --fault 'ec2:throttle*1'
well 'an instance whose name comes late' 'the instance has no private DNS name (yet); trying again' "${name[@]}" --fault 'ec2:empty*1'
well 'a clock a day behind' "warning: The clock of this machine is 86400 s behind EC2" "${name[@]}" --fault ec2:skew=86400
well 'a clock a day ahead' "warning: The clock of this machine is 86400 s ahead of EC2" "${name[@]}" --fault ec2:skew=-86400
well 'a clock that is set between two requests to EC2' 'The clock of this machine agrees with EC2 again' "${name[@]}" --fault 'ec2:skew=86400*2'
settled

# broken DESCRIPTION CODE WORD STEP WORDS OPTION...: init fails where EC2 must give the name (node-name.sh tests the other case)
broken() {
        mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 "${@:6}"
        init --config-cache "$cache" --strict-node-name
        ok "$1: init fails with exit status $2 ($3)" fails "$2" "$3" "$4"
        ok "$1: the last line says: $5" says_last "$5"
}
broken 'a missing instance document' 20 EFACTS detect 'instance identity document: the metadata service does not have it (404); is this an EC2 instance?' \
        "${name[@]}" --fault status=404@/latest/dynamic
broken 'a missing MAC address' 20 EFACTS detect 'meta-data/mac: the metadata service does not have it (404)' "${name[@]}" --fault status=404@/latest/meta-data/mac
broken 'user data past all limits' 11 ELIMIT source '/latest/user-data of the instance metadata exceeds the limit of 4 MiB' --fault big=5000000@/latest/user-data
broken 'a missing permission' 20 EEC2 detect 'the instance role lacks the permission ec2:DescribeInstances (AmazonEKSWorkerNodePolicy grants it)' \
        "${name[@]}" --fault ec2:unauthorized
broken 'throttling without end' 20 EEC2 detect 'EC2 itself reports this error and may answer later; with spec.featureGates.InstanceIdNodeName: true set, nodestrap does not ask EC2' \
        "${name[@]}" --fault ec2:throttle
ok 'throttling without end: EC2 gets as many requests as allowed' sent 2 ec2
broken 'an instance without a name' 20 EEC2 detect 'Set enableDnsHostnames and enableDnsSupport of the VPC to true; with spec.featureGates' "${name[@]}" --fault ec2:empty
broken 'a proxy in the way' 20 EEC2 detect 'the last one: a non-XML answer from EC2. Another server answers in place of EC2' \
        "${name[@]}" --fault ec2:not-xml
broken 'EC2 that hangs up' 20 EEC2 detect 'Check the network path to the EC2 API: NAT gateway or VPC endpoint' "${name[@]}" --fault ec2:refuse
broken 'a message of EC2 that repeats the token' 20 EEC2 detect 'refused DescribeInstances: Blocked (HTTP 400' "${name[@]}" --fault ec2:error=Blocked
AWS_ENDPOINT_URL_EC2=ftp://x init
ok 'an endpoint with ftp://: init fails with exit status 20' fails 20 EEC2 detect
ok 'an endpoint with ftp://: the message names the variable' says_last 'AWS_ENDPOINT_URL_EC2 is not of the form http[s]://HOST'

if [ "$long" ]; then
        judge down 'a missing service' 12 EIMDS source user-data 'asking for a session token: Connection refused'
        judge unauthorized 'a token that is never accepted' 12 EIMDS source user-data 'HTTP 401'
        judge hanging 'an answer that hangs in the middle' 12 EIMDS source user-data 'no answer in time'
        # The rest of the minute in which it also asked for the user data: a second less on a slow machine.
        judge facts 'an instance document with HTTP 503' 20 EFACTS detect dynamic/instance-identity/document 'HTTP 503' '[0-9]+'
else
        count=$((count + 1))
        echo "ok $count - services that never recover # SKIP they take a minute: NODESTRAP_LONG=1"
fi
done_testing
