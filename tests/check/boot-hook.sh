#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `nodestrap boot-hook` without systemd-networkd: a networkctl of our own prints the next list of links at each call. A decision, an
# interface or a signal changes between two calls. There are no pauses in it.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$tmp/no-bus
mkdir "$tmp/bin"
cat >"$tmp/bin/networkctl" <<'END'
#!/bin/bash
# Prints line N of $links, or its last one, at the N-th call; runs the part behind | first.
[ "$*" = "list --json=pretty" ] || exit 2
n=$(($(cat "$calls" 2>/dev/null || echo 0) + 1)); echo $n >"$calls"
line=$(sed -n "${n}p" "$links"); line=${line:-$(tail -n 1 "$links")}
case $line in *'|'*) eval "${line#*|}"; line=${line%%|*};; esac
case $line in nothing) line=;; fails*) echo "Failed to get description" >&2; exit 1;; garbage*) echo '{"Interfaces": 7'; exit;; esac
printf '{"Interfaces": ['; comma=
for word in $line; do printf '%s\n{"Name": "%s", "AdministrativeState": "%s"}' "$comma" "${word%=*}" "${word#*=}"; comma=,; done
printf ']}\n'
END
chmod 755 "$tmp/bin/networkctl"

id=i-0f1e2d3c4b5a69788 mac=0e:f4:9a:2b:6c:11 other=0e:f4:9a:2b:6c:22    # as tests/fixtures/imds-m5 has them
kept=etc/eks/nodeadm/udev-net-manager/$id macs=etc/eks/nodeadm/udev-net-manager/by-mac/$id
interface() { # NAME INDEX MAC [ours]: as the kernel and udev have it
        mkdir -p "$root/sys/class/net/$1" "$root/run/udev/data"; echo "$2" >"$root/sys/class/net/$1/ifindex"; echo "$3" >"$root/sys/class/net/$1/address"
        [ -z "${4-}" ] || printf 'I:1\nE:NODESTRAP_INTERFACE=1\n' >"$root/run/udev/data/n$2"
}
fresh() { # LINKS...: a machine with a primary interface, and what networkctl is going to say
        root=$tmp/root links=$tmp/links calls=$tmp/calls; export root links calls id kept mac other
        rm -rf "$root" "$calls" "$tmp/bin/stop"; printf '%s\n' "$@" >"$links"; mkdir -p "$root/$kept" "$root/run"
        interface lo 1 00:00:00:00:00:00; interface eth0 2 $mac
}
decided() { echo "$2" >"$root/$kept/$1"; }
hook() { PATH=$tmp/bin:$PATH timeout 60 "$nodestrap" boot-hook --root "$root" "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?; }
ends() { [ "$rc" = "$1" ] || { echo "exit $rc"; cat "$tmp/err"; false; }; }
after() { [ "$(cat "$calls")" = "$1" ] || { echo "after $(cat "$calls") calls"; cat "$tmp/err"; false; }; }
lines() { [ "$(wc -l <"$tmp/err")" = "$1" ] || { cat "$tmp/err"; false; }; }

mock --imds "$here/../fixtures/imds-m5"
fresh "eth0=pending lo=pending" "eth0=configuring lo=unmanaged" "eth0=configured lo=pending" "eth0=configured lo=unmanaged"; hook
ok "the hook waits until the primary interface is configured and others are unmanaged" ends 0
ok "the hook ends with the first list of links that is complete" after 4
ok "the hook reports the complete network in one line" eval 'says "Configured: eth0; all other links are unmanaged" && lines 1'
ok "the hook finds the primary interface with three requests" sent 3 ' imds '

ln -s "$nodestrap" "$tmp/nodeadm-internal"
rm "$calls"; program=$nodestrap nodestrap=$tmp/nodeadm-internal; hook; nodestrap=$program
ok "the hook does the same under the name nodeadm-internal" eval 'ends 0 && after 4'
fresh "eth0=configured eth1=pending lo=unmanaged" "eth0=configured eth1=unmanaged lo=unmanaged" "eth0=configured eth1=configured lo=unmanaged"
decided eth1 io.systemd.Network; hook
ok "the hook waits for an interface that nodeadm has decided for networkd" eval 'ends 0 && after 3'
fresh "eth0=configured eth1=configured lo=unmanaged" "eth0=configured eth1=degraded lo=unmanaged" "eth0=configured eth1=unmanaged lo=unmanaged"
decided eth1 cni; hook
ok "the hook waits until an interface of the CNI is unmanaged" eval 'ends 0 && after 3'
fresh "eth0=configured eth1=pending lo=unmanaged" "eth0=configured eth1=unmanaged lo=unmanaged"
interface eth1 3 $other; hook
ok "the hook waits until an interface that udev has not marked is unmanaged" eval 'ends 0 && after 2'

fresh "eth0=configured eth1=unmanaged lo=unmanaged" "eth0=configured eth1=unmanaged lo=unmanaged" \
        'eth0=configured eth1=unmanaged lo=unmanaged|echo io.systemd.Network >"$root/$kept/eth1"' \
        "eth0=configured eth1=configuring lo=unmanaged" "eth0=configured eth1=configured lo=unmanaged"
interface eth1 3 $other ours; hook
ok "the hook waits for an undecided interface and heeds a decision for networkd" eval 'ends 0 && after 5'
fresh "eth0=configured eth1=unmanaged lo=unmanaged" 'eth0=configured eth1=unmanaged lo=unmanaged|echo cni >"$root/$kept/eth1"'
interface eth1 3 $other ours; hook
ok "the hook waits for an undecided interface and heeds a decision for the CNI" eval 'ends 0 && after 2'
fresh "lo=unmanaged" 'eth0=pending lo=unmanaged|mv "$tmp/away" "$root/sys/class/net/eth0"' "eth0=configured lo=unmanaged"
export tmp; mv "$root/sys/class/net/eth0" "$tmp/away"; hook
ok "the hook waits for a primary interface that appears late" eval 'ends 0 && after 3'
fresh fails garbage nothing "eth0=configured lo=unmanaged"; hook
ok "the hook waits for a networkctl that has no answer yet" eval 'ends 0 && after 4'

# ---- messages ----
fresh "eth0=configuring eth1=pending eth2=configured eth3=unmanaged lo=unmanaged"
interface eth1 3 0e:f4:9a:2b:6c:21; interface eth2 4 0e:f4:9a:2b:6c:22; interface eth3 5 0e:f4:9a:2b:6c:23 ours; decided eth1 io.systemd.Network; decided eth2 cni
hook --timeout 5s
ok "the hook exits with 32 at its deadline" ends 32
ok "the message has the primary interface with its state" says "(32 ELINK) at network: eth0 ($mac), the primary interface, is configuring, instead of configured"
ok "the message has an interface of networkd with its state" says "eth1 (0e:f4:9a:2b:6c:21), decided for systemd-networkd, is pending, instead of configured"
ok "the message has an interface of the CNI with its state" says "eth2 (0e:f4:9a:2b:6c:22) is configured, instead of unmanaged"
ok "the message has an undecided interface with its unit" says "eth3 (0e:f4:9a:2b:6c:23) is not ready: its unit has left no decision; see journalctl -u nodestrap-udev-net-manager@eth3"
ok "the message does not have an interface that is as it should be" lacks "lo "
fresh "eth0=configured eth1=unmanaged lo=unmanaged"; interface eth1 3 $other ours; decided eth1 nonsense; hook --timeout 5s
ok "an invalid decision counts as undecided and gives a warning" eval 'ends 32 && says "eth1 ($other) is not ready: its unit" && says "$kept/eth1"'
ok "an invalid decision gives only one warning" eval '[ "$(grep -c warning "$tmp/err")" = 1 ]'
fresh "lo=unmanaged"; rm -r "$root/sys/class/net/eth0"; hook --timeout 5s
ok "the hook fails if the primary interface never appears" eval 'ends 32 && says "the primary interface ($mac) has not appeared"'
fresh fails; hook --timeout 5s
ok "the hook fails if networkctl never lists the links" eval 'ends 32 && says "systemd-networkd lists its links neither"'
fresh "eth0=pending lo=unmanaged" 'eth0=pending lo=unmanaged|kill -TERM $PPID'; hook
ok "SIGTERM ends the hook, and the message has what the hook waited for" eval '[ $rc != 0 ] && [ $rc -lt 124 ] && says "SIGTERM ended the wait" && says "eth0 ($mac), the primary interface, is pending"'

# ---- the metadata service ----
mock --imds "$here/../fixtures/imds-m5" --fault refuse*3
fresh "eth0=configured lo=unmanaged"; hook
ok "the hook retries a metadata service that is out of reach at first" ends 0
mock --imds "$here/../fixtures/imds-m5" --fault refuse
fresh "eth0=configured lo=unmanaged"; hook --timeout 1s
ok "the hook exits with 32 and a reason if the metadata service stays out of reach" eval 'ends 32 && says "(32 ELINK) at network: the primary interface is not known: "'
: >"$tmp/log"; fresh "eth0=configured eth1=unmanaged lo=unmanaged"; interface eth1 3 $other ours
mkdir -p "$root/run/nodestrap" "$root/proc/sys/kernel/random"; cp /proc/sys/kernel/random/boot_id "$root/proc/sys/kernel/random/"
cat >"$root/run/nodestrap/interfaces.json" <<END
{"bootId": "$(cat /proc/sys/kernel/random/boot_id)", "interfaces": {"instanceId": "$id", "primary": "$mac", "ipv6": false,
 "interfaces": [{"mac": "$other", "card": 1, "device": 1, "ipv4s": ["10.0.0.5"], "askedUsec": 1}]}}
END
decided eth1 cni; hook
ok "the hook does not ask the metadata service for answers that udev-net-manager has" eval 'ends 0 && sent 0 " imds "'
rm -r "${root:?}/$kept" "$root/sys/class/net/eth1"; mkdir -p "$root/$macs"
echo '{"interface": "eth7", "manager": "io.systemd.Network"}' >"$root/$macs/$other"; hook --timeout 5s
ok "the hook fails if the kernel lacks an interface of networkd that the instance has" eval 'ends 32 && says "eth7 ($other), decided for systemd-networkd, has not appeared"'
echo "eth0=configured eth1=pending lo=unmanaged" >"$links"; interface eth1 3 $other ours; hook --timeout 5s
ok "the hook knows an interface of networkd by its MAC address if its name differs" eval 'ends 32 && says "eth1 ($other), decided for systemd-networkd, is pending, instead of configured"'
sed -i "s/$other/0e:f4:9a:2b:6c:99/" "$root/run/nodestrap/interfaces.json"; rm -r "$root/sys/class/net/eth1"
echo "eth0=configured lo=unmanaged" >"$links"; hook
ok "the hook does not wait for an interface that was detached" ends 0
done_testing
