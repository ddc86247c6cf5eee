#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# udev-net-manager from outside: a metadata service that lags, garbles and fails, trees with many interfaces, and a process for each of them,
# all at once. What systemd-networkd makes of the files is for tests/boot and tests/vm.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp, here and count are its; what eval gets is expanded there
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
serve() { # the rules of a lag, imds.py's, in lines on stdin where the first argument says so
        service_stop
        : >"$tmp/log"
        exec 9< <(IMDS_LOG=$tmp/log exec python3 "$here/../tools/imds.py" serve 127.0.0.1 "${port:-0}" "$tmp/imds")
        service_pid=$!
        read -r _ served <&9 || { echo "Bail out! the mock does not start"; exit 1; }
        exec 9<&-
        export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:$served
}
lag() { printf '%s\n' "$@" >"$tmp/imds/lag"; }
within() { echo "$1" >"$root/run/nodestrap/deadline-ms"; }      # for the command's own deadline of half a minute
mac_of() { awk -v i="$(($1 - 5))" '$1 == i { print $2 }' "$tmp/interfaces"; }
manager() { # STATUS ACTION INTERFACE [ARGUMENT...]
        local status=$1 action=$2 interface=$3 rc
        shift 3
        "$nodestrap" udev-net-manager --action "$action" --interface "$interface" --root "$root" "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?
        [ $rc = "$status" ] || { echo "exit $rc, not $status"; cat "$tmp/out" "$tmp/err" "$tmp/log"; return 1; }
}
add() { manager 0 add "$@"; }
all_at_once() { # NUMBER
        local i rc=0 pids=()
        for ((i = 5; i < 5 + $1; i++)); do
                "$nodestrap" udev-net-manager --action add --interface "ens$i" --root "$root" >"$tmp/out.$i" 2>"$tmp/err.$i" & pids+=($!)
        done
        for i in "${pids[@]}"; do wait "$i" || rc=1; done
        [ $rc = 0 ] || { cat "$tmp"/err.*; return 1; }
}
decided() { # NAME WORD
        local n=${1#ens}
        [ "$(cat "$decisions/$id/$1")" = "$2" ] && grep -qF "\"$2\"" "$decisions/by-mac/$id/$(mac_of "$n")" ||
                { find "$decisions" -type f -exec grep -H . {} +; false; }
}
undecided() { [ ! -e "$decisions/$id/$1" ] && [ ! -e "$decisions/by-mac/$id/$(mac_of "${1#ens}")" ]; }
has() { grep -qxF -- "$2" "$network/70-eks-$1.network" || { cat "$network/70-eks-$1.network"; false; }; }
no_file() { [ ! -e "$network/70-eks-$1.network" ] || { cat "$network/70-eks-$1.network"; false; }; }
asked() { local n; n=$(grep -c . "$tmp/log"); [ "$n" -le "$1" ] || { echo "$n requests"; cat "$tmp/log"; false; }; }
no_rest() { [ -z "$(find "$root/run" "$root/etc" -name '.*.tmp' 2>/dev/null)" ] || { find "$root" -name '.*.tmp'; false; }; }
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
for n in 1 2 8 32; do
        type=p5.48xlarge; [ $n != 1 ] || type=m5.large
        machine $type --count $n
        ok "$n at once" all_at_once $n
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
ok "a reboot keeps the decisions" eval 'rm -r "$root/run"; mkdir -p "$root/run/nodeadm"; touch "$root/run/nodeadm/init"; all_at_once 32 && all_as_expected'
done_testing
