#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# udev-net-manager from outside: a metadata service that lags, garbles and fails, trees with many interfaces, and a process for each of them,
# all at once. tests/boot and tests/vm show how systemd-networkd reads the files.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2034  # tmp, here and count are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
ln -s "$nodestrap" "$tmp/nodeadm-internal"; internal=$tmp/nodeadm-internal
root=$tmp/root id=i-0f1e2d3c4b5a69788 network=$tmp/root/run/systemd/network
decisions=$root/etc/eks/nodeadm/udev-net-manager service_pid=''
service_stop() { [ -z "$service_pid" ] || { kill "$service_pid"; wait "$service_pid"; } 2>/dev/null; service_pid=''; }
trap 'service_stop; mock_stop; rm -r "$tmp"' EXIT

# A metadata service with interfaces (arguments: interfaces.py's), and a machine that has them: ens5 is the primary one, ens6, ens7 … those behind it
machine() { # TYPE ARGUMENT...
        local type=$1 name=5 index mac rest
        shift
        service_stop
        chmod -R u+w "$tmp/root" 2>/dev/null
        rm -rf "$tmp/root" "$tmp/imds"
        "$here/../fakes/interfaces.py" "$tmp/imds" --type "$type" "$@" >"$tmp/interfaces" || exit 1
        id=$(cat "$tmp/imds/latest/meta-data/instance-id")
        mkdir -p "$root/sys/devices/virtual/dmi/id" "$root/proc/sys/kernel/random" "$root/run/nodestrap" "$root/sys/bus/pci/drivers/ena"
        echo "$type" >"$root/sys/devices/virtual/dmi/id/product_name"
        echo 7c1d4a0e-5b7e-4a43-9c52-0f6c6a1b2c3d >"$root/proc/sys/kernel/random/boot_id"
        while read -r index mac rest; do plug "ens$((name + index))" "$mac"; done <"$tmp/interfaces"
        plug lo 00:00:00:00:00:00 virtual
        within 120000
        serve
}
plug() { # NAME MAC [virtual]
        local dir=$root/sys/class/net/$1
        mkdir -p "$dir/device"
        echo "$2" >"$dir/address"
        echo $((${1//[!0-9]/} + 1)) >"$dir/ifindex"
        if [ -n "${3-}" ]; then rmdir "$dir/device"; else ln -sfn ../../../../bus/pci/drivers/ena "$dir/device/driver"; fi
}
unplug() { rm -r "${root:?}/sys/class/net/$1"; }
serve() {
        service_stop
        : >"$tmp/log"
        exec 9< <(IMDS_LOG=$tmp/log exec python3 "$here/../tools/imds.py" serve 127.0.0.1 "${port:-0}" "$tmp/imds")
        service_pid=$!
        read -r _ served <&9 || { echo "Bail out! the mock does not start"; exit 1; }
        exec 9<&-
        export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:$served
}
lag() { printf '%s\n' "$@" >"$tmp/imds/lag"; }
down() { lag "down * inf"; comes eval '! (: <>"/dev/tcp/127.0.0.1/$served") 2>/dev/null'; }
within() { echo "$1" >"$root/run/nodestrap/deadline-ms"; }      # for the command's own deadline of half a minute, also while it runs
comes() { local n; for n in {1..3600}; do ! "$@" || return 0; sleep 0.05; done; echo "does not come: $*"; return 1; }
is_asked() { grep -qF -- "$1" "$tmp/log"; }
mac_of() { awk -v i="$(($1 - 5))" '$1 == i { print $2 }' "$tmp/interfaces"; }
manager() { # STATUS ACTION INTERFACE [ARGUMENT...]
        local status=$1 action=$2 interface=$3 rc
        shift 3
        "$nodestrap" udev-net-manager --action "$action" --interface "$interface" --root "$root" "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?
        [ $rc = "$status" ] || { echo "exit $rc, not $status"; cat "$tmp/out" "$tmp/err" "$tmp/log"; return 1; }
}
add() { manager 0 add "$@"; }
late() { # INTERFACE PATH: fails by its deadline, which comes when it has asked for that, and so ends the round in which it did
        local pid rc
        within 120000; : >"$tmp/log"
        manager 32 add "$1" & pid=$!
        comes is_asked "$2" && within 1
        wait $pid; rc=$?
        within 120000
        return $rc
}
all_at_once() { # NUMBER [OPTION...]
        local i rc=0 pids=() n=$1
        shift
        rm -f "$tmp"/err.*
        for ((i = 5; i < 5 + n; i++)); do
                "$nodestrap" udev-net-manager --action add --interface "ens$i" --root "$root" "$@" >"$tmp/out.$i" 2>"$tmp/err.$i" & pids+=($!)
        done
        for i in "${pids[@]}"; do wait "$i" || rc=1; done
        [ $rc = 0 ] || { cat "$tmp"/err.*; return 1; }
}
# A process that waits 2.5 s for the answers of another one asks alone, as it should: then there are more requests. A run in which the
# service was so slow is made again, on another machine.
share() { # NUMBER COMMAND...: what makes the machine
        local n=$1 i
        shift
        for i in {1..20}; do
                "$@"
                all_at_once "$n" --development || return
                grep -qF 'asks alone' "$tmp"/err.* || return 0
        done
        echo "the service was too slow each time"; return 1
}
shared() { share "$@" >"$tmp/shared" 2>&1; shares=$?; }         # not in $( ), whose end would be the service's
went_well() { [ "$shares" = 0 ] || { cat "$tmp/shared"; false; }; }
# Runs a slow part beside all others, in a folder of its own; told NAME waits for it and returns its status.
part() { # NAME COMMAND...
        mkdir "$tmp/$1"
        beside "$@" >"$tmp/$1.told" 2>&1 &
}
beside() {
        local tmp=$tmp/$1 service_pid='' mock_pid=''
        local root=$tmp/root network=$tmp/root/run/systemd/network decisions=$tmp/root/etc/eks/nodeadm/udev-net-manager
        "${@:2}"; echo $? >"$tmp/ends"
        service_stop; mock_stop
}
told() { comes test -s "$tmp/$1/ends" && [ "$(cat "$tmp/$1/ends")" = 0 ] || { cat "$tmp/$1.told"; false; }; }
decided() { # NAME WORD
        local n=${1#ens}
        [ "$(cat "$decisions/$id/$1")" = "$2" ] && grep -qF "\"$2\"" "$decisions/by-mac/$id/$(mac_of "$n")" ||
                { find "$decisions" -type f -exec grep -H . {} +; false; }
}
undecided() { [ ! -e "$decisions/$id/$1" ] && [ ! -e "$decisions/by-mac/$id/$(mac_of "${1#ens}")" ]; }
has() { grep -qxF -- "$2" "$network/70-eks-$1.network" || { cat "$network/70-eks-$1.network"; false; }; }
no_file() { [ ! -e "$network/70-eks-$1.network" ] || { cat "$network/70-eks-$1.network"; false; }; }
asked() { local n; n=$(grep -c . "$tmp/log"); [ "$n" -le "$1" ] || { echo "$n requests"; cat "$tmp/log"; false; }; }
no_rest() { local left; left=$(find "${@:-$root/run}" "$root/etc" -name '.*.tmp' 2>/dev/null); [ -z "$left" ] || { echo "$left"; false; }; }
# All files as card and device have them: metric 512 + 100 card + device, table 10000 + 100 card + device, of each its own MAC.
all_as_expected() {
        local index mac card device rest
        while read -r index mac card device rest; do
                local name=ens$((5 + index))
                has $name "PermanentMACAddress=$mac" && has $name "RouteMetric=$((512 + 100 * card + device))" && decided $name io.systemd.Network || return
                if [ "$index" -gt 0 ]; then grep -q "=$((10000 + 100 * card + device))\$" "$network/70-eks-$name.network" || { echo "$name: no table"; return 1; }
                elif grep -q '^\[RoutingPolicyRule\]' "$network/70-eks-$name.network"; then echo "rules on the primary one"; return 1; fi
        done <"$tmp/interfaces"
}
written() { find "$root/run/systemd" "$root/etc" -printf '%p %T@ %i %l\n' | sort; }

# ---- how many there are ----
crowd=32; [ -z "${NODESTRAP_TRANSLATED-}" ] || crowd=16         # as many translated processes let each other wait too long
for n in 1 2 8 $crowd; do
        type=p5.48xlarge; [ $n != 1 ] || type=m5.large
        shared $n machine $type --count $n
        ok "$n at once" went_well
        ok "$n: each has its file and its decision" all_as_expected
        ok "$n: at most $((3 * n + 5)) requests" asked $((3 * n + 5))
        ok "$n: the default configuration is off" test "$(cat "$network/80-ec2.network.d/10-eks-disable.conf")" = $'[Match]\nName=none'
        ok "$n: nothing is left beside them" no_rest
        written >"$tmp/before"; : >"$tmp/log"
        ok "$n: all once more" all_at_once $n
        ok "$n: nobody asks" asked 0
        ok "$n: nothing is written" eval 'written | diff "$tmp/before" -'
done
ok "what was asked is for root's eyes" test "$(stat -c %a "$root/run/nodestrap/interfaces.json")" = 600
ok "a reboot keeps the decisions" eval 'rm -r "$root/run"; mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"; all_at_once $crowd && all_as_expected'

# ---- a service that lags ----
lagging() { machine p5.48xlarge --count "$1"; lag "${@:2}"; }
lagging 8 "404 */network-card 2x" "=0 */device-number 1x" "404 */local-ipv4s 2x"
ok "cards, devices and addresses that come late are waited for" all_at_once 8
ok "and are what they are in the end" all_as_expected
# nodestrap asks for the list twice a second at most, for all waiters: eight askers alone would make sixteen requests. By the log, whose
# times
# are the service's; one that asks alone has waited for 2.5 s.
seldom() { awk '/macs\/ / { last = $1; first = first ? first : last; n++ } END { most = 3 * (1 + 2 * (last - first)); print n, most; exit n > most }' "$tmp/log"; }
unlisted() { local i; machine p5.48xlarge --count $crowd; for ((i = crowd / 2 + 4; i < crowd / 2 + 12; i++)); do echo "404 $(mac_of "$i") 4x list"; done >"$tmp/imds/lag"; }
shared $crowd unlisted
ok "so are interfaces that are not listed yet" went_well
ok "with all that belongs to them" all_as_expected
ok "the list is asked for once a round, whoever waits" seldom
ok "and what is known is not asked for again" eval '[ "$(grep -c "$(mac_of 7)/device-number" "$tmp/log")" = 1 ]'
shared $crowd lagging $crowd "404 */network-card 3x"
ok "cards that come late are waited for by all together" eval 'went_well && all_as_expected'
ok "for which nothing else is asked again" eval 'n=$(grep -c /local-ipv4s "$tmp/log"); [ "$n" -le $((crowd + 8)) ] || { echo "$n"; false; }'

# ---- what takes long, beside what follows ----
lone_card() { machine x9.huge --cards 1 --count 3; within 60000; lag "404 */network-card inf"; add ens7 && says "warning" && says "taking it for card 0" && says "card 0, device 2;" && has ens7 RouteMetric=514; }
lone_efa() { machine p5.48xlarge --count 4 --efa-only 2; within 60000; add ens7 && says "is left alone: it has no address" && undecided ens7 && no_file ens7; }
# One after the other they would take a minute and a half.
slow() { machine p5.48xlarge --count $crowd; service_stop; within 60000; mock --imds "$tmp/imds" --fault delay=1; all_at_once $crowd && all_as_expected; }
errors() { machine p5.48xlarge --count 8; lag "503 /latest/meta-data/mac inf"; late ens6 "meta-data/mac 503" && says "HTTP 503"; }
part errors errors
part card lone_card
part efa lone_efa
part slow slow

machine p5.48xlarge --count 2 --ipv6
lag "404 */vpc-ipv6-cidr-blocks 1x" "404 */device-number 1x"
add ens5; sed -i -E 's/("ipv6Usec": *)[0-9]+/\11/' "$root/run/nodestrap/interfaces.json"        # as if it had been asked for long ago
ok "IPv6 that is told late is there for who has to ask anyway" eval 'add ens6 && grep -q "^From=2001:db8:11::a1" "$network/70-eks-ens6.network"'
machine p5.48xlarge --count 4
lag "404 $(mac_of 7) inf"
ok "one that is not listed in time fails" late ens7 "/macs/ "
ok "which says why" eval 'says "(32 EINTERFACE)" && says "ens7: the metadata service does not list it yet" && says "$(mac_of 7)"'
ok "nothing is decided" undecided ens7
ok "nothing is written" no_file ens7
ok "the others are well" add ens6
lag "404 */network-card inf"
rm "$root/run/nodestrap/interfaces.json"
ok "a card that is never told on a type with several is no card 0" eval 'late ens7 "$(mac_of 7)/network-card" && says "does not list its network card yet" && undecided ens7'
lag "=0 */network-card inf" "=0 */device-number inf"
rm "$root/run/nodestrap/interfaces.json"
ok "nor is there a second device 0 on card 0" eval 'late ens7 "$(mac_of 7)/network-card" && says "which is the primary interface" && undecided ens7'
lag ""
ok "the next try succeeds" add ens7
machine p5.48xlarge --count 8 --device-0
ok "device 0 is a place on any other card" eval 'all_at_once 8 && all_as_expected && has ens6 RouteMetric=612'
ok "on a type that nobody knows a card that is not told is the only one" told card
machine x9.huge --cards 4 --count 4
lag "404 $(mac_of 7)/network-card inf"
ok "unless another interface is on another card" eval 'add ens6 && late ens7 "$(mac_of 7)/network-card" && undecided ens7'
ok "an interface without an address is left alone" told efa
machine p5.48xlarge --count 4 --ipv6
ok "with IPv6 each has rules for both" eval 'all_at_once 4 && all_as_expected && grep -q "^From=2001:db8:11::a1" "$network/70-eks-ens6.network" && grep -q "^From=10.11." "$network/70-eks-ens6.network"'

# ---- a service that is slow ----
ok "with a second for each answer all come to an end within their deadline" told slow

# ---- garbage about one ----
machine p5.48xlarge --count 4
echo banana >"$tmp/imds/latest/meta-data/network/interfaces/macs/$(mac_of 6)/device-number"
lag "404 $(mac_of 7) inf"
ok "garbage about an interface is its own failure" eval 'late ens6 "$(mac_of 6)/device-number" && says "$(mac_of 6)/device-number" && says "is not a number"'
ok "which is not kept for the others" eval '! grep -F device-number "$root/run/nodestrap/interfaces.json"'
ok "nor told of another" eval 'late ens7 "/macs/ " && lacks "$(mac_of 6)/device-number of the instance metadata is not a number from 0 to 255; is it" && says "does not list it yet"'

# ---- a service that is down: nothing can succeed, however long it takes ----
machine p5.48xlarge --count 8
within 1500
ok "a service that nobody reaches" down
ok "without the service it fails" manager 32 add ens6
ok "and says so" eval 'says "(32 EINTERFACE)" && says "no usable answer from the instance metadata service" && undecided ens6'
ok "so do all at once" eval '! all_at_once 8 && [ "$(grep -lF "(32 EINTERFACE)" "$tmp"/err.* | wc -l)" = 8 ]'
ok "each with the service's failure, and none with a lock" eval '! grep -L "no usable answer" "$tmp"/err.* | grep . && ! grep "failed .*[.]lock" "$tmp"/err.*'
machine x9.huge --cards 1 --count 2
within 1500
ok "which tells nothing of cards" eval 'down && manager 32 add ens6 && lacks "card 0"'
machine p5.48xlarge --count 8
within 1500
lag "silent * inf" "silent api/token inf"
ok "a service that is silent is no better" eval 'manager 32 add ens6 && says "no answer in time"'
lag ""; within 120000
ok "nor is one that has nothing but errors" told errors
returns() { # it is there again when one has found that it is not
        local pid
        down
        all_at_once 8 & pid=$!
        comes eval 'grep -qs "trying again" "$tmp"/err.*'
        lag ""
        wait $pid
}
ok "one that comes up is waited for" eval 'returns && all_as_expected'
rm "$root/run/nodestrap/deadline-ms"
AWS_EC2_METADATA_DISABLED=true ok "what time does not mend is told at once" eval 'rm "$root/run/nodestrap/interfaces.json"; manager 32 add ens6 && says AWS_EC2_METADATA_DISABLED'

# ---- interfaces that go ----
machine p5.48xlarge --count 4
ok "one that has gone before" eval 'unplug ens8; manager 32 add ens8 && says "ens8: no network interface has this name"'
lag "404 $(mac_of 7) inf"
"$nodestrap" udev-net-manager --action add --interface ens7 --root "$root" >"$tmp/out" 2>"$tmp/err" & pid=$!
comes test -s "$root/run/nodestrap/interfaces.json"
unplug ens7
wait $pid; ended=$?
ok "one that goes while it is waited for" eval '[ $ended = 32 ] && says "ens7: no network interface has this name"'
rm "$root/run/nodestrap/interfaces.json"
plug ens7 "$(mac_of 7)"
"$nodestrap" udev-net-manager --action add --interface ens7 --root "$root" >"$tmp/out" 2>"$tmp/err" & pid=$!
comes test -s "$root/run/nodestrap/interfaces.json"
kill -TERM $pid; wait $pid; ended=$?
ok "SIGTERM ends the wait" eval '[ $ended = 1 ] && says EINTERRUPTED && undecided ens7'

# ---- what others left ----
machine p5.48xlarge --count 4
echo '{"interfaces": [' >"$root/run/nodestrap/interfaces.json"
ok "a snapshot that cannot be read is none" eval 'add ens6 && says "warning" && says "interfaces.json cannot be read"'
ok "and is written anew" eval 'python3 -m json.tool "$root/run/nodestrap/interfaces.json" >"$tmp/out" && : >"$tmp/log" && add ens7 && asked 0'
for garbage in '[]' '{"interfaces": 7, "bootId": 1}' '{"interfaces": {"instanceId": "../..", "primary": 7}, "listedUsec": -1}' $'\xff\xfe'; do
        printf '%s' "$garbage" >"$root/run/nodestrap/interfaces.json"
        ok "nor is $garbage one" eval 'add ens7 && has ens7 RouteMetric=713'
done
mkdir -p "$decisions/$id"
echo '{"manager": ' >"$decisions/$id/ens8"
ok "a decision that cannot be read is none" eval 'add ens8 && says warning && [ "$(grep -cF "$id/ens8" "$tmp/err")" = 1 ] && decided ens8 io.systemd.Network'
printf cni >"$decisions/$id/ens8"; rm "$decisions/by-mac/$id/$(mac_of 8)"
ok "nodeadm's decision counts" eval 'add ens8 && says "the CNI manages it" && no_file ens8 && decided ens8 cni'
printf '{"mac":"%s","manager":"cni"}' "$(mac_of 7)" >"$decisions/$id/ens7"; rm "$decisions/by-mac/$id/$(mac_of 7)"
ok "so does its newer form, which it keeps" eval 'add ens7 && no_file ens7 && [ "$(cat "$decisions/$id/ens7")" = "{\"mac\":\"$(mac_of 7)\",\"manager\":\"cni\"}" ]'
if unshare -rm true 2>/dev/null; then
        machine p5.48xlarge --count 4
        mkdir -p "$root/etc"
        ok "so it does with a read-only /etc" unshare -rm bash -c 'mount --bind "$1/etc" "$1/etc" && mount -o remount,bind,ro "$1/etc" &&
                "$2" udev-net-manager --action add --interface ens6 --root "$1" 2>&1 | grep -F "Read-only file system"' - "$root" "$nodestrap"
        ok "to its end" has ens6 RouteMetric=613
else ok "a read-only /etc # SKIP no namespaces here" true; fi
for dir in etc run usr/lib; do mkdir -p "$root/$dir/systemd/network/70-ens6.network.d"; echo "# $dir" >"$root/$dir/systemd/network/70-ens6.network.d/eni.conf"; done
echo >"$root/usr/lib/systemd/network/70-ens6.network.d/alias.conf"
ok "the image's drop-ins go with its file" eval 'add ens6 && [ "$(readlink "$network/70-eks-ens6.network.d/eni.conf")" = /etc/systemd/network/70-ens6.network.d/eni.conf ] &&
        [ "$(readlink "$network/70-eks-ens6.network.d/alias.conf")" = /usr/lib/systemd/network/70-ens6.network.d/alias.conf ]'

# ---- the marker: later interfaces are the CNI's ----
machine p5.48xlarge --count 4
add ens5 && add ens6
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"
: >"$tmp/log"
ok "an interface that comes behind the marker is the CNI's" eval 'add ens7 && no_file ens7 && decided ens7 cni'
ok "for no request" asked 0
ok "it stays the CNI's" eval 'rm "$root/run/nodeadm/init"; add ens7 && no_file ens7 && decided ens7 cni'
touch "$root/run/nodeadm/init"
ok "and those before stay networkd's" eval 'rm -r "$network"; add ens6 && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
rm "$root/run/nodestrap/interfaces.json"; : >"$tmp/log"
ok "without a snapshot the CNI's cost what tells the instance" eval 'add ens8 && decided ens8 cni && ! grep -E "$(mac_of 7)|$(mac_of 8)" "$tmp/log"'

marker() { mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"; }
reboot() { rm -rf "$root/run/nodeadm" "$root/run/nodestrap" "$network"; mkdir "$root/run/nodestrap"; }

# ---- what runs stays as it is ----
machine p5.48xlarge --count 4
ok "two are networkd's" eval 'add ens5 && add ens6'
marker; rm -r "$root/etc/eks" "$root/run/nodestrap/early-interfaces"
ok "without their decisions, behind the marker, they stay so" eval 'add ens5 && add ens6 && has ens5 RouteMetric=512 && has ens6 RouteMetric=613 &&
        decided ens5 io.systemd.Network && decided ens6 io.systemd.Network'
printf '{"interface":"ens5","manager":"cni"}' >"$decisions/by-mac/$id/$(mac_of 5)"; printf cni >"$decisions/$id/ens5"
ok "the primary one also with a decision against it" eval 'add ens5 && has ens5 RouteMetric=512 && decided ens5 io.systemd.Network'
unplug ens6; plug ens6 0e:f4:9a:2b:fe:11
ok "another one of that name does not" eval 'add ens6 && no_file ens6 && says "the CNI manages it; removed configuration files of systemd-networkd: 1"'
machine p5.48xlarge --count 4
marker
ok "where the package comes onto a node that runs, its primary one is left alone" eval 'add ens5 && no_file ens5 && [ "$(cat "$decisions/$id/ens5")" = cni ]'
ok "and that is kept for this boot" eval '[ ! -e "$decisions/by-mac/$id/$(mac_of 5)" ] && add ens5 && no_file ens5'
reboot
ok "the next one has it" eval 'add ens5 && has ens5 RouteMetric=512 && decided ens5 io.systemd.Network'
reboot; printf '{"interface":"ens5","manager":"cni"}' >"$decisions/by-mac/$id/$(mac_of 5)"; printf cni >"$decisions/$id/ens5"
ok "so it is where the MAC was decided for the CNI" eval 'add ens5 && has ens5 RouteMetric=512 && decided ens5 io.systemd.Network'
ok "remove takes the file of one that is still there" eval 'manager 0 remove ens5 && no_file ens5 && decided ens5 io.systemd.Network'
marker
ok "behind the marker it is recalled" eval 'add ens5 && has ens5 RouteMetric=512 && manager 0 remove ens5'
rm -r "$decisions"
ok "with nothing kept and removed it is left alone" eval 'add ens5 && no_file ens5 && [ "$(cat "$decisions/$id/ens5")" = cni ]'

# ---- the first try was before the marker, the next one is behind it ----
machine p5.48xlarge --count 4
lag "404 $(mac_of 6)/device-number inf"
ok "what the metadata service does not tell in time" eval 'late ens6 "$(mac_of 6)/device-number" && undecided ens6'
marker; rm "$tmp/imds/lag"
ok "is networkd's later in this boot" eval 'add ens6 && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
ok "others are the CNI's" eval 'add ens7 && no_file ens7 && decided ens7 cni'
ok "so is one that has gone and comes back" eval 'unplug ens6 && manager 0 remove ens6 && rm -r "$decisions" && plug ens6 "$(mac_of 6)" && add ens6 && decided ens6 cni'
machine p5.48xlarge --count 4
ok "a dry run is no try" eval 'add ens6 --dry-run && [ ! -e "$root/run/nodestrap/early-interfaces" ]'
ok "one that has only another name came when it came" eval 'add ens6 && unplug ens6 && plug ens20 "$(mac_of 6)" && manager 0 remove ens6 && [ -e "$root/run/nodestrap/early-interfaces/$(mac_of 6)" ]'

# ---- names change hands ----
machine p5.48xlarge --count 4
ok "two interfaces are networkd's" eval 'add ens6 && add ens7'
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"
six=$(mac_of 6)
unplug ens6; plug ens20 "$six"
ok "one that has another name keeps its decision" eval 'add ens20 && has ens20 "PermanentMACAddress=$six" && has ens20 RouteMetric=613'
ok "its former file is gone" no_file ens6
plug ens6 0e:f4:9a:2b:fe:11
ok "another one of its former name has one of its own" eval 'add ens6 && no_file ens6 && [ "$(cat "$decisions/$id/ens6")" = cni ]'

# ---- remove ----
machine p5.48xlarge --count 4
mkdir -p "$root/etc/systemd/network/70-ens6.network.d"; touch "$root/etc/systemd/network/70-ens6.network.d/x.conf"
ok "what is there" eval 'add ens5 && add ens6 && [ -L "$network/70-eks-ens6.network.d/x.conf" ]'
unplug ens6
ok "is removed" manager 0 remove ens6
ok "with its links" eval 'no_file ens6 && [ ! -e "$network/70-eks-ens6.network.d" ]'
ok "its decision stays" decided ens6 io.systemd.Network
ok "what was known of it is forgotten" eval '! grep -F "$(mac_of 6)" "$root/run/nodestrap/interfaces.json" && grep -qF "$(mac_of 7)" "$root/run/nodestrap/interfaces.json"'
ok "and the others' files stay" has ens5 RouteMetric=512
ok "once more is nothing" manager 0 remove ens6
ok "nor is what never was" manager 0 remove ens77
ok "what is not ours stays" eval 'plug ens6 "$(mac_of 6)" && add ens6 && touch "$network/70-eks-ens6.network.d/users.conf" &&
        ln -s /etc/hostname "$network/70-eks-ens6.network.d/hostname" && manager 0 remove ens6 && no_file ens6 &&
        [ "$(ls "$network/70-eks-ens6.network.d")" = "$(printf "hostname\nusers.conf")" ]'
rm -r "$network/70-eks-ens6.network.d"
unplug ens7; rm -rf "$root/etc/eks"
ok "also where no decision says which MAC it had" eval 'manager 0 remove ens7 && ! grep -F "$(mac_of 7)" "$root/run/nodestrap/interfaces.json"'
plug ens7 "$(mac_of 7)"
ok "it may come back" eval 'add ens6 && has ens6 RouteMetric=613'

mkdir -p "$root/usr/lib/systemd/network/70-ens6.network.d"; mv "$root/etc/systemd/network/70-ens6.network.d/x.conf" "$root/usr/lib/systemd/network/70-ens6.network.d/y.conf"
ok "links to drop-ins that went go" eval 'add ens6 && [ "$(ls "$network/70-eks-ens6.network.d")" = y.conf ]'
marker
ok "of an interface of the CNI" eval 'add ens7 && decided ens7 cni'
ok "that has not gone the decision stays" eval 'manager 0 remove ens7 && decided ens7 cni'
unplug ens7
ok "that has gone it goes, by MAC and by name" eval 'manager 0 remove ens7 && [ ! -e "$decisions/by-mac/$id/$(mac_of 7)" ] && [ ! -e "$decisions/$id/ens7" ]'

macs=$tmp/imds/latest/meta-data/network/interfaces/macs
echo 3 >"$macs/$(mac_of 6)/device-number"
ok "what was told of it holds for this interface" eval ': >"$tmp/log"; add ens6 && asked 0'
echo 99 >"$root/sys/class/net/ens6/ifindex"
ok "and not for another one of its MAC" eval 'add ens6 && has ens6 RouteMetric=615'

# ---- at once ----
machine p5.48xlarge --count 4
many() { local i rc=0 pids=(); for i in 1 2 3 4 5 6 7 8; do "$nodestrap" udev-net-manager --action "${1-add}" --interface ens6 --root "$root" >"$tmp/out.$i" 2>"$tmp/err.$i" & pids+=($!); done
        for i in "${pids[@]}"; do wait "$i" || rc=1; done; [ $rc = 0 ] || { cat "$tmp"/err.*; return 1; }; }
ok "many events for one interface at once" many
ok "end in one file" eval 'has ens6 RouteMetric=613 && decided ens6 io.systemd.Network && no_rest'
ok "so do they when it goes" eval 'many remove && no_file ens6'
add ens5 && add ens6
(cd "$network" && find . -type f -exec sha256sum {} +) | sort >"$tmp/whole"
whole() { # nothing there, or all of it
        local file
        while read -r file; do
                case $file in
                *.json) python3 -m json.tool "$file";;
                "$decisions"/*) grep -F io.systemd.Network "$file";;
                *) grep -qxF "$(cd "$network" && sha256sum "./${file#"$network/"}")" "$tmp/whole";;
                esac >/dev/null 2>&1 || { echo "damaged: $file"; cat "$file"; return 1; }
        done < <(find "$root/run/systemd" "$root/run/nodestrap/interfaces.json" "$root/etc/eks" -type f ! -name '.*' 2>/dev/null)
}
killed() {
        local i ms pids
        for i in {1..25}; do
                pids=()
                rm -rf "$root/run/systemd" "$root/etc/eks" "$root/run/nodestrap"; mkdir "$root/run/nodestrap"
                for name in ens5 ens6; do "$nodestrap" udev-net-manager --action add --interface $name --root "$root" 2>/dev/null & pids+=($!); done
                printf -v ms '0.%03d' $((RANDOM % 150)); sleep "$ms"
                kill -KILL "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null
                whole || return
        done
}
ok "a process that is killed leaves no half of a file" killed
# It takes away what lies where networkd and later boots look. A half of a note in /run/nodestrap goes with the boot.
ok "and the next one goes on from there" eval 'add ens5 && add ens6 && [ "$(cd "$network" && find . -type f -exec sha256sum {} + | sort)" = "$(cat "$tmp/whole")" ] && no_rest "$root/run/systemd"'

# ---- other ways of saying it ----
machine p5.48xlarge --count 4
ok "called nodeadm-internal" eval '"$internal" udev-net-manager -i ens6 -a add --root "$root" && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
ok "it ends with 1 where it fails" eval '"$internal" udev-net-manager --action=add --interface=ens60 --root "$root"; [ $? = 1 ]'
"$internal" udev-net-manager -x 2>"$tmp/err"
ok "its messages name it" eval 'says "see nodeadm-internal udev-net-manager --help"'
"$internal" 2>"$tmp/err"
ok "also without a command" eval 'says "no command given; nodeadm-internal --help lists them"'
ok "and the code that it ends with" eval '"$internal" udev-net-manager -a nix -i ens6 2>"$tmp/err"; [ $? = 1 ] && says "failed (1 EUSAGE)"'
ok "--dry-run shows the plan" eval 'add ens7 --dry-run && grep -q "write-file .*/run/systemd/network/70-eks-ens7.network" "$tmp/out"'
ok "and changes nothing" eval 'no_file ens7 && undecided ens7'

# ---- the gate OSManagedNoManageENIs ----
machine p5.48xlarge --count 6
add ens5
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init" "$root/run/nodeadm/os-managed-no-manage-enis"
service_stop
gate() { mock --imds "$tmp/imds" --ec2-listen 127.0.0.1:0 "$@"; }
gate --interface "$(mac_of 6),node.k8s.amazonaws.com/no_manage=true" --interface "$(mac_of 7)"
ok "with the gate a tagged interface is networkd's" eval 'add ens6 && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
ok "another one the CNI's" eval 'add ens7 && no_file ens7 && decided ens7 cni'
: >"$tmp/log"
ok "what is decided is not asked for again" eval 'add ens6 && add ens7 && sent 0 " ec2 "'
gate --fault ec2:unauthorized
ok "without the right to ask it is as without the gate" eval 'add ens8 && no_file ens8 && says "warning" && says "no_manage"'
ok "and nothing is kept" undecided ens8
mv "$tmp/imds/latest/meta-data/iam" "$tmp/iam"
gate --no-role
ok "so it is without a role" eval 'add ens8 && no_file ens8 && says "warning" && says "instance profile" && undecided ens8'
mv "$tmp/iam" "$tmp/imds/latest/meta-data/iam"
gate
ok "and where EC2 is out of reach" eval 'AWS_ENDPOINT_URL_EC2=http://127.0.0.1:9 add ens8 && no_file ens8 && says "no usable answer from EC2" && undecided ens8'
gate --fault ec2:notfound
ok "another failure of EC2 is one" eval 'manager 32 add ens8 && says "(32 EINTERFACE)" && undecided ens8'

# Many interfaces during the run phase, which may ask EC2 for the name. All nodes of an account share its rate of EC2 requests.
machine p5.48xlarge --count 6
add ens5
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init" "$root/run/nodeadm/os-managed-no-manage-enis"
service_stop
gate --fault ec2:delay=0.2 --overlaps "$tmp/overlaps"
ok "interfaces that come at once all learn their tags" eval 'all_at_once 6 && decided ens10 cni'
ok "each by one request" sent 5 'DescribeNetworkInterfaces 200'
ok "and one request at a time is in flight" eval '[ ! -s "$tmp/overlaps" ] || { cat "$tmp/overlaps"; false; }'
exec 6>"$root/run/nodestrap/ec2.lock"
flock 6
rm "$decisions"/* 2>/dev/null; rm -rf "$root/etc/eks/nodeadm/udev-net-manager"
: >"$tmp/log"
add ens6 6>&- & adding=$!
sleep 1
ok "a request waits for that of another process" sent 0 ' ec2 '
exec 6>&-
wait $adding; ok "and goes out when that one is over" eval '[ '$?' = 0 ] && sent 1 " ec2 "'
done_testing
