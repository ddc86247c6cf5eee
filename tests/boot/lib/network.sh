# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # bad is guest.sh's
# Sourced behind guest.sh by tests of network interfaces (tree: network). systemd-networkd is real, tests/tools/veths.py makes interfaces
# and their VPC, tests/fakes/interfaces.py the metadata. One boot plays one instance after another.
TABLE=/vmtest/table VPC=/vmtest/vpc NETWORKS=/run/systemd/network DECISIONS=/etc/eks/nodeadm/udev-net-manager REQUESTS=/vmtest/requests
INSTANCE=$(cat imds/latest/meta-data/instance-id)
: "${MANAGER:=nodestrap udev-net-manager}" "${HOOK:=nodestrap boot-hook}"

veths() { local command=$1; shift; python3 veths.py "$command" $TABLE "$@"; }
names() { veths names "$@"; }
count_of_listed() { wc -l <$TABLE; }

# ---- instances ----

# /run and the state of the kernel are gone: the interfaces go with their other ends.
machine_stops() {
        local f p
        systemctl stop systemd-networkd.socket systemd-networkd vpc
        ip netns delete vpc
        for f in -4 -6; do for p in 512 1536 32765; do while ip $f rule delete priority $p; do :; done; done; done
        rm -rf $VPC/ready $NETWORKS /run/nodestrap /run/nodeadm
        systemctl reset-failed systemd-networkd
} 2>/dev/null
# instance_new OPTION… (interfaces.py's) : all that was there is taken away. The interfaces are not there yet.
instance_new() {
        local i mac
        machine_stops
        rm -rf $VPC $DECISIONS imds/lag /etc/systemd/network/* /usr/lib/systemd/network/70-eth*
        python3 interfaces.py /vmtest/imds "$@" >$TABLE || return
        mkdir -p $VPC/hold $NETWORKS; : >$VPC/seen; : >$REQUESTS
        echo 1 | tee /proc/sys/net/ipv4/conf/{all,default}/rp_filter >/dev/null     # strict, so that an interface that needs it loose shows
        [ ! -d /usr/lib/nodestrap/systemd ] || cp -rT /usr/lib/nodestrap/systemd /run/systemd
        while read -r i mac _; do match_of "eth$i" "$mac"; done <$TABLE
}
# In a container an interface has no permanent MAC address, by which .network files match. So they match by its present one.
match_of() { # NAME MAC
        local d=/etc/systemd/network/70-eks-$1.network.d; mkdir -p "$d"
        printf '[Match]\nPermanentMACAddress=\nMACAddress=%s\n' "$2" >"$d/veth.conf"
}
# links [INDEX…] : these interfaces come, all without INDEX
links() {
        veths links "$@" || return
        systemctl is-active -q vpc || systemd-run -q --collect --unit=vpc python3 /vmtest/veths.py serve $TABLE $VPC || return
        until [ -e $VPC/ready ]; do systemctl is-active -q vpc && sleep 0.02 || return; done
}
# The interfaces come, all or INDEX…, and udev reports each. Usually networkd runs by then, with the file of the image for all of them;
# with FIRST=udev it starts afterwards.
instance_up() {
        links "$@" || return
        [ "${FIRST-}" = udev ] || systemctl start systemd-networkd
        # shellcheck disable=SC2046 # names
        add $(names "$@") && systemctl start systemd-networkd
}

# ---- what is tested ----

# add NAME… : all at once, as udev does it
add() {
        local name r=0; declare -A pids
        for name; do $MANAGER --action add --interface "$name" 2>"out/add-$name" & pids[$name]=$!; done
        for name; do wait "${pids[$name]}" || { r=$?; echo "$name: exit $r"; cat "out/add-$name"; }; done
        return $r
}
remove() { $MANAGER --action remove --interface "$1" 2>&1; }
boot_hook() { $HOOK >out/boot-hook 2>&1; local r=$?; cat out/boot-hook; return $r; }
# The interfaces whose routes are compared: the boot hook may have restarted networkd, see check_restart.
routed() { if [ $# = 0 ] && grep -q 'restarting it' out/boot-hook; then seq 1 $(($(count_of_listed) - 1)); else printf '%s\n' "$@"; fi; }

# ---- what must be so ----

state() { networkctl list --no-pager --no-legend "$1" | awk '{ print $NF }'; }
states() { local name; for name in "${@:2}"; do is "$name $(state "$name")" "$name $1" || return; done; }       # states STATE NAME…
comes_to() { eventually states "$2" "$1"; }      # comes_to NAME STATE
decided() { grep -qF -- "$2" "$DECISIONS/$INSTANCE/$1" || { head -50 "$DECISIONS/$INSTANCE"/*; return 1; }; }        # decided NAME MANAGER
requests_at_most() {
        [ "$(wc -l <$REQUESTS)" -le "$1" ] && return
        echo "$(wc -l <$REQUESTS) requests, want at most $1"; cut -d' ' -f2- $REQUESTS | sort | uniq -c | sort -rn | head -20; return 1
}
cursor() { journalctl -b -n 0 --show-cursor --no-pager | sed -n 's/^-- cursor: //p'; }
network_stamp() { find $NETWORKS $DECISIONS ! -type d -printf '%p %i %T@ %s %l\n' | sort; }
log_since() { journalctl --sync; journalctl -b -u systemd-networkd -o cat --no-pager --after-cursor="$1"; }

# check_interfaces WHOSE [INDEX…] : the interfaces of networkd; without INDEX all that are there
check_interfaces() {
        local whose=$1; shift
        try "$whose: the boot hook succeeds" boot_hook
        # shellcheck disable=SC2046 # names
        try "$whose: networkd has configured the interfaces" states configured $(names "$@")
        try "$whose: the interfaces are up, with MTU and addresses" veths check links "$@"
        # shellcheck disable=SC2046 # indices
        try "$whose: routes are as computed" veths check routes $(routed "$@")
        try "$whose: rules are as computed, none for the primary interface" veths check rules "$@"
        try "$whose: the reverse path filter is loose on secondary interfaces" veths check filters "$@"
        try "$whose: each address answers, and its traffic leaves through its interface" veths traffic $VPC "$@"
}
# Requests of the metadata service: at most 5, and 3 for each interface that it lists; 2 more each with IPv6.
check_requests() { try "$1: the metadata service gets no more requests than allowed: $(wc -l <$REQUESTS)" requests_at_most $(($2 * $(count_of_listed) + 5)); }

# check_instance N OPTION… : N interfaces come up at once
check_instance() {
        local n=$1 each=3; shift
        [[ " $* " != *" --ipv6"* ]] || each=5
        instance_new --count "$n" "$@"
        try "$n interfaces: udev-net-manager adds all" instance_up
        check_requests "$n interfaces" $each
        check_interfaces "$n interfaces"
        try "$n interfaces: the decision for the last one is kept" decided eth$((n - 1)) io.systemd.Network
}
# A second event for each: no file is written, no interface configured again. Networkd may still carry out
# an earlier request at the first event, so a later event counts.
quiet_again() {
        local since; since=$(cursor)
        # shellcheck disable=SC2046 # names
        add $(names) && is "$(log_since "$since" | grep -iE 'reconfigur|eth[0-9]')" ''
}
check_again() {
        local stamp; stamp=$(network_stamp)
        try "$1: networkd does nothing if the interfaces are added again" eventually quiet_again
        try "$1: no file is written if the interfaces are added again" diff <(echo "$stamp") <(network_stamp)
}
# networkd starts again. The routes of the primary interface are not compared: systemd 252 leaves one of them without its metric.
check_restart() { # WHOSE LAST
        local i others; mapfile -t others < <(seq 1 "$2")
        systemctl restart systemd-networkd; for i in 0 "${others[@]}"; do comes_to "eth$i" configured; done
        try "$1: after a restart of networkd routes are as computed" veths check routes "${others[@]}"
        try "$1: after a restart of networkd rules are as computed" veths check rules
        try "$1: after a restart of networkd traffic leaves through the right interfaces" veths traffic $VPC
}
# EFA-only entries, which have no interface, disturb nothing.
check_efa_only() {
        instance_new --cards 4 --count 8 --efa-only 4-7
        try "beside EFA-only entries: udev-net-manager adds all interfaces" instance_up
        check_interfaces "beside EFA-only entries"
}

check_late_metadata() {
        instance_new --cards 8 --count 8
        # one is not listed, the others are on card 0 as device 0, then on no card, then where they are
        printf '404 %s 1.5 list\n=0 */device-number 1x\n=0 */network-card 1x\n404 */network-card 2x\n' "$(awk '$1 == 5 { print $2 }' $TABLE)" >imds/lag
        try "late metadata: udev-net-manager adds all interfaces" instance_up
        check_interfaces "late metadata"
        # nodestrap asks every 0.5 s for what is not complete
        try "late metadata: the metadata service gets no more requests than allowed: $(wc -l <$REQUESTS)" requests_at_most $((5 * 8 * 3 + 10))
}
check_late_primary() {
        local hook
        instance_new --cards 2 --count 2
        : >$VPC/hold/eth0
        try "udev-net-manager adds a primary interface without an address" instance_up
        comes_to eth1 configured
        $HOOK >out/late-hook 2>&1 & hook=$!
        try "a primary interface without an address is not configured" comes_to eth0 configuring
        try "the boot hook waits for the primary interface" kill -0 $hook
        rm $VPC/hold/eth0
        wait $hook
        try "the boot hook succeeds when the primary interface has an address" is $? 0
        check_interfaces "a late primary interface"
}
check_only_ipv6() {
        instance_new --cards 2 --count 2 --ipv6-only
        try "IPv6 alone: udev-net-manager adds both interfaces" instance_up
        check_interfaces "IPv6 alone"
}

# As a CNI does it, with its numbers: rules of pods, a table for the interface, routes to pods, one behind an interface of networkd.
cni_sets() { # NAME ADDRESS
        ip address add "$2/32" dev "$1" && ip link set "$1" up mtu 8951 && ip route add 10.11.0.1 dev "$1" scope link table 2 && ip route add default via 10.11.0.1 dev "$1" onlink table 2 &&
                ip rule add from "$2" priority 1536 table 2 && ip rule add to "$2" priority 512 table main && ip route add 10.11.99.7/32 dev "$1" scope link &&
                ip route add 10.11.99.8/32 dev eth0 scope link && cni_has | grep '^10.11.99.8 dev eth0'
}
cni_has() { ip -o -4 address show dev eth2 | awk '{ print $2, $4 }'; ip -o link show eth2 | grep -o 'mtu [0-9]*'; ip route show table 2; ip rule | grep -E '^(512|1536):'; ip route show root 10.11.99.0/24; }
check_cni() {
        local had
        instance_new --cards 3 --count 3 --prefixes 1 --addresses 2
        try "udev-net-manager adds two interfaces that come with the instance" instance_up 0 1
        : >$REQUESTS; mkdir -p /run/nodeadm; : >/run/nodeadm/init       # the run phase has begun
        links 2
        try "udev-net-manager adds an interface that the CNI attaches" add eth2
        try "udev-net-manager decides that the new interface belongs to the CNI" decided eth2 cni
        try "udev-net-manager sends no request for the interface of the CNI" requests_at_most 0
        try "the CNI sets up its interface" cni_sets eth2 10.11.0.20
        had=$(cni_has)
        try "the interface of the CNI is unmanaged" states unmanaged eth2
        try "the boot hook succeeds beside an interface of the CNI" boot_hook
        networkctl reload
        try "after a reload the routes, rules and addresses of the CNI are there" is "$(cni_has)" "$had"
        systemctl restart systemd-networkd; comes_to eth0 configured; comes_to eth1 configured
        try "after a restart of networkd the routes, rules and addresses of the CNI are there" is "$(cni_has)" "$had"
        try "after a restart of networkd the interface of the CNI is unmanaged" states unmanaged eth2
        try "after a restart of networkd the other interfaces are configured" states configured eth0 eth1
        try "after a restart of networkd the other interfaces have routes as computed" veths check routes 1
        try "after a restart of networkd traffic of the other interfaces leaves through the right ones" veths traffic $VPC 0 1

        machine_stops
        try "after a reboot: udev-net-manager adds all interfaces" instance_up
        try "after a reboot: the interface of the CNI is unmanaged" comes_to eth2 unmanaged
        try "after a reboot: the interface of the CNI has no address and no route" is "$(ip -o address show dev eth2 scope global)$(ip -4 route show table all dev eth2 type unicast)" ''
        check_interfaces "after a reboot" 0 1
}
alias_is_there() { ip -o address show dev eth1 | grep ' 10.11.0.99/32 ' || { ip address show dev eth1; return 1; }; }
check_drop_ins() {
        instance_new --cards 2 --count 2
        mkdir -p /usr/lib/systemd/network/70-eth1.network.d
        printf '[Network]\nAddress=10.11.0.99/32\n' >/usr/lib/systemd/network/70-eth1.network.d/alias.conf
        try "settings of the image: udev-net-manager adds both interfaces" instance_up
        try "networkd uses an address in a drop-in of the image" eventually alias_is_there
        check_interfaces "settings of the image"
}
has_default() { local routes; routes=$(ip route show table "$2"); grep "^default.* dev $1 " <<<"$routes" || { echo "$routes"; return 1; }; }     # has_default NAME TABLE
check_renamed() {
        local mac table; read -r mac table < <(awk '$1 == 1 { print $2, 10000 + 100 * $3 + $4 }' $TABLE)
        ip link set eth1 down; ip link set eth1 name ens9; match_of ens9 "$mac"
        mkdir -p /run/nodeadm; : >/run/nodeadm/init
        try "udev-net-manager adds a renamed interface" add ens9
        try "a renamed interface keeps its decision" decided ens9 io.systemd.Network
        try "a renamed interface has a .network file of its new name only" is "$(cd $NETWORKS && ls -d 70-eks-e*.network)" "$(printf '70-eks-%s.network\n' ens9 eth0)"
        try "networkd configures a renamed interface" eventually has_default ens9 "$table"
}
check_removed() { # NAME
        ip link delete "$1"
        try "udev-net-manager removes $1, which is gone" remove "$1"
        try "no file of $1 is left" is "$(find $NETWORKS -name "*eks-$1*")" ''
        try "no rule of an interface is left" is "$(ip rule | grep -c '^32765:')" 0
        try "the decision for $1 stays" decided "$1" io.systemd.Network
        try "a second removal of $1 succeeds" remove "$1"
}
