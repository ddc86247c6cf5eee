#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The node name without an answer of EC2, which throttles, hangs or is out of reach. init assumes the name that the metadata service has, if
# that has the domain of the region. The run phase asks again, and writes the answer into the files before kubelet starts.
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"
NAME=ip-10-11-12-13.us-west-2.compute.internal OTHER=ip-10-11-12-99.us-west-2.compute.internal
ASKED='GET /latest/meta-data/local-hostname'
good >"$tmp/by-id"
sed '/InstanceIdNodeName/d' "$tmp/by-id" >"$tmp/by-name"
sed 's/^  instance:/&\n    strictNodeName: true/' "$tmp/by-name" >"$tmp/strict"
# This machine is the instance that the metadata service knows, in each of its boots.
fresh() { machine; echo i-0f1e2d3c4b5a69788 >"$root/sys/devices/virtual/dmi/id/board_asset_tag"; }
# with OPTION...: starts the services; phase OPTION...: a run, which finds the files of the earlier runs
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
# A boot whose config phase has assumed the name; the test does the rest of the boot.
booted() { fresh && with --fault ec2:refuse && AWS_MAX_ATTEMPTS=1 config && assumed ''; }

# ---- a service that answers ----
with && fresh && config
ok 'init takes the node name from EC2' eval 'ends && named "$NAME" && unmarked'
ok 'the node name costs one EC2 request' sent 1 'ec2 '
ok 'init does not ask the metadata service for the name if EC2 answers' sent 0 "$ASKED"
ok 'the config phase makes seven metadata requests' same_word "$(requests ' imds ')" 7
phase --skip config
ok 'the run phase makes no request if EC2 gave the name' eval 'ends && sent 1 "ec2 " && sent 7 " imds "'

# ---- no service answers within 5 s ----
# The first pause is at most 4.5 s, so init asks twice unless the first answer takes half a second. The test repeats such a run.
for _ in {1..8}; do with --fault ec2:throttle && fresh && config; [ "$(requests 'ec2 ')" != 1 ] && break; done
ok 'init assumes the name after EC2 throttles for 5 s' assumed 'RequestLimitExceeded (HTTP 503)'
ok 'init asks a throttling EC2 two to four times' test "$(requests 'ec2 ')" -ge 2 -a "$(requests 'ec2 ')" -le 4
ok 'init asks the metadata service for the name once' sent 1 "$ASKED"
ok 'init asks EC2 first, and then the metadata service' test "$(grep -E "ec2 |$ASKED" "$tmp/log" | tail -1 | grep -c "$ASKED")" = 1
phase --skip config --skip run
ok 'the devices phase makes no request for an assumed name' eval 'ends && sent 1 "$ASKED" && marked'
ok 'the devices phase does not mention the assumed name' lacks "node's name"
with && phase --skip config
ok 'the run phase asks EC2 again for an assumed name' eval 'ends && sent 1 "ec2 "'
ok 'the name is no longer assumed after the same answer of EC2' eval 'unmarked && cached "$NAME" && named "$NAME"'
ok 'the run phase does not repeat the config phase after the same answer of EC2' grep -qF '"phases": "devices,run"' "$root/run/nodestrap/status.json"
ok 'the run phase does not mention the name after the same answer of EC2' lacks "node's name"
phase --skip config
ok 'a later run phase makes no EC2 request' eval 'ends && sent 1 "ec2 "'
with --fault ec2:hang && fresh && config
ok 'init assumes the name after EC2 hangs for 5 s' assumed 'Operation timed out'
ok 'init makes one request to an EC2 that hangs' sent 1 'ec2 '
with && fresh && mkdir -p "$root/run/nodestrap" && exec 6>"$root/run/nodestrap/ec2.lock" && flock 6 && config 6>&-
ok 'init assumes the name if a request of another process hangs for 5 s' assumed 'another nodestrap process is waiting for an answer from EC2'
ok 'init makes no EC2 request in parallel with another process' sent 0 'ec2 '
exec 6>&-
fresh && with && AWS_ENDPOINT_URL_EC2=http://127.0.0.1:1 AWS_MAX_ATTEMPTS=1 config
ok 'init assumes the name if EC2 is out of reach and no attempt is left' assumed ''
for fault in not-xml redirect status=502 error=InternalError notfound; do
        fresh && with --fault "ec2:$fault" && AWS_MAX_ATTEMPTS=1 config
        ok "init assumes the name if EC2 answers $fault and no attempt is left" assumed ''
done

# ---- the run phase ----
booted
with --fault ec2:throttle && phase --skip config
ok 'the run phase still assumes the name if EC2 throttles' assumed 'RequestLimitExceeded (HTTP 503)'
ok 'the run phase makes one request to a throttling EC2' sent 1 'ec2 '
ok 'the run phase does not ask the metadata service for the name' sent 0 "$ASKED"
with --ec2-name "$OTHER" && phase --skip config
ok 'the run phase gets another name from EC2 with one request' eval 'ends && sent 1 "ec2 "'
ok 'the files have the new name of EC2' named "$OTHER"
ok 'a warning has the new name of EC2 and the assumed name' says "warning: node-name-corrected: EC2 names this node $OTHER, but nodestrap assumed $NAME"
ok 'the run phase repeats the config phase for a new name' grep -qF '"phases": "config,devices,run"' "$root/run/nodestrap/status.json"
ok 'the cache and the facts have the new name of EC2' eval 'unmarked && cached "$OTHER"'
phase --skip config
ok 'a second run phase changes nothing' eval 'ends && says_last "nothing to change"'
ok 'a second run phase makes no EC2 request' sent 1 'ec2 '
booted
with --ec2-name "$OTHER"
rm "$root/etc/eks/kubelet/environment" && mkdir "$root/etc/eks/kubelet/environment" && phase --skip config </dev/null
ok 'a file that the run phase cannot write for a new name is an error' ends 40
rmdir "$root/etc/eks/kubelet/environment" && phase --skip config
ok 'the next run writes the new name after a file that could not be written' eval 'ends && named "$OTHER" && sent 2 "ec2 "'
booted
with --fault ec2:unauthorized && phase --skip config
ok 'a missing permission is an error in the run phase' fails_at 20 EEC2 detect 'lacks the permission ec2:DescribeInstances'
with --fault ec2:empty && phase --skip config
ok 'the run phase still assumes the name if EC2 has no name yet' assumed 'no usable answer from EC2'
with --fault ec2:skew=3600 && phase --skip config
ok 'the run phase gets the name from EC2 with a wrong clock' eval 'ends && unmarked && sent 2 "ec2 "'
booted
with --ec2-name "$OTHER" && config
ok 'a config phase after an assumed name asks EC2 again' eval 'ends && named "$OTHER" && unmarked && sent 1 "ec2 "'
booted
with --fault ec2:throttle && AWS_MAX_ATTEMPTS=2 phase --skip config --strict-node-name
ok '--strict-node-name does not accept an assumed name in the run phase' fails_at 20 EEC2 detect 'EC2 itself reports this error and may answer later'

# ---- both phases in one init ----
with --ec2-name "$OTHER" --fault 'ec2:hang*1' && fresh && phase
ok 'an init with both phases asks EC2 again and writes its name' eval 'ends && named "$OTHER" && unmarked'
ok 'an init with both phases does not mention a corrected name' lacks "node's name"
with --fault ec2:throttle && fresh && AWS_MAX_ATTEMPTS=2 phase
ok 'AWS_MAX_ATTEMPTS is the number of EC2 requests in an init with both phases' eval 'assumed "RequestLimitExceeded (HTTP 503)" && sent 2 "ec2 "'
with --ec2-name "$OTHER" && phase
ok 'the next init asks EC2 again for an assumed name' eval 'ends && named "$OTHER" && unmarked && sent 1 "ec2 "'

# ---- when init waits for EC2 ----
export AWS_MAX_ATTEMPTS=2
waits() { fails_at 20 EEC2 detect 'with spec.featureGates.InstanceIdNodeName: true set, nodestrap does not ask EC2' && sent 2 'ec2 ' && sent "$1" "$ASKED"; }
fresh && with --fault ec2:throttle && config --strict-node-name
ok '--strict-node-name waits for EC2, fails, and asks the metadata service for the Event' waits 1
uncertain() { grep -rhF "$1" "$root/run/nodestrap/events" | grep -F 'EC2 may have another name for this node'; }
ok 'the Event has the name of the metadata service, and does not call it uncertain' eval 'grep -rqF "\"node\": \"$NAME\"" "$root/run/nodestrap/events" && ! uncertain EEC2'
data=$tmp/strict with --fault ec2:refuse && config
ok 'strictNodeName in the NodeConfig waits for EC2 and fails' waits 1
with --ec2-name "$OTHER" --fault 'ec2:throttle*1' && config --strict-node-name
ok '--strict-node-name waits until EC2 answers' eval 'ends && named "$OTHER" && unmarked'
fresh && with --fault ec2:unauthorized && config
ok 'a missing permission is an error in the config phase' fails_at 20 EEC2 detect 'lacks the permission ec2:DescribeInstances'
ok 'init asks the metadata service for the Event after a missing permission' sent 1 "$ASKED"
with --fault ec2:empty && config
ok 'an instance without a name in EC2 is an error' waits 1
data=$tmp/by-id with --fault ec2:throttle && config
ok 'init asks neither service for the name with InstanceIdNodeName' eval 'ends && sent 0 "ec2 " && sent 0 "$ASKED"'
for name in ip-10-11-12-13.corp.example ip-10-11-12-13.eu-west-1.compute.internal ip-10-11-12-13.ec2.internal ip-10-11-12-14.us-west-2.compute.internal \
            "$NAME.corp.example" "ip-10-11-12-13.a.example b.example" ip-10-11-12-13 ''; do
        rm -rf "$tmp/tree" && cp -r "$fixtures/imds-m5" "$tmp/tree" && printf %s "$name" >"$tmp/tree/latest/meta-data/local-hostname"
        tree=$tmp/tree with --ec2-name "$OTHER" --fault ec2:refuse && fresh && config
        ok "init does not assume \"$name\", but waits for EC2 and fails" waits 1
        [[ -z $name ]] || ok "the Event says that the node name is uncertain: \"$name\"" uncertain EEC2
done
rm "$tmp/tree/latest/meta-data/local-hostname"
tree=$tmp/tree with --ec2-name "$OTHER" --fault ec2:refuse && config
ok 'init assumes no name if the metadata service has none' waits 1
id=$(sed -n 's/.*"instanceId" *: *"\([^"]*\)".*/\1/p' "$tmp/tree/latest/dynamic/instance-identity/document")
printf %s "$id.us-west-2.compute.internal" >"$tmp/tree/latest/meta-data/local-hostname"
tree=$tmp/tree with --fault ec2:refuse && config
ok 'init assumes a name by the instance id' eval 'ends && named "$id.us-west-2.compute.internal" && marked'
rm -rf "$tmp/tree" && cp -r "$fixtures/imds-m5" "$tmp/tree"
echo 2001:db8::5 >"$(dirname "$(echo "$tmp"/tree/latest/meta-data/network/interfaces/macs/*/local-hostname)")/ipv6s"
sed 's,10.100.0.0/16,fd30:1c53:5f8a::/108,' "$tmp/by-name" >"$tmp/ipv6"
tree=$tmp/tree data=$tmp/ipv6 with --fault ec2:refuse && fresh && config
ok 'init assumes the name for a node of an IPv6 cluster' assumed ''

# ---- as nodeadm, and in plans ----
ln -s "$(realpath "$nodestrap")" "$tmp/nodeadm"
as=$tmp/nodeadm skips=()
fresh && with --fault ec2:throttle && config
ok 'nodeadm init assumes the name after EC2 throttles for 5 s' assumed 'RequestLimitExceeded (HTTP 503)'
with --ec2-name "$OTHER" && phase --skip config
ok 'nodeadm init corrects an assumed name' eval 'ends && named "$OTHER" && unmarked'
fresh && with --fault ec2:throttle && config --strict-node-name
ok 'nodeadm init --strict-node-name waits for EC2 and fails' waits 1
planned() { AWS_MAX_ATTEMPTS=1 "$nodestrap" plan --root "$root" -c imds://user-data "$@" >"$tmp/out" 2>"$tmp/err"; }
with --fault ec2:refuse
ok 'a plan lists the node name as assumed' eval 'planned && grep -qx "assumed    instance.privateDnsName" "$tmp/out"'
ok 'a plan has the warning node-name-assumed' grep -q 'node-name-assumed' "$tmp/out"
ok 'a plan with an assumed name has no warning assumed-facts' lacks assumed-facts
ok 'a plan in JSON lists the node name as assumed' eval 'planned --output json && python3 -c "import json, sys; assert json.load(open(sys.argv[1]))[\"facts\"][\"assumed\"] == [\"instance.privateDnsName\"]" "$tmp/out"'
ok 'plan --strict-node-name fails without EC2' eval '! planned --strict-node-name && says_last "failed (20 EEC2)"'
done_testing
