# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced behind guest.sh by tests of the boot hook: the real systemd-networkd, veths with both ends in this network, and a DHCP server. That
# server ignores the first request.
networks=/run/systemd/network id=$(cat imds/latest/meta-data/instance-id) mac=$(cat imds/latest/meta-data/mac) second=0a:00:00:00:00:01
decisions=/etc/eks/nodeadm/udev-net-manager/$id macs=/etc/eks/nodeadm/udev-net-manager/by-mac/$id

veth() { ip link add "eth$1" address "$2" type veth peer name "p$1" && ip link set "p$1" "${3:-up}"; }        # veth INDEX MAC [down]: without a carrier
network() { mkdir -p $networks; printf '[Match]\nName=%s\n[Network]\nLinkLocalAddressing=no\n%s\n' "$1" "$2" >"$networks/70-eks-$1.network"; }    # network NAME LINE
decide() { mkdir -p "$decisions"; echo "$2" >"$decisions/$1"; }
hook() { nodestrap boot-hook "$@" 2>out/hook; is $? 0 || { cat out/hook; return 1; }; }
# At its deadline the hook says what is missing. On a busy machine it may not have looked within two seconds, so longer deadlines follow.
hook_fails() { # SENTENCE
        local span
        for span in 2s 20s 2m; do
                nodestrap boot-hook --timeout $span 2>out/hook; is $? 32 || break
                grep -F -- "$1" out/hook && return
        done
        cat out/hook; return 1
}
hooks=0                 # each hook has its own unit, since systemd may still hold the unit of an earlier one
hook_begins() { hooks=$((hooks + 1)); rm -f /run/hook; systemd-run -q --unit=hook$hooks --collect -p StandardError=file:/vmtest/out/hook -p Type=oneshot --no-block -p ExecStopPost='/bin/sh -c "echo $$EXIT_STATUS >/run/hook"' nodestrap boot-hook; }
hook_is_there() { busctl list --no-legend | grep -F " nodestrap "; }
hook_is_on_the_bus() { eventually hook_is_there >/dev/null; }
hook_ended() { eventually test -s /run/hook; is "$(cat /run/hook)" 0 || { cat out/hook; return 1; }; }
state() { networkctl list --no-pager --no-legend "$1" | awk '{ print $NF }'; }
states() { is "$(for name in eth0 eth1 eth2; do state $name; done | xargs)" "$1"; }
# The questions that networkd gets on the bus from now on.
questions_begin() { rm -f out/questions out/monitor; busctl monitor --match "type='method_call',interface='org.freedesktop.network1.Manager',member='Describe'" >out/questions 2>out/monitor & monitor=$!; eventually grep -q Monitoring out/monitor; }
asked() { local n; n=$(grep -c Member=Describe out/questions); [ "$n" -ge "$1" ] || { echo "asked $n times"; return 1; }; }
has_address() { ip -4 -o address show "$1" | grep -F " $2/" || { ip address show "$1"; return 1; }; }
no_bus() { systemctl stop dbus.socket dbus && rm -f /run/dbus/system_bus_socket; }
reload() { /vmtest/networkd-tool reload 2m; }
id_of_networkd() { property systemd-networkd InvocationID; }
# Answers DHCP requests on an interface with one address, from the second request on.
dhcp() { # INTERFACE ADDRESS
        cat >dhcp.py <<'END'
import socket, sys
name, address = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
s.bind(('', 67))
server, mask, questions = socket.inet_aton('10.9.0.1'), socket.inet_aton('255.255.255.0'), 0
print('ready', flush=True)
while True:
    q = s.recv(2048)
    options, i = {}, 240
    while i < len(q) and q[i] != 255:
        if q[i] == 0:
            i += 1
            continue
        options[q[i]] = q[i + 2:i + 2 + q[i + 1]]
        i += 2 + q[i + 1]
    kind = options[53][0]
    questions += 1
    print('question', kind, flush=True)
    if questions == 1 or kind not in (1, 3):
        continue
    answer = bytes([2, 1, 6, 0]) + q[4:8] + bytes(4) + bytes(4) + socket.inet_aton(address) + server + bytes(4) + q[28:44] + bytes(192)
    answer += b'\x63\x82\x53\x63' + bytes([53, 1, 2 if kind == 1 else 5]) + b'\x36\x04' + server + b'\x33\x04\x00\x00\x0e\x10' + b'\x01\x04' + mask + b'\xff'
    s.sendto(answer, ('255.255.255.255', 68))
END
        ip address add 10.9.0.1/24 dev "$1"
        python3 dhcp.py "$1" "$2" >out/dhcp 2>&1 & dhcp_pid=$!
        eventually grep -q ready out/dhcp
}
snapshot() { # MAC : of an interface that the metadata service lists beside the primary one
        mkdir -p /run/nodestrap
        printf '{"bootId": "%s", "interfaces": {"instanceId": "%s", "primary": "%s", "ipv6": false, "interfaces": [{"mac": "%s"}]}}\n' \
                "$(cat /proc/sys/kernel/random/boot_id)" "$id" "$mac" "$1" >/run/nodestrap/interfaces.json
}

# A fake networkd, which reports the links of the file "first" and, after a restart, those of "second".
play_networkd() {
        local d=/run/systemd/system/systemd-networkd.service.d; mkdir -p $d; systemctl stop systemd-networkd.socket systemd-networkd
        printf '[Service]\nType=simple\nExecStart=\nExecStart=/vmtest/networkd-tool serve /vmtest/said\nExecStopPost=+/bin/cp /vmtest/second /vmtest/said\n' >$d/played.conf
        systemctl daemon-reload; cp first said; systemctl start systemd-networkd && eventually describe >/dev/null
}
describe() { busctl --json=short call org.freedesktop.network1 /org/freedesktop/network1 org.freedesktop.network1.Manager Describe; }
# As systemd 252 does after a reload that came between a lease and its address.
check_stuck() {
        describe | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0])' >well; sed 's/"ConfigState":"configured"/"ConfigState":"requesting,removing"/g' well >stuck
        cp stuck first; cp well second; play_networkd
        try "the hook succeeds if networkd is stuck" hook
        try "the hook warns once that it restarts networkd" is "$(grep -c 'warning: .* restarting it' out/hook)/$(wc -l <out/hook)" 1/2
        try "networkd is not stuck after the restart" is "$(describe | grep -c requesting,removing)" 0
        cp stuck second; play_networkd
        try "the hook succeeds with a networkd that stays stuck, if all else is well" hook
        try "the hook restarts a networkd that stays stuck only once" is "$(grep -c 'restarting it' out/hook)/$(wc -l <out/hook)" 1/2
        python3 -c 'import json, sys; d = json.load(sys.stdin); ours = [i for i in d["Interfaces"] if "70-eks-" in i.get("NetworkFile", "")]
for i in ours if sys.argv[1] == "ours" else [i for i in d["Interfaces"] if i not in ours]: i["Addresses"] = [{"ConfigSource": "DHCPv6", "Address": [32]}]
print(json.dumps(d))' ours <well >first
        cp well second; play_networkd
        try "the hook succeeds after it reconfigures links without a router" hook
        try "the hook warns of each of two links that it reconfigures" is "$(grep -c 'warning: .* reconfiguring this interface' out/hook)/$(wc -l <out/hook)" 2/3
        try "the hook with a timeout of 2 s accepts links without a router" hook --timeout 2s
        try "the hook with a timeout of 2 s reconfigures nothing" is "$(wc -l <out/hook)" 1
        try "the hook with a timeout of 2 s does not restart networkd" is "$(describe | grep -c DHCPv6)" 1
        rm /run/systemd/system/systemd-networkd.service.d/played.conf; systemctl stop systemd-networkd; systemctl daemon-reload; systemctl reset-failed systemd-networkd; systemctl start systemd-networkd
        try "the real networkd configures both interfaces again" eventually states "configured configured unmanaged"
}

check_hook() {
        veth 0 "$mac"; veth 1 $second; veth 2 0a:00:00:00:00:02
        network eth0 Address=10.8.0.5/24; network eth1 DHCP=ipv4
        decide eth1 io.systemd.Network; decide eth2 cni
        try "a reload succeeds if networkd does not run" reload
        try "the reload does not start networkd" no active systemd-networkd
        try "the hook fails if networkd does not run" hook_fails "systemd-networkd lists its links neither"
        try "the hook does not start networkd" no active systemd-networkd
        dhcp p1 10.9.0.5; systemctl start systemd-networkd
        try "the hook waits for an interface whose DHCP server answers late" hook
        try "networkd sends a second DHCP request" eval '[ "$(grep -c "question 1" out/dhcp)" -ge 2 ]'
        try "the interface has the address from DHCP" has_address eth1 10.9.0.5
        try "eth0 and eth1 are configured, and eth2 is unmanaged" states "configured configured unmanaged"
        try "the hook reports the complete network in one line" is "$(grep -c 'The network is ready after .* Configured: eth0, eth1; all other links are unmanaged' out/hook)/$(wc -l <out/hook)" 1/1

        # networkd stops and starts while the hook waits
        kill $dhcp_pid; network eth1 Address=10.9.0.6/24; ip link set p1 down
        try "a reload succeeds after a file has changed" reload
        hook_begins; hook_is_on_the_bus; systemctl restart systemd-networkd; ip link set p1 up
        try "the hook waits for a networkd that restarts" hook_ended
        try "networkd has configured its links when the hook ends" states "configured configured unmanaged"
        try "networkd has read the changed file" has_address eth1 10.9.0.6
        questions_begin; systemctl kill -s STOP systemd-networkd; hook_begins
        try "the hook asks again if networkd does not answer" eventually asked 2
        try "the hook does not end while networkd does not answer" no test -e /run/hook
        systemctl kill -s CONT systemd-networkd; kill $monitor
        try "the hook ends when networkd answers" hook_ended

        # links that are not as they should be
        network eth2 Address=10.10.0.5/24; reload; eventually states "configured configured configured" >/dev/null
        try "the hook fails if networkd manages an interface of the CNI" hook_fails "eth2 (0a:00:00:00:00:02) is configured, routable by /run/systemd/network/70-eks-eth2.network, instead of unmanaged"
        rm $networks/70-eks-eth2.network; reload
        ip link delete eth1; veth 1 $second down; try "the hook fails if an interface has no carrier" hook_fails "eth1 ($second), decided for systemd-networkd, is configuring, no-carrier by /run/systemd/network/70-eks-eth1.network, instead of configured"
        # networkd answers before it has read that the interface went and another came
        ip link set p1 up; try "eth1 is configured again" eventually states "configured configured unmanaged"
        questions_begin; systemctl kill -s STOP systemd-networkd; ip link delete eth1; veth 1 $second down; hook_begins
        try "the hook asks while networkd is stopped" eventually asked 1
        systemctl kill -s CONT systemd-networkd; kill $monitor
        try "networkd configures the interface that came" eventually states "configured configuring unmanaged"
        try "the hook does not take an interface that went for the one that came" no test -e /run/hook
        ip link set p1 up
        try "the hook ends when the interface that came is configured" hook_ended
        ip link delete eth1; snapshot $second; mkdir -p "$macs"; echo '{"interface": "eth1", "manager": "io.systemd.Network"}' >"$macs/$second"
        try "the hook fails if an interface never appears" hook_fails "(32 ELINK) at network: eth1 ($second), decided for systemd-networkd, has not appeared"
        hook_begins; hook_is_on_the_bus; veth 1 $second
        try "the hook waits for an interface that appears late" hook_ended
        try "networkd configures an interface that appears late" states "configured configured unmanaged"

        check_stuck

        # early in a boot, before the bus is there
        no_bus; systemctl restart systemd-networkd
        try "the hook knows the links without a bus" hook
        ip link delete eth1; veth 1 $second down
        try "the hook without a bus names a link that is not ready" hook_fails "eth1 ($second), decided for systemd-networkd, is configuring, no-carrier by /run/systemd/network/70-eks-eth1.network, instead of configured"
        network eth1 Address=10.9.0.7/24
        local before; before=$(id_of_networkd)
        try "a reload succeeds without a bus" reload
        if [ "$1" = restarted ]; then try "the reload without a bus restarts networkd" no is "$(id_of_networkd)" "$before"; else try "the reload without a bus does not restart networkd" is "$(id_of_networkd)" "$before"; fi
        try "networkd is active after the reload without a bus" active systemd-networkd
        ip link set p1 up
        try "the hook succeeds once the link has a carrier" hook
        try "eth1 has the address of the new file" has_address eth1 10.9.0.7
}

# In a boot where sysinit.target and the bus wait for cloud-init, which waits for the configuration phase (tree: hook_early).
early_links() { veth 0 "$mac"; veth 1 $second; network eth0 Address=10.8.0.5/24; decide eth1 io.systemd.Network; }
early_second() { network eth1 Address=10.9.0.5/24; reload; }

check_hook_early() {
        local ended; ended=$(property nodestrap-boot-hook ExecMainExitTimestampMonotonic)
        try "the boot hook succeeds" is "$(property nodestrap-boot-hook Result) $(property nodestrap-boot-hook ExecMainStatus)" "success 0"
        try "the unit that adds the second interface succeeds" is "$(property early-second Result) $(property early-second ExecMainStatus)" "success 0"
        try "the boot hook reports both interfaces as configured" in_journal 'The network is ready after .* Configured: eth0, eth1; all other links are unmanaged'
        try "the boot hook ends before the bus is there" before "$ended" "$(property dbus.socket ActiveEnterTimestampMonotonic)"
        try "the boot hook ends before the configuration phase begins" before "$ended" "$(property nodestrap-config ExecMainStartTimestampMonotonic)"
        try "no ordering cycle was broken" no_cycle
}
