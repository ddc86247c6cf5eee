#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives a tree of instance metadata the network interfaces of an instance type.

usage: interfaces.py DIR [OPTION]...

DIR is made from tests/fixtures/imds-m5 where it is not there; its interfaces are replaced, but for those that --only leaves alone. Prints
a line for each interface it made: INDEX MAC CARD DEVICE SUBNET IPV4,... IPV6,... PREFIX,... with "-" for what it has none of.
  --type TYPE           instance type (as the tree has it); conf/instance-types.csv says how many network cards that has
  --cards N             network cards, whatever the table says. One: "network-card" is 404, as of such types
  --count N             interfaces (as many as there are cards). Index 0 is the primary one: card 0, device 0, the tree's own MAC
                        and address. Index i is on card i, device 1, as EFA documentation has it; what is left when all cards have one begins
                        again at card 0. With one card, index i is device i
  --device-0            on cards other than 0 the first interface is device 0 (legal, and what EC2 gives EFA-only ones)
  --only LIST           write these indexes alone ("2,5-7"): what is attached later
  --subnets N           index i is in subnet i % N (1): 10.11.0.0/20, 10.11.16.0/22, 10.11.20.0/22 ...; the
                        gateway is the first address of it
  --addresses N         IPv4 addresses of each secondary one (1)
  --prefixes N          delegated IPv4 prefixes (/28) of each secondary one, and with --ipv6 as many IPv6 prefixes (/80) (0)
  --ipv6                the VPC and all subnets have IPv6: one such address each, beside the IPv4 ones
  --ipv6-only           no IPv4 but on the primary's own path: "local-ipv4s" is 404 for all
  --efa-only LIST       these indexes have no address at all
"""
import argparse
import ipaddress
import os
import shutil
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = HERE + '/../..'
MACS = 'latest/meta-data/network/interfaces/macs'


def indexes(text):
    found = set()
    for part in filter(None, (text or '').split(',')):
        first, _, last = part.partition('-')
        found |= set(range(int(first), int(last or first) + 1))
    return found


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read().strip()


def write(directory, name, text):
    if text:
        with open(os.path.join(directory, name), 'w') as f:
            f.write(text)


def table_cards(instance_type):
    with open(TOP + '/conf/instance-types.csv') as f:
        for line in f:
            fields = line.strip().split(',')
            if fields[0] == instance_type and fields[6]:
                return int(fields[6])
    return 1


def mac_of(primary, index):
    """Scattered, so that their order is not that of the cards."""
    parts = primary.split(':')
    parts[4] = f'{(int(parts[4], 16) + 0x25 * index) % 256:02x}'
    return ':'.join(parts)


def place(index, cards, device_0):
    if cards == 1:
        return 0, index
    card, turn = index % cards, index // cards
    return card, turn + (card > 0 and not device_0)


def subnets(number):
    v4 = ['10.11.0.0/20'] + [f'10.11.{12 + 4 * j}.0/22' for j in range(1, number)]
    return [(ipaddress.ip_network(v4[j]), ipaddress.ip_network(f'2001:db8:11:{j:x}::/64')) for j in range(number)]


def describe(o, index, primary, own_ipv4):
    """The keys of one interface. Numbers within a subnet depend on the index alone, so that --only makes what it would have been."""
    j = index % o.subnets
    turn = index // o.subnets           # the how manieth of its subnet
    v4, v6 = subnets(o.subnets)[j]
    card, device = place(index, o.cards, o.device_0)
    keys = {'mac': mac_of(primary, index), 'device-number': str(device), 'network-card': str(card) if o.cards > 1 else '',
            'interface-id': f'eni-0aa11bb22cc33{index:04x}', 'owner-id': '111122223333', 'security-group-ids': 'sg-00112233445566778',
            'subnet-id': f'subnet-0123abcd4567e{j:04x}', 'vpc-id': 'vpc-0fedcba9876543210', 'subnet-ipv4-cidr-block': str(v4),
            'vpc-ipv4-cidr-block': '10.11.0.0/16', 'vpc-ipv4-cidr-blocks': '10.11.0.0/16'}
    if o.ipv6:
        keys |= {'subnet-ipv6-cidr-blocks': str(v6), 'vpc-ipv6-cidr-blocks': '2001:db8:11::/56'}
    if index in o.efa_only:
        return keys
    step = 16 if v4.prefixlen == 20 else 8      # addresses for each in a subnet
    mine = [own_ipv4] if index == 0 else [str(v4[20 + step * turn + k]) for k in range(o.addresses)]
    if not o.ipv6_only:
        keys['local-ipv4s'] = '\n'.join(mine)
        keys['local-hostname'] = f'ip-{mine[0].replace(".", "-")}.us-west-2.compute.internal'
    if o.ipv6:
        keys['ipv6s'] = str(v6[0xa0 + index])
    if index > 0 and not o.ipv6_only:
        base = 1024 if v4.prefixlen == 20 else 512
        keys['ipv4-prefix'] = '\n'.join(f'{v4[base + 16 * (turn * o.prefixes + k)]}/28' for k in range(o.prefixes))
    if index > 0 and o.ipv6:
        keys['ipv6-prefix'] = '\n'.join(f'{v6[(0x1000 + 16 * index + k) << 48]}/80' for k in range(o.prefixes))
    return keys


def main():
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument('dir')
    p.add_argument('--type')
    p.add_argument('--cards', type=int)
    p.add_argument('--count', type=int)
    p.add_argument('--device-0', action='store_true')
    p.add_argument('--only')
    p.add_argument('--subnets', type=int, default=1)
    p.add_argument('--addresses', type=int, default=1)
    p.add_argument('--prefixes', type=int, default=0)
    p.add_argument('--ipv6', action='store_true')
    p.add_argument('--ipv6-only', action='store_true')
    p.add_argument('--efa-only')
    if sys.argv[1:] in ([], ['-h'], ['--help']):
        sys.exit(__doc__)
    o = p.parse_args()
    o.ipv6 |= o.ipv6_only
    o.efa_only = indexes(o.efa_only)
    if not os.path.isdir(o.dir + '/latest'):
        shutil.copytree(TOP + '/tests/fixtures/imds-m5', o.dir, dirs_exist_ok=True)
    if o.type:
        os.spawnl(os.P_WAIT, HERE + '/imds.sh', 'imds.sh', o.dir, o.type)
    o.cards = o.cards or table_cards(o.type or read(o.dir, 'latest/meta-data/instance-type'))
    primary, own_ipv4 = read(o.dir, 'latest/meta-data/mac'), read(o.dir, 'latest/meta-data/local-ipv4')
    wanted = indexes(o.only) or set(range(o.count or o.cards))
    if not o.only:
        shutil.rmtree(os.path.join(o.dir, MACS))
    for index in sorted(wanted):
        try:
            keys = describe(o, index, primary, own_ipv4)
        except IndexError:
            sys.exit(f'interface {index} does not fit into its subnet: more --subnets, fewer --prefixes or --addresses')
        directory = os.path.join(o.dir, MACS, keys['mac'])
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory + '.new')         # listed when it is complete
        for name, text in keys.items():
            write(directory + '.new', name, text)
        os.rename(directory + '.new', directory)
        prefixes = '\n'.join(filter(None, (keys.get('ipv4-prefix'), keys.get('ipv6-prefix'))))
        card, device = place(index, o.cards, o.device_0)
        print(index, keys['mac'], card, device, keys['subnet-ipv4-cidr-block'],
              *((v or '-').replace('\n', ',') for v in (keys.get('local-ipv4s'), keys.get('ipv6s'), prefixes)))


main()
