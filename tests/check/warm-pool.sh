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
ok 'the config phase sends one request for the lifecycle state' sent 1 "GET $STATE 404"
ok 'the request for the state uses the connection and token of the other requests' eval 'sent 1 PUT && [ "$(grep " imds " "$tmp/log" | grep -o " c[0-9]* " | sort -u | wc -l)" = 1 ]'
ok 'a boot sends five requests to the metadata service' same_word "$(requests ' imds ')" 5
ok 'status.json counts five requests in the config phase and none later' same_word "$(asked config) $(asked devices,run)" '5 0'
with && machine && phase
ok 'init in one process sends one request for the state' eval 'joins && sent 1 "GET $STATE 404" && sent 1 PUT'
with --user-data "$fixtures/user-data/private-dns-name" --ec2-listen 127.0.0.1:0 && machine && tag && phase --skip devices --skip run && phase --skip config
ok 'a boot with a name from EC2 sends seven requests to the metadata service' eval 'joins && same_word "$(requests " imds ")" 7 && sent 1 "ec2 "'
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
ok 'an unknown state: the node joins, with a warning' eval 'joins && warned warm-pool-unknown "the target lifecycle state \"Warmed:Sleeping\" is not known; the node joins"'
is '' && boot
ok 'an empty state: the node joins, with a warning' eval 'joins && warned warm-pool-unknown "the target lifecycle state \"\" is not known"'
with --fault "big=4194304@$STATE" && boot
ok 'the warning shortens a long state' eval 'joins && warned warm-pool-unknown "the target lifecycle state \"########################################\" is not known"'
with --fault "status=500@$STATE" && boot
ok 'HTTP 500 until the deadline: the node joins, with a warning that has the cause' eval 'joins && warned warm-pool-unknown "no usable answer from the instance metadata service at $imds for $STATE after " && grep -qF "the last one: HTTP 500" "$tmp/err"'
ok 'the warning after HTTP 500 says what to do' warned warm-pool-unknown "no usable answer from the instance metadata service at $imds for $STATE after $(grep -oE '[0-9]+ requests in [0-9.]+ s' "$tmp/err" | head -1); the last one: HTTP 500. Check the network of this instance and its metadata options; the node joins. If a warm pool prepares the instance, run kubectl delete node NAME when it has stopped"
with --fault "status=500*2@$STATE" --fault "text=Warmed:Stopped@$STATE" && boot
ok 'Warmed:Stopped after a temporary error: kubelet stays down' stays_down
with --fault "silent@$STATE" && boot
ok 'no answer: the node joins, with a warning' eval 'joins && warned warm-pool-unknown "no usable answer"'
ok 'without an answer, nodestrap gives up after 3 to 9 seconds' grep -E "warm-pool-unknown: .* after [0-9]+ requests? in [3-9](\.[0-9]+)? s" "$tmp/err"
is Warmed:Stopped && machine && as=$tmp/nodeadm && ln -sf "$(realpath "$nodestrap")" "$as" && phase
unset as
ok 'nodeadm joins in the state Warmed:Stopped' joins
ok 'nodeadm does not request the state' sent 0 "$STATE"

# ---- a boot on the way into the pool ----
is Warmed:Stopped && boot
ok 'a boot in Warmed:Stopped does everything except the start of kubelet' eval 'stays_down && [ -e "$root/run/nodestrap/mounts-ready" ] && [ -e "$root/etc/kubernetes/kubelet/config.json" ]'
ok 'a boot in Warmed:Stopped skips the steps that would register the node' same_word "$(outcomes check-pool) $(outcomes mark-node) $(outcomes start-unit:kubelet)" 'skipped skipped skipped'
ok 'a boot in Warmed:Stopped reads the state twice' sent 2 "GET $STATE 200"
text='prepared for the warm pool (Warmed:Stopped); the node joins at its next start'
ok 'the last line says that the node is prepared for the warm pool' says_last "nodestrap: ok: $text"
ok 'status.json says that the node is prepared for the warm pool' same_word "$(value text)" "$text"
status
ok 'nodestrap status begins with the sentence about the warm pool' same_word "$(head -1 "$tmp/out")" "ok: $text"
ok 'nodestrap status of a prepared node has no next command' eval '! grep next: "$tmp/out"'
ok 'nodestrap status --exit-code of a prepared node ends with 0' status
"$nodestrap" wait --root "$root" --timeout 1m >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'nodestrap wait of a prepared node ends at once with success' eval 'same_word "$code" 0 && says_last "nodestrap: ok: $text"'
ok 'nodestrap wait of a prepared node sends no request' grep -q '"requests": 0' "$root/run/nodestrap/joined.json"
ok 'a prepared node does not count as joined in the metrics' grep -q '^nodestrap_joined{verdict="ok",code="OK"} 0$' "$root/run/nodestrap/joined.prom"
status
ok 'nodestrap status has the sentence about the warm pool once' eval '[ "$(grep -c "warm pool" "$tmp/out")" = 1 ] && ! grep -E "joined|JOINED" "$tmp/out"'
ok 'a prepared node leaves no event for the cluster' eval '[ ! -e "$root/run/nodestrap/events" ]'
"$nodestrap" plan --root "$root" -c imds://user-data >"$tmp/out" 2>&1
ok 'a plan on a prepared node has the step check-pool' eval 'tr -s " \n" " " <"$tmp/out" | grep -F "check-pool warm-pool Warmed:Stopped do not start kubelet while in the warm pool"'
"$nodestrap" plan --instance-type p5.48xlarge -c "file://$tmp/data" >"$tmp/out" 2>&1
ok 'a plan for an instance type has no step check-pool' eval '! grep check-pool "$tmp/out"'
with --fault "text=InService@$STATE" && phase --skip config
ok 'init in InService after the pool: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ] && sent 1 "GET $STATE 200"'
ok 'nodestrap status does not mention the pool after the node has joined' eval 'status && ! grep "warm pool" "$tmp/out"'
is Warmed:Stopped && phase --skip config
ok 'a node that has joined keeps kubelet when it returns to the pool' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ] && same_word "$(value text)" None'

# ---- a state that changes during a boot ----
with --fault "text=Warmed:Stopped*1@$STATE" --fault "text=InService@$STATE" && boot
ok 'InService during the boot: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ] && same_word "$(outcomes check-pool)" unchanged'
with --fault "text=Warmed:Stopped*1@$STATE" --fault "text=Warmed:Running@$STATE" && boot
ok 'Warmed:Running during the boot: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ]'
with --fault "text=Warmed:Stopped*1@$STATE" && boot
ok 'the instance leaves its group during the boot: the node joins' eval 'same_word "$code" 0 && [ -e "$root/$TURN" ]'
with --fault "text=Warmed:Stopped*1@$STATE" --fault "status=503@$STATE" && boot
ok 'no answer to the second request: the first state holds, and kubelet stays down' stays_down
with --fault "status=500@$STATE" && machine && phase --skip devices --skip run
ok 'no answer in the config phase causes no warning' quiet
is Warmed:Stopped && phase --skip config
ok 'the run phase requests the state after the config phase got none' stays_down
is Warmed:Stopped && boot && is InService && phase --skip devices --skip run && phase --skip config
ok 'a soft reboot requests the state again: in InService the node joins' joins
machine && is InService && phase --skip devices --skip run && phase --skip config && rm "$root/$TURN" && is Warmed:Stopped &&
        phase --skip devices --skip run && phase --skip config
ok 'a soft reboot requests the state again: in Warmed:Stopped kubelet stays down' stays_down

done_testing
