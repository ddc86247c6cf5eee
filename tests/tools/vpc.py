#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network as VMs of EC2 see theirs, for network cards of QEMU: everybody is there, nothing is reached.

usage: vpc.py DIRECTORY N [INTERFACES]
                        cards 1 to N: -netdev dgram, QEMU's socket is DIRECTORY/wN.qemu, ours is DIRECTORY/wN.vpc; prints
                        "listening" and a line for each frame that it answers: SECONDS CARD MAC WHAT

An interface has its address and subnet by its MAC, from INTERFACES (what tests/fakes/interfaces.py prints, where there is such a file);
else the address is the last four bytes of the MAC: 02:00:0a:00:01:0a has 10.0.1.10/24. DHCP tells it, with the subnet's
first address as the gateway. Everybody else answers ARP, ping, and UDP on port 7 with a line that says on which card, from
which MAC and which address the packet came.
"""
import ipaddress
import os
import selectors
import socket
import struct
import sys
import time

ROUTER = bytes.fromhex('020000000001')
BROADCAST, ANY = b'\xff' * 6, bytes(4)
ARP, IPV4 = 0x0806, 0x0800
ICMP, UDP = 1, 17
MTU = 9001
interfaces = {}                 # MAC → (address, subnet), or False: it has no address


def mac_text(mac):
    return ':'.join(f'{b:02x}' for b in mac)


def checksum(data):
    words = struct.unpack(f'!{(len(data) + 1) // 2}H', data + b'\0' * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(to, kind, payload):
    return to + ROUTER + struct.pack('!H', kind) + payload


def packet(protocol, source, to, payload):
    head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0, source, to)
    return head[:10] + struct.pack('!H', checksum(head)) + head[12:] + payload


def datagram(source, to, payload):
    return struct.pack('!HHHH', source, to, 8 + len(payload), 0) + payload


def answer_arp(mac, data):
    operation, _, source, _, wanted = struct.unpack('!6xH6s4s6s4s', data[:28])
    if operation != 1 or source in (ANY, wanted):       # who asks whether an address is free may have it
        return None
    return 'arp ' + socket.inet_ntoa(wanted), frame(mac, ARP, struct.pack('!HHBBH6s4s6s4s', 1, IPV4, 6, 4, 2, ROUTER, wanted, mac, source))


def options_of(data):
    found, i = {}, 0
    while i + 1 < len(data) and data[i] != 255:
        if data[i] == 0:
            i += 1
            continue
        found[data[i]] = data[i + 2:i + 2 + data[i + 1]]
        i += 2 + data[i + 1]
    return found


def interface(mac):
    return interfaces.get(mac_text(mac), (mac[2:], ipaddress.ip_network((mac[2:], 24), strict=False)))


def answer_dhcp(mac, data):
    """https://www.rfc-editor.org/rfc/rfc2131"""
    options = options_of(data[240:])
    kinds = {1: (2, 'offer'), 3: (5, 'lease')}
    kind = options.get(53, b'\0')[0]
    found = interface(mac)
    if data[0] != 1 or kind not in kinds or not found:
        return None
    address, subnet = found
    gateway = subnet[1].packed
    reply = b'\2' + data[1:16] + address + gateway + ANY + data[28:236] + data[236:240]
    for code, value in ((53, bytes([kinds[kind][0]])), (54, gateway), (51, struct.pack('!I', 3600)), (1, subnet.netmask.packed), (3, gateway),
                        (6, subnet[2].packed), (26, struct.pack('!H', MTU))):
        reply += bytes([code, len(value)]) + value
    sent = datagram(67, 68, reply + b'\xff')
    return f'{kinds[kind][1]} {socket.inet_ntoa(address)}', frame(mac, IPV4, packet(UDP, gateway, address, sent))


def answer_ipv4(card, mac, data):
    size, protocol, source, to = (data[0] & 15) * 4, data[9], data[12:16], data[16:20]
    data = data[size:struct.unpack('!H', data[2:4])[0]]
    route = f'{socket.inet_ntoa(source)} {socket.inet_ntoa(to)}'
    if protocol == ICMP and data[0] == 8:
        reply = b'\0\0\0\0' + data[4:]
        return 'ping ' + route, frame(mac, IPV4, packet(ICMP, to, source, reply[:2] + struct.pack('!H', checksum(reply)) + reply[4:]))
    if protocol != UDP:
        return None
    source_port, port = struct.unpack('!HH', data[:4])
    if port == 67:
        return answer_dhcp(mac, data[8:])
    if port == 7:
        text = f'{card} {mac_text(mac)} {socket.inet_ntoa(source)}'.encode()
        return 'echo ' + route, frame(mac, IPV4, packet(UDP, to, source, datagram(7, source_port, text)))
    return None


def answer(card, data):
    mac, kind = data[6:12], struct.unpack('!H', data[12:14])[0]
    if kind == ARP:
        return answer_arp(mac, data[14:])
    if kind == IPV4:
        return answer_ipv4(card, mac, data[14:])
    return None


def main(directory, cards, file=''):
    if os.path.isfile(file):
        with open(file) as f:
            for _, mac, _, _, subnet, ipv4, *_ in map(str.split, f):
                interfaces[mac] = ipv4 != '-' and (socket.inet_aton(ipv4.split(',')[0]), ipaddress.ip_network(subnet))
    begin, selector = time.monotonic(), selectors.DefaultSelector()
    for card in range(1, cards + 1):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(f'{directory}/w{card}.vpc')
        selector.register(s, selectors.EVENT_READ, card)
    print('listening', flush=True)
    while True:
        for key, _ in selector.select():
            data = key.fileobj.recv(65536)
            try:
                reply = answer(key.data, data)
                if reply:
                    print(f'{time.monotonic() - begin:.3f} {key.data} {mac_text(data[6:12])} {reply[0]}', flush=True)
                    key.fileobj.sendto(reply[1], f'{directory}/w{key.data}.qemu')
            except (struct.error, IndexError, OSError) as e:    # half a packet; QEMU has gone
                print(f'# card {key.data}: {type(e).__name__}: {e}', flush=True)


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
