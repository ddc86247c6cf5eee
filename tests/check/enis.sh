#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Requests about network interfaces: how often to a metadata service that lags, with which permission to EC2.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
tests=$(realpath "$(dirname "$0")/..") tool=${HELPERS:-build/tests/helpers}/aws-tool
[ -x "$tool" ] || { echo "1..0 # SKIP no $tool"; exit 0; }
run() { timeout 60 "$tool" "$@" >"$tmp/out" 2>"$tmp/err"; }
fails() { run "$@"; failed; }
warns() { grep -q '^warning: ' "$tmp/err" || { cat "$tmp/err"; false; }; }
# knows EXPRESSION: of the answer, as Python has it; e is what is known, by MAC
knows() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); e = {i["mac"]: i for i in d["interfaces"]}; sys.exit(0 if eval(sys.argv[2]) else json.dumps(d))' "$tmp/out" "$1"; }
tree() { rm -rf "$tmp/imds"; "$tests/fakes/interfaces.py" "$tmp/imds" "$@" >"$tmp/table"; }
mac() { awk -v i="$1" '$1 == i { print $2 }' "$tmp/table"; }
served() { mock --imds "$tmp/imds" "$@"; }
# as the table of the tree has it: MAC, card, device, IPv4 addresses, IPv6 addresses, prefixes; of secondary ones
matches_table() {
        diff <(awk '$1 > 0 { print $2, $3, $4, $6, $7, $8 }' "$tmp/table" | sort) <(python3 -c 'import json, sys
for i in json.load(open(sys.argv[1]))["interfaces"]:
    if i["mac"] != sys.argv[2]:
        print(i["mac"], i["card"], i["device"], *(",".join(sum((i.get(k, []) for k in keys.split()), [])) or "-" for keys in ("ipv4s", "ipv6s", "ipv4Prefixes ipv6Prefixes")))' "$tmp/out" "$(mac 0)" | sort)
}
within() { [ "$(grep -c . "$tmp/log")" -le "$1" ] || { grep -c . "$tmp/log"; false; }; }

# ---- layouts: cards, what is asked of, and the most requests: three for each interface and five; five each and five with IPv6 ----
while read -r cards n bound options; do
        read -ra more <<<"$options"
        tree --cards "$cards" --count "$n" "${more[@]}"
        served
        ok "$n interfaces of $cards cards, $options" run enis "$cards"
        ok 'are known as they are' matches_table
        ok "for $bound requests" within "$bound"
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
ok 'four interfaces of a type that is not known' run enis 0
ok 'are asked where they are' sent 3 network-card
ok 'which is not told' knows 'all("card" not in e[m] for m in e if m != d["primary"])'
ok 'and have their prefixes all the same' knows 'all(e[m].get("ipv4Prefixes") for m in e if m != d["primary"])'

# ---- a service that lags, with tests/tools/imds.py, as guests have it ----
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
ok 'what lags is no failure' run enis 4
ok 'and is not known' knows "'card' not in e['$late'] and e['$late']['device'] == 0 and 'ipv4s' not in e['$late']"
ok 'the others are' knows "e['$(mac 3)']['card'] == 3"
ok 'later' run enis 4 "$late"
ok 'it is' matches_table
imds_py "404 $late 1000 start"
run enis 4 "$late"
ok 'what is not listed is not there' knows "len(e) == 3 and '$late' not in e"
imds_py '503 */macs/* 2x; 503 api/token 1x'
ok 'an answer 503 is asked for again' run enis 4
ok 'until it is there' matches_table
imds_py 'down * 1'
ok 'so is a service that is not there yet' run enis 4
ok 'until it is' matches_table

# ---- garbage ----
served --fault "text=x@*$late/network-card"
ok 'garbage about an interface nobody waits for' run enis 4
ok 'is a warning' warns
ok 'that says of what' says "$late/network-card of the instance metadata is not a number from 0 to 255"
ok 'about the one that is waited for' fails enis 4 "$late"
ok 'it is a failure' says "EIMDS: /latest/meta-data/network/interfaces/macs/$late/network-card"
served --fault 'text=../../etc@/latest/meta-data/instance-id'
ok 'an instance id that is none' fails enis 4
ok 'is refused' says 'EIMDS: /latest/meta-data/instance-id of the instance metadata is not the id of an instance'
served --fault 'status=500@*/device-number'
ok 'a service that breaks' fails enis 4
ok 'is named, with the path' says 'device-number after '

# ---- the tag, of EC2 ----
ID=i-0123456789abcdef0 MAC=02:00:00:00:00:01 TAG=node.k8s.amazonaws.com/no_manage
ec2_mock() { mock --ec2-listen 127.0.0.1:0 "$@"; }
answers() { run tagged "$ID" "$MAC" && equal "$1"; }
while read -r answer tags; do
        ec2_mock --interface "02:00:00:00:00:02,$TAG=true" --interface "$MAC$tags"
        ok "tags \"$tags\": $answer" answers "$answer"
        ok 'by one request' sent 1 'ec2 .* DescribeNetworkInterfaces 200'
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
ok 'an interface that EC2 does not know' fails tagged "$ID" "$MAC"
ok 'is asked for a few times' sent 4 ec2
ok 'and named so' says 'the instance has no interface of this MAC address (yet)'
ok 'which is not a lack of a permission' lacks 'may not ask'
ec2_mock --interface "$MAC,$TAG=true" --fault 'ec2:empty*2'
ok 'one that it learns of' answers yes
ec2_mock --interface "$MAC,$TAG=true" --fault 'ec2:throttle*3'
ok 'throttling is waited out' answers yes
ec2_mock --fault ec2:throttle
ok 'for a while' fails tagged "$ID" "$MAC"
ok 'with four attempts' sent 4 ec2
for refusal in unauthorized error=AccessDenied; do
        ec2_mock --fault "ec2:$refusal"
        ok "$refusal" fails tagged "$ID" "$MAC"
        ok 'is final' sent 1 ec2
        ok 'known as such' says 'may not ask'
        ok 'and says which permission' says 'lacks the permission ec2:DescribeNetworkInterfaces (AmazonEKS_CNI_Policy has it)'
done
for refusal in authfailure error=InvalidParameterValue; do
        ec2_mock --fault "ec2:$refusal"
        ok "$refusal" fails tagged "$ID" "$MAC"
        ok 'is not that' lacks 'may not ask'
done
ec2_mock --fault ec2:not-xml
ok 'what is no answer of EC2' fails tagged "$ID" "$MAC"
ok 'is told' says "an answer that is not XML of EC2"
ec2_mock --interface "$MAC,$TAG=true"
ok 'characters of a form are only characters' fails tagged "$ID&Action=TerminateInstances" "$MAC"
ok 'of a question' sent 0 Terminate
done_testing
