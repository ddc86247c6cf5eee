#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A warm pool of EC2 Auto Scaling: each target lifecycle state of the instance, no answer, another word. States also change during a boot.
# tests/boot/warm-pool.sh has both boots with systemd.
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"
STATE=/latest/meta-data/autoscaling/target-lifecycle-state TURN=run/nodestrap/kubelet-may-start
good >"$tmp/data"
# with FAULT...: the metadata service; is=STATE: the state is always that
with() { mock --imds "$fixtures/imds-m5" --user-data "$tmp/data" "$@"; }
is() { with --fault "text=$1@$STATE"; }
# phase OPTION...: what the units of a boot run, on a machine of its own unless it is another phase of that boot
phase() { "${as:-$nodestrap}" init --root "$root" --config-cache "$cache" "$@" >"$tmp/out" 2>"$tmp/err"; code=$?; }
boot() { machine; phase --skip devices --skip run && phase --skip config; }
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$root/run/nodestrap/status.json" "$1"; }
asked() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["runs"][sys.argv[2]]["requests"]["imds"])' "$root/run/nodestrap/status.json" "$1"; }
tag() { cp "$fixtures/imds-m5/latest/meta-data/instance-id" "$root/sys/devices/virtual/dmi/id/board_asset_tag"; }
outcomes() { python3 -c 'import json, sys
for a in json.load(open(sys.argv[1]))["runs"]["devices,run"]["actions"]:
    if a["id"].startswith(sys.argv[2]): print(a["outcome"])' "$root/run/nodestrap/status.json" "$1"; }
joins() { same_word "$code" 0 && [ -e "$root/$TURN" ] && ! grep -q '"check-pool:warm-pool"' "$root/run/nodestrap/status.json"; }
stays_down() { same_word "$code" 0 && [ ! -e "$root/$TURN" ] && same_word "$(value verdict) $(value step)" "ok check-pool:warm-pool"; }
warned() { grep -qF "nodestrap: warning: $1: $2" "$tmp/err" || { cat "$tmp/err"; false; }; }
quiet() { ! grep -F warm-pool "$tmp/err"; }
status() { "$nodestrap" status --root "$root" --exit-code >"$tmp/out" 2>"$tmp/err"; }

# ---- each state ----
with && boot
ok 'an instance in no Auto Scaling group joins' eval 'joins && quiet'
ok 'which takes one request, of the config phase' sent 1 "GET $STATE 404"
ok 'on its connection, with its token' eval 'sent 1 PUT && [ "$(grep " imds " "$tmp/log" | grep -o " c[0-9]* " | sort -u | wc -l)" = 1 ]'
ok 'five in all' same_word "$(requests ' imds ')" 5
ok 'status counts it' same_word "$(asked config) $(asked devices,run)" '5 0'
with && machine && phase
ok 'in one process it is one request, too' eval 'joins && sent 1 "GET $STATE 404" && sent 1 PUT'
with --user-data "$fixtures/user-data/private-dns-name" --ec2-listen 127.0.0.1:0 && machine && tag && phase --skip devices --skip run && phase --skip config
ok 'with a name of EC2 a boot sends seven' eval 'joins && same_word "$(requests " imds ")" 7 && sent 1 "ec2 "'
for state in InService Standby Detached Terminated; do
        is $state && boot
        ok "$state: the node joins" eval 'joins && quiet'
done
for state in Warmed:Stopped Warmed:Terminated; do
        is $state && boot
        ok "$state: kubelet stays down" eval 'stays_down && quiet'
done
for state in Warmed:Running Warmed:Hibernated; do
        is $state && boot
        ok "$state: the node joins, with a warning" eval 'joins && warned warm-pool-resumes "an instance in $state enters service without another boot, so the node joins now"'
done
is Warmed:Sleeping && boot
ok 'a word that nobody knows: the node joins, with a warning' eval 'joins && warned warm-pool-unknown "the target lifecycle state \"Warmed:Sleeping\" is not known; the node joins"'
is '' && boot
ok 'no word: the same' eval 'joins && warned warm-pool-unknown "the target lifecycle state \"\" is not known"'
with --fault "big=4194304@$STATE" && boot
ok 'a long one is cut' eval 'joins && warned warm-pool-unknown "the target lifecycle state \"########################################\" is not known"'
with --fault "status=500@$STATE" && boot
ok 'an error for ever: the node joins, with the reason' eval 'joins && warned warm-pool-unknown "no usable answer from the instance metadata service at $imds for $STATE after " && grep -qF "the last one: HTTP 500" "$tmp/err"'
ok 'what next' warned warm-pool-unknown "no usable answer from the instance metadata service at $imds for $STATE after $(grep -oE '[0-9]+ requests in [0-9.]+ s' "$tmp/err" | head -1); the last one: HTTP 500. Check the network of this instance and its metadata options; the node joins. If a warm pool prepares the instance, run kubectl delete node NAME when it has stopped"
with --fault "status=500*2@$STATE" --fault "text=Warmed:Stopped@$STATE" && boot
ok 'an error that passes: kubelet stays down' stays_down
with --fault "silent@$STATE" && boot
ok 'no answer: the node joins' eval 'joins && warned warm-pool-unknown "no usable answer"'
ok 'after some seconds' grep -E "warm-pool-unknown: .* after [0-9]+ requests? in [3-9](\.[0-9]+)? s" "$tmp/err"
is Warmed:Stopped && machine && as=$tmp/nodeadm && ln -sf "$(realpath "$nodestrap")" "$as" && phase
unset as
ok 'nodeadm joins in any state' joins
ok 'and asks for none' sent 0 "$STATE"

# ---- a boot on the way into the pool ----
is Warmed:Stopped && boot
ok 'all but kubelet is done' eval 'stays_down && [ -e "$root/run/nodestrap/mounts-ready" ] && [ -e "$root/etc/kubernetes/kubelet/config.json" ]'
ok 'what would register the node is skipped' same_word "$(outcomes check-pool) $(outcomes mark-node) $(outcomes start-unit:kubelet)" 'skipped skipped skipped'
ok 'the state is read twice' sent 2 "GET $STATE 200"
text='prepared for the warm pool (Warmed:Stopped); the node joins at its next start'
ok 'the last line says so' says_last "nodestrap: ok: $text"
ok 'so does status.json' same_word "$(value text)" "$text"
status
ok 'nodestrap status says it first' same_word "$(head -1 "$tmp/out")" "ok: $text"
ok 'and no next command' eval '! grep next: "$tmp/out"'
ok 'its exit code is that of success' status
"$nodestrap" wait --root "$root" --timeout 1m >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'nodestrap wait ends at once, well' eval 'same_word "$code" 0 && says_last "nodestrap: ok: $text"'
ok 'without a request' grep -q '"requests": 0' "$root/run/nodestrap/joined.json"
ok 'and does not count as joined' grep -q '^nodestrap_joined{verdict="ok",code="OK"} 0$' "$root/run/nodestrap/joined.prom"
status
ok 'status has the sentence once' eval '[ "$(grep -c "warm pool" "$tmp/out")" = 1 ] && ! grep -E "joined|JOINED" "$tmp/out"'
ok 'the cluster hears nothing' eval '[ ! -e "$root/run/nodestrap/events" ]'
"$nodestrap" plan --root "$root" -c imds://user-data >"$tmp/out" 2>&1
ok 'a plan on that machine has the step' eval 'tr -s " \n" " " <"$tmp/out" | grep -F "check-pool warm-pool Warmed:Stopped keep kubelet down while the warm pool prepares"'
"$nodestrap" plan --instance-type p5.48xlarge -c "file://$tmp/data" >"$tmp/out" 2>&1
ok 'a plan for a type has none' eval '! grep check-pool "$tmp/out"'
with --fault "text=InService@$STATE" && phase --skip config
ok 'an init after that, in service: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ] && sent 1 "GET $STATE 200"'
ok 'status says nothing of the pool' eval 'status && ! grep "warm pool" "$tmp/out"'
is Warmed:Stopped && phase --skip config
ok 'back in the pool, a node that has joined stays' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ] && same_word "$(value text)" None'

# ---- a state that changes meanwhile ----
with --fault "text=Warmed:Stopped*1@$STATE" --fault "text=InService@$STATE" && boot
ok 'it enters service while it boots: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ] && same_word "$(outcomes check-pool)" unchanged'
with --fault "text=Warmed:Stopped*1@$STATE" --fault "text=Warmed:Running@$STATE" && boot
ok 'the pool stops no instances any more: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ]'
with --fault "text=Warmed:Stopped*1@$STATE" && boot
ok 'it leaves its group: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ]'
with --fault "text=Warmed:Stopped*1@$STATE" --fault "status=503@$STATE" && boot
ok 'no answer the second time: the first one holds' stays_down
with --fault "status=500@$STATE" && machine && phase --skip devices --skip run
ok 'no answer in the config phase: no warning yet' quiet
is Warmed:Stopped && phase --skip config
ok 'then the run phase asks' stays_down
is Warmed:Stopped && boot && is InService && phase --skip devices --skip run && phase --skip config
ok 'a soft reboot after it asks again: the node joins' joins
machine && is InService && phase --skip devices --skip run && phase --skip config && rm "$root/$TURN" && is Warmed:Stopped &&
        phase --skip devices --skip run && phase --skip config
ok 'and so it does on the way back' stays_down

done_testing
