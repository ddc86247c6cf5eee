#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Network interfaces in plans: which card each of them goes to (plan --interfaces), and the marker of the gate OSManagedNoManageENIs.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154,SC2031  # lib.sh sets tmp; a subshell's
. "$(dirname "$0")/../mock/bad.sh"
good >"$tmp/node.yaml"
plan() { "$nodestrap" plan -c "file://$tmp/node.yaml" --kubelet-version 1.34.2 --containerd-version 2.1.5 "$@"; }
places() { # TYPE NUMBER EXPRESSION: what Python makes of the places in the JSON, a list p of rows
        plan --instance-type "$1" --interfaces "$2" --output json 2>"$tmp/err" >"$tmp/out" || { cat "$tmp/err"; return 1; }
        python3 -c 'import json, sys; p = json.load(open(sys.argv[1]))["facts"]["interfaces"]; print(eval(sys.argv[2]))' "$tmp/out" "$3"
}
placed() { local got; got=$(places "$2" "$3" "$4") && [ "$got" = "$1" ] || { echo "$got"; return 1; }; }     # WANTED TYPE NUMBER EXPRESSION
at='" ".join("%d/%d" % (i["card"], i["device"]) for i in p)'
refused() { local n=$1 type=$2 words=$3 rc=0; plan --instance-type "$type" --interfaces "$n" >"$tmp/out" 2>"$tmp/err" || rc=$?; [ "$rc" = 2 ] && says "$words" || { echo "$rc"; cat "$tmp/err"; return 1; }; }

# ---- by type ----
ok 'p5.48xlarge: 32 on 32 cards, each but the first as device 1' placed "0/0 $(seq -f %g/1 -s ' ' 31)" p5.48xlarge 32 "$at"
ok 'p4d.24xlarge: 4 on 4 cards' placed '0/0 1/1 2/1 3/1' p4d.24xlarge 4 "$at"
ok 'more than there are cards: further devices, from card 0 on' placed '0/0 1/1 2/1 3/1 0/1 1/0 2/0 3/0 0/2 1/2' p4d.24xlarge 10 "$at"
ok 'm5.large: 3 on one card' placed '0/0 0/1 0/2' m5.large 3 "$at"
ok 'c6in.32xlarge: 3 on two cards' placed '0/0 1/1 0/1' c6in.32xlarge 3 "$at"
ok 'p6e-gb200: only the even cards take addresses' placed "0/0 $(seq -f %g/1 -s ' ' 2 2 16)" p6e-gb200.36xlarge 9 "$at"
ok 'a card with room for one: device 0' placed '0/0 1/0' hpc6id.32xlarge 2 "$at"
ok 'as many as there is room for, all apart' placed '64 64 64' p5.48xlarge 64 \
        '"%d %d %d" % (len({(i["card"], i["device"]) for i in p}), len({i["metric"] for i in p}), len({i.get("table") for i in p}))'
ok 'none asks for a third device of a card with room for two' placed 1 p5.48xlarge 64 'max(i["device"] for i in p)'

# ---- numbers ----
ok 'the primary one: metric 512, no table, no rules' placed "{'card': 0, 'device': 0, 'metric': 512, 'rules': False}" p5.48xlarge 2 'p[0]'
ok 'the others: theirs by card and device' placed "{'card': 31, 'device': 1, 'metric': 3613, 'rules': True, 'table': 13101}" p5.48xlarge 32 'p[31]'
ok 'as text, too' grep -qx ' *card 31, device  1: metric 3613, table 13101, rules for each of its addresses' <(plan --instance-type p5.48xlarge --interfaces 32)

# ---- refused, with the numbers ----
ok 'one too many' refused 65 p5.48xlarge 'p5.48xlarge has no room for 65: it takes 64, 2 on each of 32 network cards'
ok 'on one card' refused 4 m5.large 'm5.large has no room for 4: it takes 3, 3 on its network card'
ok 'where it is not known how many a card takes' refused 10 p6e-gb200.36xlarge 'is not known: up to 9 interfaces can be placed, one on each of 9 network cards that take addresses'
ok 'where nothing is known' refused 2 p6e-gb300.36xlarge 'is not known: up to 1 interfaces can be placed'
ok 'a type that does not exist' refused 2 p5.47xlarge 'did you mean p5.48xlarge?'
for n in 0 -1 x 1000 ''; do ok "no number: \"$n\"" refused "$n" m5.large "--interfaces takes a number from 1 to 999, not \"$n\""; done
init_refuses() { ! "$nodestrap" init --interfaces 2 2>"$tmp/err" && says 'init does not take --interfaces'; }
ok 'only of plan' init_refuses

# ---- the plan is the same ----
same_plan() {
        plan --instance-type p5.48xlarge --output json --interfaces 8 >"$tmp/with" && plan --instance-type p5.48xlarge --output json >"$tmp/without" || return 1
        python3 - "$tmp/with" "$tmp/without" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert len(a['facts'].pop('interfaces')) == 8
assert a == b
PY
}
ok 'the id and all else do not depend on it' same_plan

# ---- on this machine ----
machine; cp "$tmp/node.yaml" "$root/"
here() { "$nodestrap" plan --root "$root" -c file:///node.yaml --interfaces "$1" >"$tmp/out" 2>"$tmp/err"; }
this_type() { here 2 && grep -q '^interfaces 2 of m5.large, ' "$tmp/out"; }
ok 'the type of this machine' this_type
rm "$root/sys/devices/virtual/dmi/id/product_name"
no_type() { ! here 2 && says 'the type of this machine is not known; name it with --instance-type'; }
ok 'that does not tell it' no_type

# ---- the gate ----
machine; marker=$root/run/nodeadm/os-managed-no-manage-enis
gate() { # on|off OPTION...
        sed "s/InstanceIdNodeName: true/&, OSManagedNoManageENIs: $1/" "$tmp/node.yaml" >"$root/node.yaml"
        init -c file:///node.yaml "${@:2}"
        [ "$code" = 0 ] || { cat "$tmp/err"; false; }
}
is_there() { "$@" && [ -f "$marker" ] && [ ! -s "$marker" ]; }
is_gone() { "$@" && [ ! -e "$marker" ]; }
mock --imds "$fixtures/imds-m5"
ok 'off: no marker' is_gone gate off --skip run
ok 'on: the config phase leaves it' is_there gate on --skip run
ok 'off again: it goes' is_gone gate off --skip run
done_testing
