#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A VPC around the network interfaces of a guest, from the table of them that tests/fakes/interfaces.py prints.

usage: veths.py links TABLE [INDEX...]    makes these interfaces here (all that have an address), eth0 and so on, their other ends in the
                                        network namespace "vpc"
       veths.py serve TABLE DIR           serves them in that namespace until it is killed: DHCPv4, router advertisements, DHCPv6. What
                                        is in DIR/hold by its name gets no answer; DIR/seen gets a line for each echo request:
                                        the interface of the guest that it came from, source, destination. DIR/ready is there when it does
       veths.py names TABLE [INDEX...]          their names
       veths.py check TABLE WHAT [INDEX...]       compares the kernel with what must be so (of all that are here, without INDEX): routes,
                                        rules, links, filters
       veths.py traffic TABLE DIR [INDEX...]      an echo request from each address to a host far away, to a neighbour in the subnet and to one
                                        in each other subnet: is it answered, and by which interface did it leave?

An interface is a veth pair of its own, as an ENI is: nobody else hears its broadcasts, and what is sent to an address goes to the
interface that has it. Behind all of them are the routers of the subnets, a neighbour in each of them and one host far away.
"""
import ctypes
import errno
import ipaddress
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time

NETWORKD = 'org.freedesktop.network1'
NAMESPACE = 'vpc'
FAR = {4: '198.51.100.1', 6: '2001:db8:ffff::1'}
MTU, PRIORITY, MAIN = 9001, 32765, 254


# ---- the table ----

class Interface:
    def __init__(self, line):
        index, self.mac, card, device, subnet, v4, v6, prefixes = line.split()
        self.index, self.name, self.end = int(index), 'eth' + index, 'p-eth' + index
        self.primary = self.index == 0
        listed = [ipaddress.ip_interface(a) for text in (v4, v6) for a in text.split(',') if a != '-']
        self.addresses = {f: [a.ip for a in listed if a.version == f] for f in (4, 6)}
        listed = [ipaddress.ip_network(p) for p in prefixes.split(',') if p != '-']
        self.prefixes = {f: [p for p in listed if p.version == f] for f in (4, 6)}
        self.subnet = {4: ipaddress.ip_network(subnet), 6: None}
        if self.addresses[6]:
            self.subnet[6] = ipaddress.ip_network(f'{self.addresses[6][0]}/64', strict=False)
        self.families = [f for f in (4, 6) if self.addresses[f]]
        # amazonlinux/amazon-ec2-net-utils:lib/lib.sh
        self.metric = 512 + 100 * int(card) + int(device)
        self.table = MAIN if self.primary else 10000 + 100 * int(card) + int(device)

    router = property(lambda self: self.subnet[4][1])
    resolver = property(lambda self: self.subnet[4][2])

    def neighbour(self, family):
        return self.subnet[family][10]


def read_table(path):
    with open(path) as f:
        return [i for i in map(Interface, f) if i.families]     # those of EFA alone have no address and are no interface here


def chosen(interfaces, words):
    here = set(os.listdir('/sys/class/net'))
    return [i for i in interfaces if (str(i.index) in words if words else i.name in here)]


# ---- the other ends ----

def ip(*words):
    return subprocess.run(['ip', *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def batch(lines, *options):
    subprocess.run(['ip', *options, '-batch', '-'], check=True, input='\n'.join(lines) + '\n', text=True, stdout=subprocess.DEVNULL)


def sysctl(values):
    for name, value in values.items():
        with open('/proc/sys/net/' + name, 'w') as f:
            f.write(value)


def join_namespace():
    fd = os.open('/run/netns/' + NAMESPACE, os.O_RDONLY)
    if ctypes.CDLL(None).setns(fd, 0x40000000) != 0:    # CLONE_NEWNET
        sys.exit('veths.py: cannot enter the namespace')


def make_namespace():
    ip('netns', 'add', NAMESPACE)
    if os.fork() == 0:
        join_namespace()
        sysctl({'ipv4/ip_forward': '1', 'ipv6/conf/all/forwarding': '1', 'ipv6/conf/default/forwarding': '1', 'ipv4/conf/all/rp_filter': '0',
                'ipv4/conf/default/rp_filter': '0', 'ipv6/conf/all/accept_dad': '0', 'ipv6/conf/default/accept_dad': '0'})
        os._exit(0)
    os.wait()
    batch(['link set lo up', *(f'address add {a} dev lo' for a in FAR.values())], '-n', NAMESPACE)


def make_links(interfaces, words):
    interfaces = [i for i in interfaces if not words or str(i.index) in words]
    if not os.path.exists('/run/netns/' + NAMESPACE):
        make_namespace()
    batch([f'link add {i.name} address {i.mac} type veth peer name {i.end} mtu 9216 netns {NAMESPACE}' for i in interfaces])
    hosts = {a for i in interfaces if 4 in i.families for a in (i.router, i.neighbour(4))}
    lines = [f'address replace {a}/32 dev lo' for a in sorted(hosts)]
    for i in interfaces:
        lines.append(f'link set {i.end} up')
        if 6 in i.families:
            lines.append(f'address add {i.neighbour(6)}/128 dev {i.end} nodad')
        lines += [f'route add {a} dev {i.end}' for f in i.families for a in i.addresses[f] + i.prefixes[f]]
    batch(lines, '-n', NAMESPACE)


# ---- the servers there ----

class Server:
    def __init__(self, interfaces, folder):
        self.folder, self.by_end = folder, {i.end: i for i in interfaces}
        self.sockets, self.known = {}, set()
        os.makedirs(folder + '/hold', exist_ok=True)
        self.seen = open(folder + '/seen', 'a', buffering=1)
        self.frames = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.frames.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)         # SO_RCVBUFFORCE: the test is faster
        self.solicited = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self.solicited.setsockopt(socket.IPPROTO_ICMPV6, 1, b'\xff' * 16 + b'\xff' * 16)        # ICMP6_FILTER: block all but
        self.solicited.setsockopt(socket.IPPROTO_ICMPV6, 1, struct.pack('8I', *[0xffffffff] * 4, 0xffffffff & ~(1 << (133 - 128)), *[0xffffffff] * 3))
        self.solicited.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        self.solicited.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
        self.dhcp6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.dhcp6.bind(('::', 547))

    def look_for_ends(self):
        """Those that have come since."""
        for index, name in socket.if_nameindex():
            if name not in self.by_end or index in self.known:
                continue
            self.known.add(index)
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for option in socket.SO_REUSEADDR, socket.SO_BROADCAST:
                s.setsockopt(socket.SOL_SOCKET, option, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
            s.bind(('0.0.0.0', 67))
            self.sockets[s] = self.by_end[name]
            for sock, group in (self.solicited, 'ff02::2'), (self.dhcp6, 'ff02::1:2'):
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + struct.pack('I', index))

    def item_at(self, index):
        try:
            return self.by_end.get(socket.if_indextoname(index))
        except OSError:
            return None

    def held(self, item):
        return os.path.exists(f'{self.folder}/hold/{item.name}')

    def run(self):
        self.look_for_ends()
        open(self.folder + '/ready', 'w').close()
        while True:
            ready = select.select([self.frames, self.solicited, self.dhcp6, *self.sockets], [], [], 0.2)[0]
            self.look_for_ends()
            for s in ready:
                try:
                    if s is self.frames:
                        self.see(*s.recvfrom(2048))
                    elif s is self.solicited:
                        self.advertise(*s.recvfrom(2048))
                    elif s is self.dhcp6:
                        self.answer_dhcp6(*s.recvfrom(2048))
                    else:
                        self.answer_dhcp4(s, s.recv(2048), self.sockets[s])
                except OSError as e:
                    if e.errno not in (errno.ENODEV, errno.ENXIO, errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.ENETUNREACH):
                        raise

    def see(self, data, address):
        item = self.by_end.get(address[0])
        if not item or address[2] == socket.PACKET_OUTGOING:
            return
        if address[1] == 0x800 and data[9] == 1 and data[(data[0] & 15) * 4] == 8:
            source, target, f = data[12:16], data[16:20], socket.AF_INET
        elif address[1] == 0x86dd and data[6] == 58 and data[40] == 128:
            source, target, f = data[8:24], data[24:40], socket.AF_INET6
        else:
            return
        print(item.name, socket.inet_ntop(f, source), socket.inet_ntop(f, target), file=self.seen)

    def advertise(self, data, address):
        """Addresses come from DHCPv6 alone, and all of the subnet is on the link."""
        item = self.item_at(address[3])
        if not item or 6 not in item.families:
            return
        prefix = item.subnet[6]
        body = struct.pack('!BBHBBHII', 134, 0, 0, 255, 0x80, 1800, 0, 0)
        body += struct.pack('!BBBBIII', 3, 4, prefix.prefixlen, 0x80, 3600, 3600, 0) + prefix.network_address.packed
        self.solicited.sendto(body, ('ff02::1', 0, 0, address[3]))

    def answer_dhcp4(self, s, data, item):
        if len(data) < 241 or data[0] != 1 or data[236:240] != b'\x63\x82\x53\x63' or 4 not in item.families or self.held(item):
            return
        options, i = {}, 240
        while i < len(data) and data[i] != 255:
            if data[i]:
                options[data[i]] = data[i + 2:i + 2 + data[i + 1]]
                i += 1 + data[i + 1]
            i += 1
        kind = {1: 2, 3: 5}.get(options.get(53, b'\0')[0])
        if not kind:
            return
        subnet, here, yours = item.subnet[4], item.router.packed, item.addresses[4][0].packed
        if 50 in options and kind == 5 and options[50] != yours:
            kind = 6
        reply = struct.pack('!BBBB', 2, 1, 6, 0) + data[4:8] + bytes(2) + data[10:12] + bytes(4) + yours + here + bytes(4) + data[28:44] + bytes(192)
        reply += b'\x63\x82\x53\x63' + bytes([53, 1, kind])
        for code, value in ((54, here), (51, struct.pack('!I', 3600)), (1, subnet.netmask.packed), (3, here), (6, item.resolver.packed),
                            (26, struct.pack('!H', MTU)), (15, b'us-west-2.compute.internal')):
            reply += bytes([code, len(value)]) + value
        s.sendto(reply + b'\xff', ('255.255.255.255', 68))

    def answer_dhcp6(self, data, address):
        item = self.item_at(address[3])
        if not item or 6 not in item.families or self.held(item):
            return
        options, i = {}, 4
        while i + 4 <= len(data):
            code, size = struct.unpack('!HH', data[i:i + 4])
            options[code] = data[i + 4:i + 4 + size]
            i += 4 + size
        kind = {1: 2, 3: 7, 5: 7, 6: 7}.get(data[0])
        if not kind or 1 not in options:
            return
        if kind == 2 and 14 in options:     # rapid commit
            kind = 7
        reply = bytes([kind]) + data[1:4]
        identity = b'\0\3\0\1' + bytes.fromhex('020ec2ffffff')
        parts = [(1, options[1]), (2, identity)]
        if 14 in options:
            parts.append((14, b''))
        if 3 in options:
            address_option = item.addresses[6][0].packed + struct.pack('!II', 3600, 3600)
            parts.append((3, options[3][:4] + struct.pack('!IIHH', 1800, 2880, 5, len(address_option)) + address_option))
        for code, value in parts:
            reply += struct.pack('!HH', code, len(value)) + value
        self.dhcp6.sendto(reply, address)


# ---- what must be so ----

def differences(what, found, wanted):
    for row in sorted(found - wanted, key=str):
        yield f'{what}: too much: {row}'
    for row in sorted(wanted - found, key=str):
        yield f'{what}: missing: {row}'


def eventually(differs, seconds=120):
    """A link is "configured" when it has the addresses of one family: those of the other one may come later."""
    until = time.monotonic() + seconds
    while True:
        found = differs()
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def wanted_routes(i):
    """(table, destination, "gateway" or "link", metric)"""
    tables = {i.table, MAIN}
    if 4 in i.families:
        yield from ((table, 'default', 'gateway', i.metric) for table in tables)
        yield from ((i.table, str(a), 'link', i.metric) for a in (i.subnet[4], i.router, i.resolver))
    if 6 in i.families:
        yield from ((table, '::/0', 'gateway', i.metric) for table in tables)
        yield (i.table, str(i.subnet[6]), 'link', i.metric)


def found_routes(i, routes):
    for family, r in routes:
        table = {'main': MAIN, 'local': 255}.get(r.get('table', 'main')) or int(r['table'])
        if r.get('dev') != i.name or table == 255 or r['dst'] == 'fe80::/64' or r['dst'] == 'ff00::/8':
            continue
        target = '::/0' if family == 6 and r['dst'] == 'default' else r['dst']
        yield (table, target, 'gateway' if 'gateway' in r else 'link', r.get('metric', 0))


def check_routes(interfaces):
    routes = [(f, r) for f in (4, 6) for r in json.loads(ip('-j', f'-{f}', 'route', 'show', 'table', 'all'))]
    for i in interfaces:
        yield from differences(i.name, set(found_routes(i, routes)), set(wanted_routes(i)))
        gateways = {r['gateway'] for f, r in routes if f == 4 and r.get('dev') == i.name and 'gateway' in r}
        if 4 in i.families and gateways != {str(i.router)}:
            yield f'{i.name}: gateways {gateways}'


def check_rules(interfaces):
    found = set()
    for f in (4, 6):
        for r in json.loads(ip('-j', f'-{f}', 'rule')):
            if r['priority'] not in (0, 32766, 32767):
                found.add((r['priority'], f"{r.get('src')}/{r.get('srclen', 32 if f == 4 else 128)}", str(r['table'])))
    wanted = {(PRIORITY, str(ipaddress.ip_network(a)), str(i.table)) for i in interfaces if not i.primary
              for f in i.families for a in i.addresses[f] + i.prefixes[f]}
    yield from differences('rules', found, wanted)


def check_links(interfaces):
    kernel = {link['ifname']: link for link in json.loads(ip('-j', 'address'))}
    for i in interfaces:
        link = kernel[i.name]
        here = {ipaddress.ip_address(a['local']) for a in link['addr_info'] if not a.get('tentative')}
        if link['mtu'] != MTU or link['address'] != i.mac or 'UP' not in link['flags']:
            yield f"{i.name}: MTU {link['mtu']}, {link['address']}, {link['flags']}"
        yield from (f'{i.name}: {i.addresses[f][0]} is missing' for f in i.families if i.addresses[f][0] not in here)


def check_filters(interfaces):
    for i in interfaces:
        with open(f'/proc/sys/net/ipv4/conf/{i.name}/rp_filter') as f:
            found = f.read().strip()
        if (found == '2') != (4 in i.families and not i.primary):
            yield f'{i.name}: rp_filter is {found}'


def unsettled(found):
    """Of the interfaces that these sentences begin with, what networkd itself says of addresses and routes that it has not set."""
    answer = subprocess.run(['busctl', '--json=short', 'call', NETWORKD, '/' + NETWORKD.replace('.', '/'), NETWORKD + '.Manager', 'Describe'],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    for link in json.loads(json.loads(answer)['data'][0])['Interfaces'] if answer.startswith('{') else []:
        if link['Name'] in {f.split(':')[0] for f in found}:
            for item in link.get('Addresses', []) + link.get('Routes', []):
                if item['ConfigState'] != 'configured':
                    yield f"networkd: {link['Name']}: {item['ConfigState']}: {item.get('ConfigSource')} {item.get('Destination', item.get('Address'))}"


# ---- traffic ----

def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def echo(source, peer, seconds=60):
    """None, or why there was no answer. The source address alone decides where it leaves: the socket is bound to no interface. It asks
    each second: the first may be lost to the discovery of neighbours."""
    v6 = peer.version == 6
    request, reply = (128, 129) if v6 else (8, 0)
    number = os.getpid() & 0xffff
    with socket.socket(*((socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) if v6 else (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))) as s:
        try:
            if source:
                s.bind((str(source), 0))
            for sequence in range(1, seconds + 1):
                head = struct.pack('!BBHHH', request, 0, 0, number, sequence)
                s.sendto(head if v6 else head[:2] + struct.pack('!H', checksum(head)) + head[4:], (str(peer), 0))
                until = time.monotonic() + 1
                while select.select([s], [], [], max(0, until - time.monotonic()))[0]:
                    data, address = s.recvfrom(2048)
                    data = data if v6 else data[(data[0] & 15) * 4:]
                    if data[0] == reply and struct.unpack('!H', data[4:6])[0] == number and address[0].split('%')[0] == str(peer):
                        return None
            return 'no answer'
        except OSError as e:
            return e.strerror


def settle_addresses(interfaces):
    """What a CNI would have given to pods is on the interface itself, so that something can be sent from it: the further
    addresses, and the first one of each prefix."""
    more = [(i, a) for i in interfaces for f in i.families for a in i.addresses[f][1:] + [p[1] for p in i.prefixes[f]]]
    if more:
        batch([f"address replace {a}/{a.max_prefixlen} dev {i.name}{' nodad' if a.version == 6 else ''}" for i, a in more])
    return [(i, a) for i in interfaces for f in i.families for a in i.addresses[f][:1]] + more


def check_traffic(interfaces, folder):
    every = {f: sorted({ipaddress.ip_address(FAR[f]), *(i.neighbour(f) for i in interfaces if f in i.families)}) for f in (4, 6)}
    expected = {}
    with open(folder + '/seen') as seen:
        seen.seek(0, os.SEEK_END)
        for i, a in settle_addresses(interfaces):
            for peer in every[a.version]:
                expected[str(a), str(peer)] = i.name
                why = echo(a, peer)
                if why:
                    yield f'{i.name}: {a} to {peer}: {why}'
        for f in interfaces[0].families:
            expected[str(interfaces[0].addresses[f][0]), FAR[f]] = interfaces[0].name
            why = echo(None, ipaddress.ip_address(FAR[f]))
            if why:
                yield f'from nobody in particular to {FAR[f]}: {why}'
        lines, wanted = [], {(name, *pair) for pair, name in expected.items()}

        def left_by():                  # the kernel there answers before the server has read the request
            lines.extend(seen)
            return list(differences('left by', {tuple(line.split()) for line in lines}, wanted))
        yield from eventually(left_by)


def main():
    words = sys.argv[1:]
    if len(words) < 2:
        sys.exit(__doc__)
    command, table, *words = words
    table = read_table(table)
    if command == 'links':
        return make_links(table, words)
    if command == 'serve':
        join_namespace()
        Server(table, words[0]).run()
    if command == 'names':
        return print(*(i.name for i in table if not words or str(i.index) in words))
    checks = {'routes': check_routes, 'rules': check_rules, 'links': check_links, 'filters': check_filters}
    interfaces = chosen(table, words[1:])
    if command == 'traffic':
        found = list(check_traffic(interfaces, words[0]))
    else:
        found = eventually(lambda: list(checks[words[0]](interfaces)))
    if found:
        sys.exit('\n'.join(found + list(unsettled(found))))


if __name__ == '__main__':
    main()
