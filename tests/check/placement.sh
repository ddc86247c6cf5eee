#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Network interfaces in plans: the card of each interface (plan --interfaces), and the marker of the gate OSManagedNoManageENIs. EFA in
# plans: the GPUs near each card (plan --efa), and near each device of a machine.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154,SC2031  # lib.sh sets tmp; a subshell's
. "$(dirname "$0")/../mock/bad.sh"
good >"$tmp/node.yaml"
plan() { "$nodestrap" plan -c "file://$tmp/node.yaml" --kubelet-version 1.34.2 --containerd-version 2.1.5 "$@"; }
places() { # TYPE NUMBER EXPRESSION: the value of the Python expression; p is the list of interfaces in the JSON
        plan --instance-type "$1" --interfaces "$2" --output json 2>"$tmp/err" >"$tmp/out" || { cat "$tmp/err"; return 1; }
        python3 -c 'import json, sys; p = json.load(open(sys.argv[1]))["facts"]["interfaces"]; print(eval(sys.argv[2]))' "$tmp/out" "$3"
}
placed() { local got; got=$(places "$2" "$3" "$4") && [ "$got" = "$1" ] || { echo "$got"; return 1; }; }     # WANTED TYPE NUMBER EXPRESSION
at='" ".join("%d/%d" % (i["card"], i["device"]) for i in p)'
refused() { local n=$1 type=$2 words=$3 rc=0; plan --instance-type "$type" --interfaces "$n" >"$tmp/out" 2>"$tmp/err" || rc=$?; [ "$rc" = 2 ] && says "$words" || { echo "$rc"; cat "$tmp/err"; return 1; }; }

# ---- by type ----
ok 'p5.48xlarge: 32 on 32 cards, each but the first as device 1' placed "0/0 $(seq -f %g/1 -s ' ' 31)" p5.48xlarge 32 "$at"
ok 'p4d.24xlarge: 4 on 4 cards' placed '0/0 1/1 2/1 3/1' p4d.24xlarge 4 "$at"
ok 'p4d.24xlarge: 10 on 4 cards, with further devices from card 0 on' placed '0/0 1/1 2/1 3/1 0/1 1/0 2/0 3/0 0/2 1/2' p4d.24xlarge 10 "$at"
ok 'm5.large: 3 on one card' placed '0/0 0/1 0/2' m5.large 3 "$at"
ok 'c6in.32xlarge: 3 on two cards' placed '0/0 1/1 0/1' c6in.32xlarge 3 "$at"
ok 'p6e-gb200: only the even cards take addresses' placed "0/0 $(seq -f %g/1 -s ' ' 2 2 16)" p6e-gb200.36xlarge 9 "$at"
ok 'hpc6id.32xlarge: an interface on a card with room for one is device 0' placed '0/0 1/0' hpc6id.32xlarge 2 "$at"
ok 'p5.48xlarge: 64 interfaces differ in place, metric and table' placed '64 64 64' p5.48xlarge 64 \
        '"%d %d %d" % (len({(i["card"], i["device"]) for i in p}), len({i["metric"] for i in p}), len({i.get("table") for i in p}))'
ok 'p5.48xlarge: no card gets a third device' placed 1 p5.48xlarge 64 'max(i["device"] for i in p)'

# ---- numbers ----
ok 'the primary interface has metric 512, no table and no rules' placed "{'card': 0, 'device': 0, 'metric': 512, 'rules': False}" p5.48xlarge 2 'p[0]'
ok 'another interface has its metric and table by card and device' placed "{'card': 31, 'device': 1, 'metric': 3613, 'rules': True, 'table': 13101}" p5.48xlarge 32 'p[31]'
ok 'the plan as text has metric, table and rules of an interface' grep -qx ' *card 31, device  1: metric 3613, table 13101, rules for each of its addresses' <(plan --instance-type p5.48xlarge --interfaces 32)

# ---- refused, with the numbers ----
ok 'plan refuses 65 interfaces of p5.48xlarge and says how many fit' refused 65 p5.48xlarge 'p5.48xlarge has no room for 65 interfaces: it takes 64, 2 on each of 32 network cards'
ok 'plan refuses 4 interfaces of m5.large and says how many fit' refused 4 m5.large 'm5.large has no room for 4 interfaces: it takes 3, 3 on its network card'
ok 'plan refuses 10 interfaces of a type with known cards but unknown limits' refused 10 p6e-gb200.36xlarge 'is not known, so one goes on each of 9 network cards that take addresses'
ok 'plan refuses 2 interfaces of a type with unknown cards' refused 2 p6e-gb300.36xlarge 'is not known, so one goes on its network card; ask for at most 1'
ok 'plan --interfaces suggests the nearest type for an unknown type' refused 2 p5.47xlarge 'did you mean p5.48xlarge?'
for n in 0 -1 x 1000 ''; do ok "plan refuses the number of interfaces \"$n\"" refused "$n" m5.large "--interfaces takes a number from 1 to 999, not \"$n\""; done
init_refuses() { ! "$nodestrap" init --interfaces 2 2>"$tmp/err" && says 'init does not take --interfaces'; }
ok 'init refuses --interfaces' init_refuses

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
ok 'plan --interfaces changes neither the plan id nor anything else' same_plan

# ---- on this machine ----
machine; cp "$tmp/node.yaml" "$root/"
here() { "$nodestrap" plan --root "$root" -c file:///node.yaml --interfaces "$1" >"$tmp/out" 2>"$tmp/err"; }
this_type() { here 2 && grep -q '^interfaces 2 of m5.large, ' "$tmp/out"; }
ok 'plan --interfaces takes the type of this machine' this_type
rm "$root/sys/devices/virtual/dmi/id/product_name"
no_type() { ! here 2 && says 'the type of this machine is not known; name it with --instance-type'; }
ok 'plan --interfaces is an error if the type of this machine is unknown' no_type

# ---- EFA by card ----
efa() { # TYPE CARDS [OPTION...]
        plan --instance-type "$1" --efa "$2" "${@:3}" >"$tmp/out" 2>"$tmp/err"
}
shown() { efa "$1" "$2" || { cat "$tmp/err"; return 1; }; sed -n '/^EFA  /,/^[^ ]/p' "$tmp/out" | sed '/^$/,$d' | diff - "$tmp/want"; }
cat >"$tmp/want" <<'END'
EFA        4 devices of p6e-gb200.36xlarge, by network card
           card  1: EFA up to 400 Gbps, no ENA, near GPU 0
           card  2: EFA up to 200 Gbps, ENA up to 200, near no GPU
           card  5: EFA up to 400 Gbps, no ENA, near GPU 1
           card  7: EFA up to 400 Gbps, no ENA, near GPU 1
           GPU 0, near cards 1, 3: EFA on 1
           GPU 1, near cards 5, 7: EFA on 5, 7
           GPU 2, near cards 9, 11: no EFA
           GPU 3, near cards 13, 15: no EFA
END
ok 'plan --efa shows the rate and GPU of each card, and the EFA cards of each GPU' shown p6e-gb200.36xlarge 7,1-2,5
far() { grep -c '\[efa-far\]' "$tmp/out" "$tmp/err" | awk -F: '{ n += $2 } END { print n }'; }
warns() { efa "$@" && [ "$(far)" = 1 ] && grep -qF 'no EFA device is near GPU 2 (network cards 9, 11), GPU 3 (network cards 13, 15): ' <(cat "$tmp/out" "$tmp/err"); }
ok 'a warning names two GPUs without an EFA device nearby' warns p6e-gb200.36xlarge 1,5
quiet() { efa "$@" && [ "$(far)" = 0 ] || { cat "$tmp/out"; false; }; }
ok "the cards that the AWS guide recommends cause no warning" quiet p6e-gb200.36xlarge 1,5,9,13
cat >"$tmp/want" <<'END'
EFA        2 devices of p6-b300.48xlarge, by network card
           card  1: EFA up to 400 Gbps, ENA up to 220
           card 16: EFA up to 400 Gbps, ENA up to 220
           AWS does not publish which GPU is near which of these cards
END
ok 'plan --efa guesses no GPU if AWS does not publish the places' shown p6-b300.48xlarge 1,16
ok 'plan --efa does not warn if AWS does not publish the places' quiet p6-b300.48xlarge 1,16
ok 'EFA on all cards of a p5 causes no warning' quiet p5.48xlarge 0-31
ok 'plan --efa is right for every placement of four devices on sixteen cards' python3 "$here/../oracles/efa_cards.py" "$(realpath "$nodestrap")" "$tmp/node.yaml"
not_efa() { local cards=$1 type=$2 words=$3 rc=0; efa "$type" "$cards" || rc=$?; [ "$rc" = 2 ] && says "$words" || { echo "$rc"; cat "$tmp/err"; return 1; }; }
ok 'plan --efa refuses a card that the type does not have' not_efa 1,17 p6e-gb200.36xlarge 'network card 17 of p6e-gb200.36xlarge does not exist; choose from 1 to 16'
ok 'plan --efa refuses a card number of 20 digits' not_efa 18446744073709551615 p5.48xlarge 'network card 18446744073709551615 of p5.48xlarge does not exist; choose from 0 to 31'
ok 'plan --efa refuses a card that takes only ENA' not_efa 0,1 p6-b300.48xlarge 'network card 0 of p6-b300.48xlarge takes no EFA device; choose from 1 to 16'
ok 'plan --efa refuses two devices on one card' not_efa 4-6,5 p6e-gb200.36xlarge 'network card 5 of p6e-gb200.36xlarge is listed twice, but takes only one EFA device'
ok 'plan --efa refuses a type whose cards AWS does not publish' not_efa 0 p6e-gb300r.36xlarge 'no table lists the network cards of p6e-gb300r.36xlarge that take EFA'
ok 'plan --efa refuses a type without EFA' not_efa 0 m5.large 'no table lists the network cards of m5.large that take EFA'
for cards in '' x ,1 3-1 -1 1-2-3 1.5 ' 1'; do
        ok "plan --efa refuses the cards \"$cards\"" not_efa "$cards" p5.48xlarge 'takes network cards, such as 1,5,9 or 0-7, not "'
done
init_takes_none() { ! "$nodestrap" init --efa 1 2>"$tmp/err" && says 'init does not take --efa'; }
ok 'init refuses --efa' init_takes_none
same_id() {
        plan --instance-type p6e-gb200.36xlarge --output json --efa 1,5,9,13 >"$tmp/with" && plan --instance-type p6e-gb200.36xlarge --output json >"$tmp/without" || return 1
        python3 - "$tmp/with" "$tmp/without" <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert len(a['facts'].pop('efaCards')) == 4 and len(a['facts'].pop('efaGpus')) == 4
assert a == b
PY
}
ok 'plan --efa changes neither the plan id nor anything else' same_id

# ---- on a machine, by its PCI bus ----
tray() { rm -rf "$root"; mkdir -p "$root"; "$here/../fixtures/expand.sh" "$1" "$root"; cp "$tmp/node.yaml" "$root/"; shift; for bus; do rm -r "$root/sys/bus/pci/devices/0000:$bus"; done; }
on_it() { "$nodestrap" plan --root "$root" -c file:///node.yaml --output json >"$tmp/plan.json" 2>"$tmp/err"; python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
far = [w["text"] for w in p["warnings"] if w["code"] == "efa-far"]
print(" ".join(a[5:] for a in p["facts"].get("gpusWithoutEfa", [])), far[0] if far else "-", sep="|")' "$tmp/plan.json"; }
# shellcheck disable=SC2053    # a pattern
finds() { local got; got=$(on_it) && [[ $got = $1 ]] || { echo "$got"; cat "$tmp/err"; return 1; }; }
tray p6e-gb200
ok 'a tray with two EFA devices near each GPU causes no warning' finds '|-'
tray p6e-gb200 27:00.0 9a:00.0
ok 'a tray with one EFA device near each GPU causes no warning' finds '|-'
tray p6e-gb200 27:00.0 28:00.0 b0:00.0 b1:00.0
ok 'a warning names two GPUs of a tray without an EFA device on their PCIe switch' finds '29:00.0 b2:00.0|GPUs 0000:29:00.0, 0000:b2:00.0 have no EFA device behind the same PCIe switch: *plan --efa CARDS*'
mv "$root/sys/bus/pci/devices/0000:3d:00.0" "$root/sys/bus/pci/devices/0000:37:00.0"; rm -r "$root/sys/bus/pci/devices/0000:3e:00.0"
ok 'a network card with ENA is near no GPU' finds '29:00.0 3f:00.0 b2:00.0|*'
mv "$root/sys/bus/pci/devices/0000:37:00.0" "$root/sys/bus/pci/devices/0000:77:00.0"
ok 'with devices on unusual buses nodestrap compares only NUMA nodes' finds '|-'
rm -r "$root"/sys/bus/pci/devices/0000:9{a,b}:00.0
ok 'the warning names the NUMA node if nodestrap compares only NUMA nodes' finds '9c:00.0 b2:00.0|*have no EFA device on the same NUMA node: *'
tray p5-48xlarge 4f:00.0 50:00.0 51:00.0
ok 'a p5 with one EFA device near each GPU causes no warning' finds '|-'
tray p5-48xlarge 4f:00.0 50:00.0 51:00.0 52:00.0
ok 'a warning names the GPU of a p5 without an EFA device' finds '53:00.0|GPU 0000:53:00.0 has no EFA device behind *'
tray p5en-48xlarge 55:00.0 56:00.0 57:00.0 58:00.0
ok 'a warning names two GPUs of a p5en behind one switch without an EFA device' finds '59:00.0 5a:00.0|*'
# ---- on a machine, by the cards of its metadata service ----
lists() { # TYPE CARD…: interfaces on these cards; a card with a + has an address
        local type=$1 n=0 mac d; shift
        rm -rf "$tmp/vpc"; cp -r "$fixtures/imds-m5" "$tmp/vpc"
        sed -i "s/m5.large/$type/" "$tmp/vpc/latest/dynamic/instance-identity/document"
        cp "$tmp/node.yaml" "$tmp/vpc/latest/user-data"
        for card; do
                n=$((n + 1)) mac=0e:f4:9a:2b:00:$(printf %02x $n) d=$tmp/vpc/latest/meta-data/network/interfaces/macs/$mac
                mkdir "$d"; echo "${card%+}" >"$d/network-card"; echo 1 >"$d/device-number"
                case $card in *+) echo "10.0.1.$n" >"$d/local-ipv4s";; esac
        done
        mock --imds "$tmp/vpc"
}
by_card() { "$nodestrap" plan --root "$root" -c imds://user-data "$@" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }; }
section() { by_card || return 1; sed -n '/^EFA  /,/^[^ ]/p' "$tmp/out" | sed '2,${/^[^ ]/d}; /^$/d' | diff - "$tmp/want"; }
tells() { by_card && [ "$(far)" = "$1" ] && tr -s ' \n' ' ' <"$tmp/out" | grep -qF "$2" || { cat "$tmp/out" "$tmp/err"; return 1; }; }
cat >"$tmp/want" <<'END'
EFA        4 devices of p6e-gb200.36xlarge, by network card
           card  1: EFA up to 400 Gbps, no ENA, near GPU 0
           card  3: EFA up to 400 Gbps, no ENA, near GPU 0
           card  5: EFA up to 400 Gbps, no ENA, near GPU 1
           card 13: EFA up to 400 Gbps, no ENA, near GPU 3
           GPU 0, near cards 1, 3: EFA on 1, 3
           GPU 1, near cards 5, 7: EFA on 5
           GPU 2, near cards 9, 11: no EFA
           GPU 3, near cards 13, 15: EFA on 13
END
tray p6e-gb200 3e:00.0 9a:00.0 9b:00.0 b1:00.0; lists p6e-gb200.36xlarge 1 3 5 13 2+
ok 'plan shows the cards of a tray as plan --efa does' section
ok 'one warning names the GPU without EFA, its cards and its PCI address' tells 1 'no EFA device is near GPU 2 (network cards 9, 11), on PCI 0000:9c:00.0: '
tray p6e-gb200 27:00.0 3e:00.0 9a:00.0 b1:00.0; lists p6e-gb200.36xlarge 1 5 9 13 2+
ok 'a card with EFA near each GPU causes no warning' tells 0 'GPU 3, near cards 13, 15: EFA on 13'
lists p6e-gb200.36xlarge 1 5 9
ok 'plan does not judge the cards if PCI has more EFA devices than they do' tells 0 'EFA not checked for each network card: 4 EFA devices on PCI, but the interfaces account for 3 to 3'
lists p6e-gb200.36xlarge 1 5 9 17
ok 'plan names a network card that the table does not have' tells 0 'the metadata service names network card 17, but the built-in table does not list it for p6e-gb200.36xlarge'
lists p6e-gb300r.36xlarge 1 5 9 13
ok 'plan names a type that the table does not have' tells 0 'EFA not checked for each network card: no table lists the network cards of p6e-gb300r.36xlarge'
lists p6e-gb200.36xlarge 1 5 9 13; rm "$tmp"/vpc/latest/meta-data/network/interfaces/macs/*:03/network-card
ok 'plan does not warn if a network card has no answer' tells 0 ''
lacks_section() { by_card && ! grep -q '^EFA' "$tmp/out"; }
ok 'plan shows no EFA section if a network card has no answer' lacks_section
mkdir -p "$root/run/nodestrap"; lists p6e-gb200.36xlarge 1 5 9 13
python3 - >"$root/run/nodestrap/interfaces.json" <<'PY'
import json
known = {"device": 1, "askedUsec": 2, "begunUsec": 1, "answered": 7}
print(json.dumps({"bootId": "", "listedUsec": 1, "interfaces": {"instanceId": "i-0f1e2d3c4b5a69788", "primary": "0e:f4:9a:2b:00:00", "ipv6": False,
                  "interfaces": [{"mac": "0e:f4:9a:2b:00:%02d" % card, "card": card, **known} for card in (1, 3, 5, 9)]}}))
PY
ok 'plan takes the cards from the snapshot of udev-net-manager' tells 1 'no EFA device is near GPU 3 (network cards 13, 15): '
ok 'plan does not ask for the cards in the snapshot again' sent 0 network-card
rm -r "$root/run/nodestrap"
asked_none() { by_card --efa 1,5,9,13 && [ "$(grep -c '^EFA' "$tmp/out")" = 1 ]; }
ok 'plan --efa on the machine shows only the cards of the option' asked_none
# shellcheck disable=SC2046    # words
tray p5-48xlarge; lists p5.48xlarge 0+ $(seq 1 31)
cat >"$tmp/want" <<'END'
EFA        32 devices of p5.48xlarge, by network card
           AWS does not publish which GPU is near which of these cards
END
ok 'plan guesses no GPU near a card of a p5' section
ok 'plan does not warn of cards of a p5 that AWS does not publish' test "$(far)" = 0
rm -r "$root/sys/bus/pci/devices/0000:4f:00.0"; sed -i 's/^EFA        32/EFA        31/' "$tmp/want"
# shellcheck disable=SC2046    # words
lists p5.48xlarge $(seq 1 31)
ok 'plan does not count the primary interface of a p5 as an EFA device' section
tray p5-48xlarge 4f:00.0 50:00.0 51:00.0 52:00.0
# shellcheck disable=SC2046    # words
lists p5.48xlarge 0+ $(seq 1 27) 28+ 29+
ok 'a warning names the GPU of a p5 without EFA by its PCI bus' tells 1 'GPU 0000:53:00.0 has no EFA device behind the same PCIe switch'
mock_stop
rm -r "$root"; mkdir -p "$root"

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
ok 'init leaves no marker with the gate off' is_gone gate off --skip run
ok 'the config phase leaves the marker with the gate on' is_there gate on --skip run
ok 'init removes the marker with the gate off again' is_gone gate off --skip run
done_testing
