#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# udev-net-manager from outside: a metadata service that lags, garbles and fails, trees with many interfaces, and one process for each
# interface, in parallel. tests/boot and tests/vm show how systemd-networkd reads the files.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2034  # tmp, here and count are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
ln -s "$nodestrap" "$tmp/nodeadm-internal"; internal=$tmp/nodeadm-internal
root=$tmp/root id=i-0f1e2d3c4b5a69788 network=$tmp/root/run/systemd/network
decisions=$root/etc/eks/nodeadm/udev-net-manager service_pid=''
service_stop() { [ -z "$service_pid" ] || { kill "$service_pid"; wait "$service_pid"; } 2>/dev/null; service_pid=''; }
trap 'service_stop; mock_stop; rm -r "$tmp"' EXIT

# A metadata service with interfaces (arguments: those of interfaces.py), and a machine that has them: ens5 is the primary interface,
# ens6, ens7 … are the others
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
within() { echo "$1" >"$root/run/nodestrap/deadline-ms"; }      # replaces the deadline of the command (30 s), also while it runs
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
late() { # INTERFACE PATH: fails by its deadline, which the test sets after the request for PATH, so that it ends that round
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
# A process that waits 2.5 s for the answers of another one asks alone, as it should: then there are more requests. The test repeats a run
# in which the service was so slow, on another machine.
share() { # NUMBER COMMAND...: COMMAND makes the machine
        local n=$1 i
        shift
        for i in {1..20}; do
                "$@"
                all_at_once "$n" --development || return
                grep -qF 'asks the metadata service itself' "$tmp"/err.* || return 0
        done
        echo "the service was too slow each time"; return 1
}
shared() { share "$@" >"$tmp/shared" 2>&1; shares=$?; }         # not in $( ), which would wait for the end of the service
went_well() { [ "$shares" = 0 ] || { cat "$tmp/shared"; false; }; }
# Runs a slow part in parallel with all others, in its own folder; told NAME waits for it and returns its status.
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
# Each file has its MAC and the numbers of its card and device: metric 512 + 100 card + device, table 10000 + 100 card + device.
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

# ---- numbers of interfaces ----
crowd=32; [ -z "${NODESTRAP_TRANSLATED-}" ] || crowd=16         # more translated processes would wait too long for each other
for n in 1 2 8 $crowd; do
        type=p5.48xlarge; [ $n != 1 ] || type=m5.large
        shared $n machine $type --count $n
        ok "$n interfaces are configured in parallel" went_well
        ok "$n in parallel: each interface has its file and its decision" all_as_expected
        ok "$n in parallel: at most $((3 * n + 5)) metadata requests" asked $((3 * n + 5))
        ok "$n in parallel: the default configuration of networkd is off" test "$(cat "$network/80-ec2.network.d/10-eks-disable.conf")" = $'[Match]\nName=none'
        ok "$n in parallel: no temporary file is left" no_rest
        written >"$tmp/before"; : >"$tmp/log"
        ok "$n in parallel: a second run succeeds" all_at_once $n
        ok "$n in parallel: a second run makes no metadata request" asked 0
        ok "$n in parallel: a second run writes nothing" eval 'written | diff "$tmp/before" -'
done
ok "only root can read the snapshot interfaces.json" test "$(stat -c %a "$root/run/nodestrap/interfaces.json")" = 600
ok "the decisions stay after a reboot" eval 'rm -r "$root/run"; mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"; all_at_once $crowd && all_as_expected'

# ---- a service that lags ----
lagging() { machine p5.48xlarge --count "$1"; lag "${@:2}"; }
lagging 8 "404 */network-card 2x" "=0 */device-number 1x" "404 */local-ipv4s 2x"
ok "udev-net-manager waits for late cards, devices and addresses" all_at_once 8
ok "all files are right after late cards, devices and addresses" all_as_expected
# nodestrap asks for the list at most twice a second, for all processes that wait: eight that ask alone would make sixteen requests.
# The times are those in the log of the service. A process that asks alone has waited for 2.5 s.
seldom() { awk '/macs\/ / { last = $1; first = first ? first : last; n++ } END { most = 3 * (1 + 2 * (last - first)); print n, most; exit n > most }' "$tmp/log"; }
unlisted() { local i; machine p5.48xlarge --count $crowd; for ((i = crowd / 2 + 4; i < crowd / 2 + 12; i++)); do echo "404 $(mac_of "$i") 4x list"; done >"$tmp/imds/lag"; }
shared $crowd unlisted
ok "udev-net-manager waits for interfaces that the metadata service does not list yet" went_well
ok "all files are right after interfaces that are listed late" all_as_expected
ok "all waiting processes together ask for the list once a round" seldom
ok "udev-net-manager asks once for the device number of a listed interface" eval '[ "$(grep -c "$(mac_of 7)/device-number" "$tmp/log")" = 1 ]'
shared $crowd lagging $crowd "404 */network-card 3x"
ok "all processes wait for late cards, and all files are right" eval 'went_well && all_as_expected'
ok "late cards cause no new requests for addresses" eval 'n=$(grep -c /local-ipv4s "$tmp/log"); [ "$n" -le $((crowd + 8)) ] || { echo "$n"; false; }'

# ---- slow parts, in parallel with the tests below ----
lone_card() { machine x9.huge --cards 1 --count 3; within 60000; lag "404 */network-card inf"; add ens7 && says "warning" && says "assuming card 0" && says "(card 0, device 2):" && has ens7 RouteMetric=514; }
lone_efa() { machine p5.48xlarge --count 4 --efa-only 2; within 60000; add ens7 && says "is left alone: it has no address" && undecided ens7 && no_file ens7; }
# One after the other these would take a minute and a half.
slow() { machine p5.48xlarge --count $crowd; service_stop; within 60000; mock --imds "$tmp/imds" --fault delay=1; all_at_once $crowd && all_as_expected; }
errors() { machine p5.48xlarge --count 8; lag "503 /latest/meta-data/mac inf"; late ens6 "meta-data/mac 503" && says "HTTP 503"; }
part errors errors
part card lone_card
part efa lone_efa
part slow slow

machine p5.48xlarge --count 2 --ipv6
lag "404 */vpc-ipv6-cidr-blocks 1x" "404 */device-number 1x"
add ens5; sed -i -E 's/("ipv6Usec": *)[0-9]+/\11/' "$root/run/nodestrap/interfaces.json"        # as if nodestrap had asked for it long ago
ok "a process that has to ask for its interface gets late IPv6 values, too" eval 'add ens6 && grep -q "^From=2001:db8:11::a1" "$network/70-eks-ens6.network"'
machine p5.48xlarge --count 4
lag "404 $(mac_of 7) inf"
ok "an interface that is not listed in time is an error" late ens7 "/macs/ "
ok "the message says that the metadata service does not list ens7 yet" eval 'says "(32 EINTERFACE)" && says "ens7: the metadata service does not list it yet" && says "$(mac_of 7)"'
ok "an interface that is not listed in time has no decision" undecided ens7
ok "an interface that is not listed in time has no file" no_file ens7
ok "another interface succeeds while one is not listed" add ens6
lag "404 */network-card inf"
rm "$root/run/nodestrap/interfaces.json"
ok "on a type with several cards a missing card is an error, not card 0" eval 'late ens7 "$(mac_of 7)/network-card" && says "does not list its network card yet" && undecided ens7'
lag "=0 */network-card inf" "=0 */device-number inf"
rm "$root/run/nodestrap/interfaces.json"
ok "a second interface as device 0 on card 0 is an error" eval 'late ens7 "$(mac_of 7)/network-card" && says "which is the primary interface" && undecided ens7'
lag ""
ok "the next try for the interface succeeds" add ens7
machine p5.48xlarge --count 8 --device-0
ok "an interface can be device 0 on any card but card 0" eval 'all_at_once 8 && all_as_expected && has ens6 RouteMetric=612'
ok "on an unknown type a missing card counts as card 0, with a warning" told card
machine x9.huge --cards 4 --count 4
lag "404 $(mac_of 7)/network-card inf"
ok "on an unknown type a missing card is an error if another interface has another card" eval 'add ens6 && late ens7 "$(mac_of 7)/network-card" && undecided ens7'
ok "udev-net-manager leaves an interface without an address alone" told efa
machine p5.48xlarge --count 4 --ipv6
ok "with IPv6 an interface has rules for IPv4 and IPv6" eval 'all_at_once 4 && all_as_expected && grep -q "^From=2001:db8:11::a1" "$network/70-eks-ens6.network" && grep -q "^From=10.11." "$network/70-eks-ens6.network"'

# ---- a service that is slow ----
ok "all processes meet their deadline with one second for each answer" told slow

# ---- garbage about one interface ----
machine p5.48xlarge --count 4
echo banana >"$tmp/imds/latest/meta-data/network/interfaces/macs/$(mac_of 6)/device-number"
lag "404 $(mac_of 7) inf"
ok "a garbled device number is an error for its own interface" eval 'late ens6 "$(mac_of 6)/device-number" && says "$(mac_of 6)/device-number" && says "is not a number"'
ok "the snapshot does not keep a garbled device number" eval '! grep -F device-number "$root/run/nodestrap/interfaces.json"'
ok "the error of another interface does not mention a garbled device number" eval 'late ens7 "/macs/ " && lacks "$(mac_of 6)/device-number of the instance metadata is not a number from 0 to 255; is it" && says "does not list it yet"'

# ---- a service that is down: nothing can succeed ----
machine p5.48xlarge --count 8
within 1500
ok "the metadata service of the test goes down" down
ok "udev-net-manager fails without the metadata service" manager 32 add ens6
ok "the message says that the metadata service gave no usable answer" eval 'says "(32 EINTERFACE)" && says "no usable answer from the instance metadata service" && undecided ens6'
ok "eight processes in parallel all fail without the metadata service" eval '! all_at_once 8 && [ "$(grep -lF "(32 EINTERFACE)" "$tmp"/err.* | wc -l)" = 8 ]'
ok "each of eight processes reports the metadata service, and none reports a lock" eval '! grep -L "no usable answer" "$tmp"/err.* | grep . && ! grep "failed .*[.]lock" "$tmp"/err.*'
machine x9.huge --cards 1 --count 2
within 1500
ok "without the metadata service the message does not mention card 0" eval 'down && manager 32 add ens6 && lacks "card 0"'
machine p5.48xlarge --count 8
within 1500
lag "silent * inf" "silent api/token inf"
ok "a metadata service that is silent is an error" eval 'manager 32 add ens6 && says "no answer in time"'
lag ""; within 120000
ok "a metadata service that only answers HTTP 503 is an error" told errors
returns() { # the service comes back when one process has found it down
        local pid
        down
        all_at_once 8 & pid=$!
        comes eval 'grep -qs "trying again" "$tmp"/err.*'
        lag ""
        wait $pid
}
ok "udev-net-manager waits for a metadata service that comes up" eval 'returns && all_as_expected'
rm "$root/run/nodestrap/deadline-ms"
AWS_EC2_METADATA_DISABLED=true ok "AWS_EC2_METADATA_DISABLED is an error that names the variable" eval 'rm "$root/run/nodestrap/interfaces.json"; manager 32 add ens6 && says AWS_EC2_METADATA_DISABLED'

# ---- interfaces that disappear ----
machine p5.48xlarge --count 4
ok "an interface that does not exist is an error" eval 'unplug ens8; manager 32 add ens8 && says "ens8: no network interface has this name"'
lag "404 $(mac_of 7) inf"
"$nodestrap" udev-net-manager --action add --interface ens7 --root "$root" >"$tmp/out" 2>"$tmp/err" & pid=$!
comes test -s "$root/run/nodestrap/interfaces.json"
unplug ens7
wait $pid; ended=$?
ok "an interface that disappears during the wait is an error" eval '[ $ended = 32 ] && says "ens7: no network interface has this name"'
rm "$root/run/nodestrap/interfaces.json"
plug ens7 "$(mac_of 7)"
"$nodestrap" udev-net-manager --action add --interface ens7 --root "$root" >"$tmp/out" 2>"$tmp/err" & pid=$!
comes test -s "$root/run/nodestrap/interfaces.json"
kill -TERM $pid; wait $pid; ended=$?
ok "SIGTERM ends the wait" eval '[ $ended = 1 ] && says EINTERRUPTED && undecided ens7'

# ---- files of earlier runs and other programs ----
machine p5.48xlarge --count 4
echo '{"interfaces": [' >"$root/run/nodestrap/interfaces.json"
ok "udev-net-manager ignores a damaged snapshot, with a warning" eval 'add ens6 && says "warning" && says "interfaces.json cannot be read"'
ok "udev-net-manager writes a new snapshot in place of a damaged one" eval 'python3 -m json.tool "$root/run/nodestrap/interfaces.json" >"$tmp/out" && : >"$tmp/log" && add ens7 && asked 0'
for garbage in '[]' '{"interfaces": 7, "bootId": 1}' '{"interfaces": {"instanceId": "../..", "primary": 7}, "listedUsec": -1}' $'\xff\xfe'; do
        printf '%s' "$garbage" >"$root/run/nodestrap/interfaces.json"
        ok "udev-net-manager ignores the snapshot $garbage" eval 'add ens7 && has ens7 RouteMetric=713'
done
mkdir -p "$decisions/$id"
echo '{"manager": ' >"$decisions/$id/ens8"
ok "udev-net-manager ignores a damaged decision, with one warning" eval 'add ens8 && says warning && [ "$(grep -cF "$id/ens8" "$tmp/err")" = 1 ] && decided ens8 io.systemd.Network'
printf cni >"$decisions/$id/ens8"; rm "$decisions/by-mac/$id/$(mac_of 8)"
ok "udev-net-manager follows a decision of nodeadm" eval 'add ens8 && says "the CNI manages it" && no_file ens8 && decided ens8 cni'
printf '{"mac":"%s","manager":"cni"}' "$(mac_of 7)" >"$decisions/$id/ens7"; rm "$decisions/by-mac/$id/$(mac_of 7)"
ok "udev-net-manager follows and keeps a decision in the newer form of nodeadm" eval 'add ens7 && no_file ens7 && [ "$(cat "$decisions/$id/ens7")" = "{\"mac\":\"$(mac_of 7)\",\"manager\":\"cni\"}" ]'
if unshare -rm true 2>/dev/null; then
        machine p5.48xlarge --count 4
        mkdir -p "$root/etc"
        ok "udev-net-manager succeeds with a read-only /etc, with a message" unshare -rm bash -c 'mount --bind "$1/etc" "$1/etc" && mount -o remount,bind,ro "$1/etc" &&
                "$2" udev-net-manager --action add --interface ens6 --root "$1" 2>&1 | grep -F "Read-only file system"' - "$root" "$nodestrap"
        ok "udev-net-manager writes the network file with a read-only /etc" has ens6 RouteMetric=613
else ok "a read-only /etc # SKIP no namespaces here" true; fi
for dir in etc run usr/lib; do mkdir -p "$root/$dir/systemd/network/70-ens6.network.d"; echo "# $dir" >"$root/$dir/systemd/network/70-ens6.network.d/eni.conf"; done
echo >"$root/usr/lib/systemd/network/70-ens6.network.d/alias.conf"
ok "the network file gets links to the drop-ins of the image" eval 'add ens6 && [ "$(readlink "$network/70-eks-ens6.network.d/eni.conf")" = /etc/systemd/network/70-ens6.network.d/eni.conf ] &&
        [ "$(readlink "$network/70-eks-ens6.network.d/alias.conf")" = /usr/lib/systemd/network/70-ens6.network.d/alias.conf ]'

# ---- the marker: later interfaces belong to the CNI ----
machine p5.48xlarge --count 4
add ens5 && add ens6
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"
: >"$tmp/log"
ok "an interface that comes after the marker belongs to the CNI" eval 'add ens7 && no_file ens7 && decided ens7 cni'
ok "an interface that comes after the marker costs no metadata request" asked 0
ok "an interface of the CNI stays with the CNI without the marker" eval 'rm "$root/run/nodeadm/init"; add ens7 && no_file ens7 && decided ens7 cni'
touch "$root/run/nodeadm/init"
ok "an interface from before the marker stays with networkd" eval 'rm -r "$network"; add ens6 && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
rm "$root/run/nodestrap/interfaces.json"; : >"$tmp/log"
ok "without a snapshot an interface of the CNI causes no request about ens7 and ens8" eval 'add ens8 && decided ens8 cni && ! grep -E "$(mac_of 7)|$(mac_of 8)" "$tmp/log"'

marker() { mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"; }
reboot() { rm -rf "$root/run/nodeadm" "$root/run/nodestrap" "$network"; mkdir "$root/run/nodestrap"; }

# ---- running interfaces stay as they are ----
machine p5.48xlarge --count 4
ok "networkd gets two interfaces before the marker" eval 'add ens5 && add ens6'
marker; rm -r "$root/etc/eks" "$root/run/nodestrap/early-interfaces"
ok "two interfaces stay with networkd after the marker without their decisions" eval 'add ens5 && add ens6 && has ens5 RouteMetric=512 && has ens6 RouteMetric=613 &&
        decided ens5 io.systemd.Network && decided ens6 io.systemd.Network'
printf '{"interface":"ens5","manager":"cni"}' >"$decisions/by-mac/$id/$(mac_of 5)"; printf cni >"$decisions/$id/ens5"
ok "the primary interface stays with networkd against a decision for the CNI" eval 'add ens5 && has ens5 RouteMetric=512 && decided ens5 io.systemd.Network'
unplug ens6; plug ens6 0e:f4:9a:2b:fe:11
ok "a new interface with the name of a networkd interface belongs to the CNI" eval 'add ens6 && no_file ens6 && says "the CNI manages it; removed configuration files of systemd-networkd: 1"'
machine p5.48xlarge --count 4
marker
ok "on a running node a new package leaves the primary interface alone" eval 'add ens5 && no_file ens5 && [ "$(cat "$decisions/$id/ens5")" = cni ]'
ok "on a running node the primary interface is left alone until the reboot" eval '[ ! -e "$decisions/by-mac/$id/$(mac_of 5)" ] && add ens5 && no_file ens5'
reboot
ok "after the reboot networkd gets the primary interface" eval 'add ens5 && has ens5 RouteMetric=512 && decided ens5 io.systemd.Network'
reboot; printf '{"interface":"ens5","manager":"cni"}' >"$decisions/by-mac/$id/$(mac_of 5)"; printf cni >"$decisions/$id/ens5"
ok "after a reboot networkd gets the primary interface against a decision for the CNI" eval 'add ens5 && has ens5 RouteMetric=512 && decided ens5 io.systemd.Network'
ok "remove deletes the file of an interface that still exists, not the decision" eval 'manager 0 remove ens5 && no_file ens5 && decided ens5 io.systemd.Network'
marker
ok "after the marker the removed primary interface goes back to networkd" eval 'add ens5 && has ens5 RouteMetric=512 && manager 0 remove ens5'
rm -r "$decisions"
ok "a removed primary interface without a decision is left alone" eval 'add ens5 && no_file ens5 && [ "$(cat "$decisions/$id/ens5")" = cni ]'

# ---- the first try before the marker, the next one after it ----
machine p5.48xlarge --count 4
lag "404 $(mac_of 6)/device-number inf"
ok "an interface without a timely device number has no decision" eval 'late ens6 "$(mac_of 6)/device-number" && undecided ens6'
marker; rm "$tmp/imds/lag"
ok "networkd gets an interface whose first try was before the marker" eval 'add ens6 && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
ok "an interface without a try before the marker belongs to the CNI" eval 'add ens7 && no_file ens7 && decided ens7 cni'
ok "after the marker an interface that goes and comes back belongs to the CNI" eval 'unplug ens6 && manager 0 remove ens6 && rm -r "$decisions" && plug ens6 "$(mac_of 6)" && add ens6 && decided ens6 cni'
machine p5.48xlarge --count 4
ok "a dry run leaves no note of an early interface" eval 'add ens6 --dry-run && [ ! -e "$root/run/nodestrap/early-interfaces" ]'
ok "an interface with a new name keeps its note of an early interface" eval 'add ens6 && unplug ens6 && plug ens20 "$(mac_of 6)" && manager 0 remove ens6 && [ -e "$root/run/nodestrap/early-interfaces/$(mac_of 6)" ]'

# ---- names change hands ----
machine p5.48xlarge --count 4
ok "networkd gets two interfaces" eval 'add ens6 && add ens7'
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"
six=$(mac_of 6)
unplug ens6; plug ens20 "$six"
ok "an interface with a new name keeps its decision" eval 'add ens20 && has ens20 "PermanentMACAddress=$six" && has ens20 RouteMetric=613'
ok "the file of the former name is gone" no_file ens6
plug ens6 0e:f4:9a:2b:fe:11
ok "a new interface with the former name gets its own decision" eval 'add ens6 && no_file ens6 && [ "$(cat "$decisions/$id/ens6")" = cni ]'

# ---- remove ----
machine p5.48xlarge --count 4
mkdir -p "$root/etc/systemd/network/70-ens6.network.d"; touch "$root/etc/systemd/network/70-ens6.network.d/x.conf"
ok "the network file of ens6 has a link to its drop-in" eval 'add ens5 && add ens6 && [ -L "$network/70-eks-ens6.network.d/x.conf" ]'
unplug ens6
ok "remove succeeds for an interface that is gone" manager 0 remove ens6
ok "remove deletes the file and the links of the interface" eval 'no_file ens6 && [ ! -e "$network/70-eks-ens6.network.d" ]'
ok "remove keeps the decision of the interface" decided ens6 io.systemd.Network
ok "remove deletes only this interface from the snapshot" eval '! grep -F "$(mac_of 6)" "$root/run/nodestrap/interfaces.json" && grep -qF "$(mac_of 7)" "$root/run/nodestrap/interfaces.json"'
ok "remove keeps the files of other interfaces" has ens5 RouteMetric=512
ok "a second remove succeeds" manager 0 remove ens6
ok "remove succeeds for an interface that never existed" manager 0 remove ens77
ok "remove keeps files and links that nodestrap did not make" eval 'plug ens6 "$(mac_of 6)" && add ens6 && touch "$network/70-eks-ens6.network.d/users.conf" &&
        ln -s /etc/hostname "$network/70-eks-ens6.network.d/hostname" && manager 0 remove ens6 && no_file ens6 &&
        [ "$(ls "$network/70-eks-ens6.network.d")" = "$(printf "hostname\nusers.conf")" ]'
rm -r "$network/70-eks-ens6.network.d"
unplug ens7; rm -rf "$root/etc/eks"
ok "remove deletes an interface without a decision from the snapshot" eval 'manager 0 remove ens7 && ! grep -F "$(mac_of 7)" "$root/run/nodestrap/interfaces.json"'
plug ens7 "$(mac_of 7)"
ok "a removed interface can come back" eval 'add ens6 && has ens6 RouteMetric=613'

mkdir -p "$root/usr/lib/systemd/network/70-ens6.network.d"; mv "$root/etc/systemd/network/70-ens6.network.d/x.conf" "$root/usr/lib/systemd/network/70-ens6.network.d/y.conf"
ok "add deletes the link to a drop-in that is gone" eval 'add ens6 && [ "$(ls "$network/70-eks-ens6.network.d")" = y.conf ]'
marker
ok "an interface that comes after the marker belongs to the CNI again" eval 'add ens7 && decided ens7 cni'
ok "remove keeps the decision for the CNI while the interface exists" eval 'manager 0 remove ens7 && decided ens7 cni'
unplug ens7
ok "remove deletes the decision for the CNI, by MAC and by name, once the interface is gone" eval 'manager 0 remove ens7 && [ ! -e "$decisions/by-mac/$id/$(mac_of 7)" ] && [ ! -e "$decisions/$id/ens7" ]'

macs=$tmp/imds/latest/meta-data/network/interfaces/macs
echo 3 >"$macs/$(mac_of 6)/device-number"
ok "add uses the snapshot for the same interface, without a request" eval ': >"$tmp/log"; add ens6 && asked 0'
echo 99 >"$root/sys/class/net/ens6/ifindex"
ok "add asks again for another interface with the same MAC" eval 'add ens6 && has ens6 RouteMetric=615'

# ---- in parallel ----
machine p5.48xlarge --count 4
many() { local i rc=0 pids=(); for i in 1 2 3 4 5 6 7 8; do "$nodestrap" udev-net-manager --action "${1-add}" --interface ens6 --root "$root" >"$tmp/out.$i" 2>"$tmp/err.$i" & pids+=($!); done
        for i in "${pids[@]}"; do wait "$i" || rc=1; done; [ $rc = 0 ] || { cat "$tmp"/err.*; return 1; }; }
ok "eight events in parallel for one interface all succeed" many
ok "eight events in parallel for one interface leave one file and one decision" eval 'has ens6 RouteMetric=613 && decided ens6 io.systemd.Network && no_rest'
ok "eight remove events in parallel leave no file" eval 'many remove && no_file ens6'
add ens5 && add ens6
(cd "$network" && find . -type f -exec sha256sum {} +) | sort >"$tmp/whole"
whole() { # each file is missing or complete
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
ok "a killed process leaves no incomplete file" killed
# The next process deletes temporary files where networkd and later boots look. Those in /run/nodestrap go with the boot.
ok "the next process after a killed one completes the files and removes temporary files" eval 'add ens5 && add ens6 && [ "$(cd "$network" && find . -type f -exec sha256sum {} + | sort)" = "$(cat "$tmp/whole")" ] && no_rest "$root/run/systemd"'

# ---- other names and options ----
machine p5.48xlarge --count 4
ok "nodeadm-internal udev-net-manager configures an interface" eval '"$internal" udev-net-manager -i ens6 -a add --root "$root" && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
ok "nodeadm-internal exits with 1 if it fails" eval '"$internal" udev-net-manager --action=add --interface=ens60 --root "$root"; [ $? = 1 ]'
"$internal" udev-net-manager -x 2>"$tmp/err"
ok "a usage message of nodeadm-internal names nodeadm-internal" eval 'says "see nodeadm-internal udev-net-manager --help"'
"$internal" 2>"$tmp/err"
ok "nodeadm-internal without a command says that no command is given" eval 'says "no command given; nodeadm-internal --help lists them"'
ok "a message of nodeadm-internal has its exit status 1" eval '"$internal" udev-net-manager -a nix -i ens6 2>"$tmp/err"; [ $? = 1 ] && says "failed (1 EUSAGE)"'
ok "--dry-run shows the plan" eval 'add ens7 --dry-run && grep -q "write-file .*/run/systemd/network/70-eks-ens7.network" "$tmp/out"'
ok "--dry-run changes nothing" eval 'no_file ens7 && undecided ens7'

# ---- the gate OSManagedNoManageENIs ----
machine p5.48xlarge --count 6
add ens5
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init" "$root/run/nodeadm/os-managed-no-manage-enis"
service_stop
gate() { mock --imds "$tmp/imds" --ec2-listen 127.0.0.1:0 "$@"; }
gate --interface "$(mac_of 6),node.k8s.amazonaws.com/no_manage=true" --interface "$(mac_of 7)"
ok "with the gate networkd gets a tagged interface" eval 'add ens6 && has ens6 RouteMetric=613 && decided ens6 io.systemd.Network'
ok "with the gate an untagged interface belongs to the CNI" eval 'add ens7 && no_file ens7 && decided ens7 cni'
: >"$tmp/log"
ok "nodestrap does not ask EC2 again for a decided interface" eval 'add ens6 && add ens7 && sent 0 " ec2 "'
gate --fault ec2:unauthorized
ok "without the EC2 permission the CNI gets the interface, with a warning" eval 'add ens8 && no_file ens8 && says "warning" && says "no_manage"'
ok "without the EC2 permission nodestrap keeps no decision" undecided ens8
mv "$tmp/imds/latest/meta-data/iam" "$tmp/iam"
gate --no-role
ok "without a role the CNI gets the interface, with a warning and no decision" eval 'add ens8 && no_file ens8 && says "warning" && says "instance profile" && undecided ens8'
mv "$tmp/iam" "$tmp/imds/latest/meta-data/iam"
gate
ok "if EC2 is out of reach the CNI gets the interface, without a decision" eval 'AWS_ENDPOINT_URL_EC2=http://127.0.0.1:9 add ens8 && no_file ens8 && says "no usable answer from EC2" && undecided ens8'
gate --fault ec2:notfound
ok "another failure of EC2 is an error without a decision" eval 'manager 32 add ens8 && says "(32 EINTERFACE)" && undecided ens8'

# Many interfaces during the run phase, which may ask EC2 for the node name. All nodes of an account share its rate of EC2 requests.
machine p5.48xlarge --count 6
add ens5
mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init" "$root/run/nodeadm/os-managed-no-manage-enis"
service_stop
gate --fault ec2:delay=0.2 --overlaps "$tmp/overlaps"
ok "six interfaces in parallel all get their decision" eval 'all_at_once 6 && decided ens10 cni'
ok "five interfaces in parallel cost one EC2 request each" sent 5 'DescribeNetworkInterfaces 200'
ok "nodestrap has at most one EC2 request in flight" eval '[ ! -s "$tmp/overlaps" ] || { cat "$tmp/overlaps"; false; }'
exec 6>"$root/run/nodestrap/ec2.lock"
flock 6
rm "$decisions"/* 2>/dev/null; rm -rf "$root/etc/eks/nodeadm/udev-net-manager"
: >"$tmp/log"
add ens6 6>&- & adding=$!
sleep 1
ok "an EC2 request waits for the lock of another process" sent 0 ' ec2 '
exec 6>&-
wait $adding; ok "the EC2 request goes out when the other process releases the lock" eval '[ '$?' = 0 ] && sent 1 " ec2 "'
done_testing
