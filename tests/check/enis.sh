#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Requests about network interfaces: how many to a metadata service that lags, and with which permission to EC2.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
tests=$(realpath "$(dirname "$0")/..") tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }
run() { timeout 60 "$tool" "$@" >"$tmp/out" 2>"$tmp/err"; }
fails() { run "$@"; failed; }
warns() { grep -q '^warning: ' "$tmp/err" || { cat "$tmp/err"; false; }; }
# knows EXPRESSION: in Python, about the answer d; e has the interfaces by MAC
knows() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); e = {i["mac"]: i for i in d["interfaces"]}; sys.exit(0 if eval(sys.argv[2]) else json.dumps(d))' "$tmp/out" "$1"; }
tree() { rm -rf "$tmp/imds"; "$tests/fakes/interfaces.py" "$tmp/imds" "$@" >"$tmp/table"; }
mac() { awk -v i="$1" '$1 == i { print $2 }' "$tmp/table"; }
served() { mock --imds "$tmp/imds" "$@"; }
# the secondary interfaces, as in the table of the tree: MAC, card, device, IPv4 addresses, IPv6 addresses, prefixes
matches_table() {
        diff <(awk '$1 > 0 { print $2, $3, $4, $6, $7, $8 }' "$tmp/table" | sort) <(python3 -c 'import json, sys
for i in json.load(open(sys.argv[1]))["interfaces"]:
    if i["mac"] != sys.argv[2]:
        print(i["mac"], i["card"], i["device"], *(",".join(sum((i.get(k, []) for k in keys.split()), [])) or "-" for keys in ("ipv4s", "ipv6s", "ipv4Prefixes ipv6Prefixes")))' "$tmp/out" "$(mac 0)" | sort)
}
within() { [ "$(grep -c . "$tmp/log")" -le "$1" ] || { grep -c . "$tmp/log"; false; }; }

# ---- layouts: cards, interfaces, and the most requests: three for each interface and five; with IPv6 five for each and five ----
while read -r cards n bound options; do
        read -ra more <<<"$options"
        tree --cards "$cards" --count "$n" "${more[@]}"
        served
        ok "nodestrap reads $n interfaces on $cards cards, $options" run enis "$cards"
        ok "$n interfaces on $cards cards, $options have their cards, devices and addresses" matches_table
        ok "$n interfaces on $cards cards, $options cost at most $bound requests" within "$bound"
done <<'END'
1 1 8
1 3 14 --prefixes 2 --addresses 3
1 15 50 --prefixes 1
4 4 17 --prefixes 2 --addresses 2
16 16 53 --addresses 2
32 32 101
32 32 101 --device-0 --efa-only 1-31
17 17 56 --efa-only 1,3,5,7 --addresses 4
32 32 165 --ipv6 --addresses 2
8 8 45 --ipv6-only --prefixes 1
1 2 15 --ipv6 --prefixes 3
END
tree --cards 1 --count 4 --prefixes 1
served
ok 'nodestrap reads four interfaces of an unknown instance type' run enis 0
ok 'on an unknown type nodestrap asks for the card of each secondary interface' sent 3 network-card
ok 'on an unknown type no interface gets a card without an answer' knows 'all("card" not in e[m] for m in e if m != d["primary"])'
ok 'on an unknown type each secondary interface has its prefixes' knows 'all(e[m].get("ipv4Prefixes") for m in e if m != d["primary"])'

# ---- a service that lags: tests/tools/imds.py, as in the guests ----
imds_py() {     # RULES: $imds and the log in $tmp/log
        mock_stop
        : >"$tmp/log"
        exec 9< <(IMDS_LAG=$1 IMDS_LOG=$tmp/log exec python3 "$tests/tools/imds.py" serve 127.0.0.1 0 "$tmp/imds")
        mock_pid=$!
        read -r _ port <&9
        exec 9<&-
        export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:$port
}
tree --cards 4 --count 4 --addresses 2
late=$(mac 2)
imds_py "404 $late/network-card 1x; =0 $late/device-number 1x; 404 $late/local-ipv4s 1x"
ok 'late values of an interface are not an error' run enis 4
ok 'late values of an interface are left out' knows "'card' not in e['$late'] and e['$late']['device'] == 0 and 'ipv4s' not in e['$late']"
ok 'other interfaces have their values while one is late' knows "e['$(mac 3)']['card'] == 3"
ok 'nodestrap reads the late interface in a later run' run enis 4 "$late"
ok 'the late interface has all its values in a later run' matches_table
imds_py "404 $late 1000 start"
run enis 4 "$late"
ok 'an interface that the metadata service does not list is left out' knows "len(e) == 3 and '$late' not in e"
imds_py '503 */macs/* 2x; 503 api/token 1x'
ok 'nodestrap retries after HTTP 503' run enis 4
ok 'all interfaces have their values after HTTP 503' matches_table
imds_py 'down * 1'
ok 'nodestrap retries while the metadata service is down' run enis 4
ok 'all interfaces have their values once the metadata service is up' matches_table

# ---- garbage ----
served --fault "text=x@*$late/network-card"
ok 'a garbled value of an interface that nodestrap does not need is not an error' run enis 4
ok 'a garbled value causes a warning' warns
ok 'the warning names the path of the garbled value' says "$late/network-card of the instance metadata is not a number from 0 to 255"
ok 'a garbled value of a required interface is an error' fails enis 4 "$late"
ok 'the error names the path of the garbled value' says "EIMDS: /latest/meta-data/network/interfaces/macs/$late/network-card"
served --fault 'text=../../etc@/latest/meta-data/instance-id'
ok 'an invalid instance id is an error' fails enis 4
ok 'the message names the path of the invalid instance id' says 'EIMDS: /latest/meta-data/instance-id of the instance metadata is not the id of an instance'
served --fault 'status=500@*/device-number'
ok 'HTTP 500 from the metadata service is an error' fails enis 4
ok 'the message for HTTP 500 names the path' says 'device-number after '

# ---- the tag, from EC2 ----
ID=i-0123456789abcdef0 MAC=02:00:00:00:00:01 TAG=node.k8s.amazonaws.com/no_manage
ec2_mock() { mock --ec2-listen 127.0.0.1:0 "$@"; }
answers() { run tagged "$ID" "$MAC" && equal "$1"; }
while read -r answer tags; do
        ec2_mock --interface "02:00:00:00:00:02,$TAG=true" --interface "$MAC$tags"
        ok "an interface with tags \"$tags\" has the tag no_manage: $answer" answers "$answer"
        ok "nodestrap reads the tags \"$tags\" with one request" sent 1 'ec2 .* DescribeNetworkInterfaces 200'
done <<END
yes ,$TAG=true
no ,$TAG=false
no ,$TAG=True
no ,$TAG=
no
no ,Name=true,node.k8s.amazonaws.com/no_manage2=true
no ,$TAG=false,Name=true
yes ,Name=,$TAG=true
END
ec2_mock --interface 02:00:00:00:00:02
ok 'an interface that EC2 does not know is an error' fails tagged "$ID" "$MAC"
ok 'nodestrap makes four attempts for an interface that EC2 does not know' sent 4 ec2
ok 'the message says that the instance has no interface with this MAC address' says 'the instance has no interface with this MAC address (yet)'
ok 'an interface that EC2 does not know is not reported as a missing permission' lacks 'may not ask'
ec2_mock --interface "$MAC,$TAG=true" --fault 'ec2:empty*2'
ok 'nodestrap retries until EC2 knows the interface' answers yes
ec2_mock --interface "$MAC,$TAG=true" --fault 'ec2:throttle*3'
ok 'nodestrap reads the tag after three throttles' answers yes
ec2_mock --fault ec2:throttle
ok 'a throttle that does not end is an error' fails tagged "$ID" "$MAC"
ok 'nodestrap makes four attempts against a throttle' sent 4 ec2
for refusal in unauthorized error=AccessDenied; do
        ec2_mock --fault "ec2:$refusal"
        ok "$refusal is an error for the tags" fails tagged "$ID" "$MAC"
        ok "nodestrap does not retry after $refusal" sent 1 ec2
        ok "nodestrap reports $refusal as a missing permission" says 'may not ask'
        ok "the message for $refusal names the permission and the policy that grants it" says 'lacks the permission ec2:DescribeNetworkInterfaces (AmazonEKS_CNI_Policy grants it)'
done
for refusal in authfailure error=InvalidParameterValue; do
        ec2_mock --fault "ec2:$refusal"
        ok "$refusal is an error for the tags" fails tagged "$ID" "$MAC"
        ok "nodestrap does not report $refusal as a missing permission" lacks 'may not ask'
done
ec2_mock --fault ec2:not-xml
ok 'an EC2 answer that is not XML is an error' fails tagged "$ID" "$MAC"
ok 'the message says that the answer is not XML from EC2' says "a non-XML answer from EC2"
ec2_mock --interface "$MAC,$TAG=true"
ok 'an instance id with form characters is an error' fails tagged "$ID&Action=TerminateInstances" "$MAC"
ok 'form characters in an instance id inject no other EC2 action' sent 0 Terminate
done_testing
