#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The name of the node without an answer of EC2: throttled, hung, not reached. init takes the name of the metadata service if it has the
# domain of the region, and calls it assumed. The run phase asks again, and writes the answer into the files before kubelet starts.
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"
NAME=ip-10-11-12-13.us-west-2.compute.internal OTHER=ip-10-11-12-99.us-west-2.compute.internal
ASKED='GET /latest/meta-data/local-hostname'
good >"$tmp/by-id"
sed '/InstanceIdNodeName/d' "$tmp/by-id" >"$tmp/by-name"
sed 's/^  instance:/&\n    strictNodeName: true/' "$tmp/by-name" >"$tmp/strict"
# This machine is the instance that the metadata service knows, whatever number it boots.
fresh() { machine; echo i-0f1e2d3c4b5a69788 >"$root/sys/devices/virtual/dmi/id/board_asset_tag"; }
# with OPTION...: the services; phase OPTION...: a run, which finds what those before it have left
with() { mock --imds "${tree:-$fixtures/imds-m5}" --ec2-listen 127.0.0.1:0 --user-data "${data:-$tmp/by-name}" "$@"; }
phase() { "${as:-$nodestrap}" init --root "$root" --config-cache "$cache" "$@" >"$tmp/out" 2>"$tmp/err"; code=$?; }
config() { phase --skip run "${skips[@]}" "$@"; }
skips=(--skip devices)
ends() { same_word "$code" "${1:-0}"; }
fails_at() { ends "$1" && says_last "failed ($1 $2) at $3: " && says_last "$4"; }
named() { grep -q -- "--hostname-override=$1\\b" "$root/etc/eks/kubelet/environment" || { cat "$root/etc/eks/kubelet/environment" "$tmp/err"; false; }; }
marked() { grep -q nameAssumed "$root$cache" && grep -q nameAssumed "$root/run/nodestrap/facts.json"; }
unmarked() { [ -s "$root$cache" ] && [ -s "$root/run/nodestrap/facts.json" ] && ! grep nameAssumed "$root$cache" "$root/run/nodestrap/facts.json"; }
cached() { grep -q "\"privateDnsName\": *\"$1\"" "$root$cache" && grep -q "\"privateDnsName\": *\"$1\"" "$root/run/nodestrap/facts.json"; }
assumed() { ends 0 && named "$NAME" && says "warning: node-name-assumed: EC2 has not given the node name ($1" && marked; }
# A boot whose config phase has assumed the name; what follows in it is up to the test.
booted() { fresh && with --fault ec2:refuse && AWS_MAX_ATTEMPTS=1 config && assumed ''; }

# ---- a service that answers ----
with && fresh && config
ok 'EC2 answers' eval 'ends && named "$NAME" && unmarked'
ok 'with one request' sent 1 'ec2 '
ok 'and the metadata service is not asked for another name' sent 0 "$ASKED"
ok 'which makes seven requests with it' same_word "$(requests ' imds ')" 7
phase --skip config
ok 'the run phase asks nobody' eval 'ends && sent 1 "ec2 " && sent 7 " imds "'

# ---- none that does, in 5 s ----
# The first pause is 4.5 s at most, so init asks twice unless the first answer takes half a second. Such a run is repeated.
for _ in {1..8}; do with --fault ec2:throttle && fresh && config; [ "$(requests 'ec2 ')" != 1 ] && break; done
ok 'EC2 throttles for 5 s: the node goes on' assumed 'RequestLimitExceeded (HTTP 503)'
ok 'it has asked twice or three times' test "$(requests 'ec2 ')" -ge 2 -a "$(requests 'ec2 ')" -le 4
ok 'and then the metadata service, once' sent 1 "$ASKED"
ok 'in this order' test "$(grep -E "ec2 |$ASKED" "$tmp/log" | tail -1 | grep -c "$ASKED")" = 1
phase --skip config --skip run
ok 'the devices phase asks nobody' eval 'ends && sent 1 "$ASKED" && marked'
ok 'and says nothing of it' lacks "node's name"
with && phase --skip config
ok 'the run phase asks again' eval 'ends && sent 1 "ec2 "'
ok 'the answer is the same: nothing is assumed any more' eval 'unmarked && cached "$NAME" && named "$NAME"'
ok 'and nothing is written again' grep -qF '"phases": "devices,run"' "$root/run/nodestrap/status.json"
ok 'nothing is said of it' lacks "node's name"
phase --skip config
ok 'later nobody is asked' eval 'ends && sent 1 "ec2 "'
with --fault ec2:hang && fresh && config
ok 'EC2 hangs for 5 s' assumed 'Operation timed out'
ok 'that was one request' sent 1 'ec2 '
with && fresh && mkdir -p "$root/run/nodestrap" && exec 6>"$root/run/nodestrap/ec2.lock" && flock 6 && config 6>&-
ok 'a request of another process hangs for 5 s' assumed 'another nodestrap process waits for an answer from EC2'
ok 'and none goes out beside it' sent 0 'ec2 '
exec 6>&-
fresh && with && AWS_ENDPOINT_URL_EC2=http://127.0.0.1:1 AWS_MAX_ATTEMPTS=1 config
ok 'EC2 is not reached, and asked no more often' assumed ''
for fault in not-xml redirect status=502 error=InternalError notfound; do
        fresh && with --fault "ec2:$fault" && AWS_MAX_ATTEMPTS=1 config
        ok "EC2 says $fault, and is asked no more often" assumed ''
done

# ---- the run phase ----
booted
with --fault ec2:throttle && phase --skip config
ok 'the run phase is throttled, too' assumed 'RequestLimitExceeded (HTTP 503)'
ok 'once' sent 1 'ec2 '
ok 'and asks for no other name' sent 0 "$ASKED"
with --ec2-name "$OTHER" && phase --skip config
ok 'EC2 has another name' eval 'ends && sent 1 "ec2 "'
ok 'the files have it before kubelet starts' named "$OTHER"
ok 'which is said' says "warning: node-name-corrected: EC2 names this node $OTHER, but nodestrap assumed $NAME"
ok 'the config phase was done again' grep -qF '"phases": "config,devices,run"' "$root/run/nodestrap/status.json"
ok 'it is known from then on' eval 'unmarked && cached "$OTHER"'
phase --skip config
ok 'a second run changes nothing' eval 'ends && says_last "nothing to change"'
ok 'and asks nobody' sent 1 'ec2 '
booted
with --ec2-name "$OTHER"
rm "$root/etc/eks/kubelet/environment" && mkdir "$root/etc/eks/kubelet/environment" && phase --skip config </dev/null
ok 'a file cannot be written' ends 40
rmdir "$root/etc/eks/kubelet/environment" && phase --skip config
ok 'then the next run corrects it' eval 'ends && named "$OTHER" && sent 2 "ec2 "'
booted
with --fault ec2:unauthorized && phase --skip config
ok 'a refusal is one in the run phase, too' fails_at 20 EEC2 detect 'lacks the permission ec2:DescribeInstances'
with --fault ec2:empty && phase --skip config
ok 'no name (yet) changes nothing' assumed 'no usable answer from EC2'
with --fault ec2:skew=3600 && phase --skip config
ok 'a clock that is wrong is no reason to stay with it' eval 'ends && unmarked && sent 2 "ec2 "'
booted
with --ec2-name "$OTHER" && config
ok 'the config phase of the next boot asks again, too' eval 'ends && named "$OTHER" && unmarked && sent 1 "ec2 "'
booted
with --fault ec2:throttle && AWS_MAX_ATTEMPTS=2 phase --skip config --strict-node-name
ok 'a strict run believes no name that was assumed' fails_at 20 EEC2 detect 'EC2 itself reports this error and may answer later'

# ---- both at once ----
with --ec2-name "$OTHER" --fault 'ec2:hang*1' && fresh && phase
ok 'an init that does both asks again before it writes' eval 'ends && named "$OTHER" && unmarked'
ok 'and has nothing to correct' lacks "node's name"
with --fault ec2:throttle && fresh && AWS_MAX_ATTEMPTS=2 phase
ok 'AWS_MAX_ATTEMPTS is the number of attempts' eval 'assumed "RequestLimitExceeded (HTTP 503)" && sent 2 "ec2 "'
with --ec2-name "$OTHER" && phase
ok 'the next one asks again' eval 'ends && named "$OTHER" && unmarked && sent 1 "ec2 "'

# ---- who waits for EC2 ----
export AWS_MAX_ATTEMPTS=2
waits() { fails_at 20 EEC2 detect 'with spec.featureGates.InstanceIdNodeName: true nodestrap does not ask EC2' && sent 2 'ec2 ' && sent "$1" "$ASKED"; }
fresh && with --fault ec2:throttle && config --strict-node-name
ok '--strict-node-name waits for EC2, and asks for the other name after it has failed, for the Event' waits 1
uncertain() { grep -rhF "$1" "$root/run/nodestrap/events" | grep -F 'EC2 may have another name for this node'; }
ok 'the Event is about the name that EC2 will have' eval 'grep -rqF "\"node\": \"$NAME\"" "$root/run/nodestrap/events" && ! uncertain EEC2'
data=$tmp/strict with --fault ec2:refuse && config
ok 'so does the NodeConfig that says so' waits 1
with --ec2-name "$OTHER" --fault 'ec2:throttle*1' && config --strict-node-name
ok 'until it has answered' eval 'ends && named "$OTHER" && unmarked'
fresh && with --fault ec2:unauthorized && config
ok 'a refusal is the end' fails_at 20 EEC2 detect 'lacks the permission ec2:DescribeInstances'
ok 'whatever the metadata service says, which is asked for the Event' sent 1 "$ASKED"
with --fault ec2:empty && config
ok 'so is an instance without a name' waits 1
data=$tmp/by-id with --fault ec2:throttle && config
ok 'with InstanceIdNodeName nobody is asked' eval 'ends && sent 0 "ec2 " && sent 0 "$ASKED"'
for name in ip-10-11-12-13.corp.example ip-10-11-12-13.eu-west-1.compute.internal ip-10-11-12-13.ec2.internal ip-10-11-12-14.us-west-2.compute.internal \
            "$NAME.corp.example" "ip-10-11-12-13.a.example b.example" ip-10-11-12-13 ''; do
        rm -rf "$tmp/tree" && cp -r "$fixtures/imds-m5" "$tmp/tree" && printf %s "$name" >"$tmp/tree/latest/meta-data/local-hostname"
        tree=$tmp/tree with --ec2-name "$OTHER" --fault ec2:refuse && fresh && config
        ok "\"$name\" is not the region's own: EC2 is waited for" waits 1
        [[ -z $name ]] || ok "and the Event says that its node's name is not certain" uncertain EEC2
done
rm "$tmp/tree/latest/meta-data/local-hostname"
tree=$tmp/tree with --ec2-name "$OTHER" --fault ec2:refuse && config
ok 'nor is none' waits 1
id=$(sed -n 's/.*"instanceId" *: *"\([^"]*\)".*/\1/p' "$tmp/tree/latest/dynamic/instance-identity/document")
printf %s "$id.us-west-2.compute.internal" >"$tmp/tree/latest/meta-data/local-hostname"
tree=$tmp/tree with --fault ec2:refuse && config
ok 'one by the id of the instance is' eval 'ends && named "$id.us-west-2.compute.internal" && marked'
rm -rf "$tmp/tree" && cp -r "$fixtures/imds-m5" "$tmp/tree"
echo 2001:db8::5 >"$(dirname "$(echo "$tmp"/tree/latest/meta-data/network/interfaces/macs/*/local-hostname)")/ipv6s"
sed 's,10.100.0.0/16,fd30:1c53:5f8a::/108,' "$tmp/by-name" >"$tmp/ipv6"
tree=$tmp/tree data=$tmp/ipv6 with --fault ec2:refuse && fresh && config
ok 'nor does a node of an IPv6 cluster wait, whose name is by an address that it does not know' assumed ''

# ---- as nodeadm, and before anything is done ----
ln -s "$(realpath "$nodestrap")" "$tmp/nodeadm"
as=$tmp/nodeadm skips=()
fresh && with --fault ec2:throttle && config
ok 'called as nodeadm it goes on, too' assumed 'RequestLimitExceeded (HTTP 503)'
with --ec2-name "$OTHER" && phase --skip config
ok 'and corrects it' eval 'ends && named "$OTHER" && unmarked'
fresh && with --fault ec2:throttle && config --strict-node-name
ok 'unless it is told to wait' waits 1
planned() { AWS_MAX_ATTEMPTS=1 "$nodestrap" plan --root "$root" -c imds://user-data "$@" >"$tmp/out" 2>"$tmp/err"; }
with --fault ec2:refuse
ok 'a plan says what is assumed' eval 'planned && grep -qx "assumed    instance.privateDnsName" "$tmp/out"'
ok 'and why' grep -q 'node-name-assumed' "$tmp/out"
ok 'not that nobody looked at it' lacks assumed-facts
ok 'also to a program' eval 'planned --output json && python3 -c "import json, sys; assert json.load(open(sys.argv[1]))[\"facts\"][\"assumed\"] == [\"instance.privateDnsName\"]" "$tmp/out"'
ok 'a strict one waits' eval '! planned --strict-node-name && says_last "failed (20 EEC2)"'
done_testing
