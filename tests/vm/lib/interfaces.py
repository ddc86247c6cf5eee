# SPDX-License-Identifier: Apache-2.0
"""A node with network cards, from inside a virtual machine (boot.sh, tree: interfaces): what tests/vm/lib/interfaces_*.py share.

The numbers of an interface follow from its card and its device as amazonlinux/amazon-ec2-net-utils:lib/lib.sh has them.
"""
import collections
import contextlib
import glob
import ipaddress
import json
import os
import shutil
import socket
import time

import storage
from storage import HERE, Problem, read, sh, write

IMDS, MACS = HERE + '/imds', HERE + '/imds/latest/meta-data/network/interfaces/macs/'
REQUESTS = HERE + '/out/imds.log'
NETWORK, MARKER, SNAPSHOT = '/run/systemd/network/', '/run/nodeadm/init', '/run/nodestrap/interfaces.json'
UNIT = 'nodestrap-udev-net-manager@{}.service'
DECISIONS = '/etc/eks/nodeadm/udev-net-manager/'
LINKS = '/etc/systemd/network/'
MTU, PRIORITY = 9001, 32765
PATIENCE = 300          # seconds; systemd waits 90 s for the device of an interface that has gone

Eni = collections.namedtuple('Eni', 'index mac card device subnet ipv4s')


def enis():
    found = []
    for line in read(HERE + '/interfaces').splitlines():
        index, mac, card, device, subnet, ipv4s, *_ = line.split()
        found.append(Eni(int(index), mac, int(card), int(device), ipaddress.ip_network(subnet), [] if ipv4s == '-' else ipv4s.split(',')))
    return found


def wait(what, condition):
    """-> what condition() says when it is true at last"""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > end:
            raise Problem(f'waited {PATIENCE} s: {what}')
        time.sleep(0.05)
    return found


# ---- the world outside -----------------------------------------------------------------------------------------------------------

def reveal(eni):
    """From now on the metadata service lists it."""
    shutil.copytree(f'{HERE}/later/{eni.mac}', MACS + eni.mac + '.new')
    os.rename(MACS + eni.mac + '.new', MACS + eni.mac)


def lag(rules):
    """How the metadata service is behind (imds.py)."""
    write(IMDS + '/lag.new', rules)
    os.rename(IMDS + '/lag.new', IMDS + '/lag')


def plug(eni, card=None):
    """-> its name, when udev is done with it. card: of another interface, whose place on the bus it takes."""
    write('/dev/ttyS0', f'VMTEST plug {(card or eni).index + 1} {eni.mac}\n')
    wait(f'{eni.mac} has not come', lambda: eni.mac in names())
    storage.settle()
    return wait(f'{eni.mac} has no name', lambda: names().get(eni.mac))


def unplug(eni, card=None):
    write('/dev/ttyS0', f'VMTEST unplug {(card or eni).index + 1}\n')
    wait(f'{eni.mac} is still there', lambda: eni.mac not in names())
    storage.settle()


def call(eni, name):
    """When it comes the next time, udev gives it this name."""
    write(f'{LINKS}10-{eni.mac.replace(":", "")}.link', f'[Match]\nPermanentMACAddress={eni.mac}\n\n[Link]\nName={name}\n')
    sh('udevadm', 'control', '--reload')        # by itself it looks every three seconds


def requests(since=0):
    """[(time, path)] of the requests to the metadata service."""
    lines = (line.split() for line in read(REQUESTS, '').splitlines())
    return [(float(when), path) for when, method, path, *_ in lines if float(when) >= since]


# ---- what the machine says -------------------------------------------------------------------------------------------------------

def names():
    """{MAC: name} of the cards."""
    found = {}
    for path in glob.glob('/sys/class/net/*/device'):
        with contextlib.suppress(OSError):
            found[read(os.path.dirname(path) + '/address')] = os.path.basename(os.path.dirname(path))
    return found


def props(unit, *wanted):
    pairs = (line.partition('=') for line in sh('systemctl', 'show', '-p', ','.join(wanted), unit).splitlines())
    return {key: value for key, _, value in pairs}


def ip(*words):
    return json.loads(sh('ip', '-j', *words) or '[]')


def setups():
    """{name: what networkd says of the link}; empty where it does not answer"""
    try:
        return {i['Name']: i.get('AdministrativeState', '') for i in json.loads(sh('networkctl', 'list', '--json=short'))['Interfaces']}
    except (Problem, ValueError, KeyError):
        return {}


def decisions():
    """{path: text} of all that is kept."""
    return {os.path.join(top, name): read(os.path.join(top, name)) for top, _, files in os.walk(DECISIONS) for name in files}


def decision_path(name):
    """As nodeadm has it."""
    return DECISIONS + read(IMDS + '/latest/meta-data/instance-id') + '/' + name


def speaks(eni):
    """What comes back of a packet from its address to far away: which way it left."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.bind((eni.ipv4s[0], 0))
        for _ in range(5):
            s.sendto(b'?', ('198.51.100.7', 7))
            with contextlib.suppress(TimeoutError):
                return s.recv(1000).decode()
    return 'nothing'


def network_files():
    """{name of the interface: MAC in its file}, of ours"""
    found = {}
    for path in glob.glob(NETWORK + '70-eks-*.network'):
        macs = [line.partition('=')[2] for line in read(path, '').splitlines() if line.startswith('PermanentMACAddress=')]
        found[os.path.basename(path)[len('70-eks-'):-len('.network')]] = ' '.join(macs)
    return found


def booted():
    return time.time() - float(read('/proc/uptime').split()[0])


def decided(name):
    """Waits until the unit of this interface is done."""
    unit = UNIT.format(name)
    wait(f'{unit} is not done: {props(unit, "ActiveState", "Result")}', lambda: props(unit, 'ActiveState')['ActiveState'] == 'active')
    storage.settle()


def configured(networkd):
    """Waits until networkd is done with these, and with no other."""
    have = names()
    wait('networkd is not done', lambda: all(setups().get(have.get(e.mac)) == 'configured' for e in networkd))


# ---- judgements: lists of complaints ---------------------------------------------------------------------------------------------

class State:
    """The network as it is now."""

    def __init__(self):
        self.names, self.setups, self.files = names(), setups(), network_files()
        self.links = {link['ifname']: link for link in ip('address')}
        self.routes, self.rules = ip('-4', 'route', 'show', 'table', 'all'), ip('-4', 'rule')

    def of_table(self, table, name):
        return [r for r in self.routes if r.get('table', 'main') == table and r.get('dev') == name]

    def complaints_networkd(self, eni, primary):
        name = self.names.get(eni.mac)
        if not name:
            return [f'there is no {eni.mac}']
        number = 100 * eni.card + eni.device
        found = [f'{name}: networkd says {self.setups.get(name)}'] * (self.setups.get(name) != 'configured')
        found += [f'{name}: the file is for {self.files.get(name)}, not {eni.mac}'] * (self.files.get(name) != eni.mac)
        link = self.links.get(name, {})
        found += [f'{name}: MTU {link.get("mtu")}'] * (link.get('mtu') != MTU)
        have = [a['local'] for a in link.get('addr_info', []) if a['family'] == 'inet']
        found += [f'{name}: addresses {have}, not {eni.ipv4s[:1]}'] * (have != eni.ipv4s[:1])
        default = [(r.get('gateway'), r.get('metric')) for r in self.of_table('main', name) if r['dst'] == 'default']
        want = [(str(eni.subnet[1]), 512 + number)]
        found += [f'{name}: default routes {default}, not {want}'] * (default != want)
        if not primary:
            table = {r['dst']: r.get('gateway') for r in self.of_table(str(10000 + number), name)}
            if table.get('default') != str(eni.subnet[1]) or table.get(str(eni.subnet), '') is not None:
                found.append(f'{name}: table {10000 + number} has {table}')
            filter_mode = read(f'/proc/sys/net/ipv4/conf/{name}/rp_filter')
            found += [f'{name}: rp_filter is {filter_mode}'] * (filter_mode != '2')
        if not found:
            said, want = speaks(eni), f'{eni.index + 1} {eni.mac} {eni.ipv4s[0]}'
            found += [f'{name}: what it sent went by "{said}", not by "{want}"'] * (said != want)
        return found

    def complaints_cni(self, eni):
        name = self.names.get(eni.mac)
        if not name:
            return [f'there is no {eni.mac}']
        found = [f'{name}: networkd says {self.setups.get(name)}'] * (self.setups.get(name) != 'unmanaged')
        return found + [f'{name} has a file'] * (name in self.files or eni.mac in self.files.values())

    def complaints_rules(self, managed):
        """managed: the interfaces that networkd has, the primary one among them, which has none"""
        want = sorted((a, 10000 + 100 * e.card + e.device) for e in managed if e.index for a in e.ipv4s)
        have = sorted((r['src'], int(r['table'])) for r in self.rules if r['priority'] == PRIORITY and r['table'].isdigit() and int(r['table']) >= 10000)
        return [f'rules {have}, not {want}'] * (have != want)

    def complaints(self, networkd, cni=()):
        found = [c for e in networkd for c in self.complaints_networkd(e, e.index == 0)]
        found += [c for e in cni for c in self.complaints_cni(e)] + self.complaints_rules(networkd)
        strangers = {n: m for n, m in self.files.items() if m not in [e.mac for e in networkd]}
        return found + [f'files of others: {strangers}'] * bool(strangers)


def describe():
    """More text about a failure."""
    words = ('networkctl list --no-pager', 'ip -br address', 'ip -4 route show table all type unicast', 'ip rule', f'ls -R {NETWORK}',
             'journalctl -b --no-pager -o short-monotonic -u nodestrap-boot-hook -u nodestrap-udev-net-manager@* -n 30')
    return [json.dumps(decisions(), indent=1)] + [sh(*w.split(), check=False) for w in words]


def complaints_boot(present):
    """Of the units, after a boot with these interfaces."""
    found, hook = [], props('nodestrap-boot-hook.service', 'Result', 'ActiveState', 'ExecMainExitTimestampMonotonic')
    config = props('nodestrap-config.service', 'Result', 'ExecMainStatus', 'ExecMainStartTimestampMonotonic')
    found += [f'boot-hook: {hook}'] * ((hook['Result'], hook['ActiveState']) != ('success', 'active'))
    found += [f'the configuration phase: {config}'] * ((config['Result'], config['ExecMainStatus']) != ('success', '0'))
    if not 0 < int(hook['ExecMainExitTimestampMonotonic']) < int(config['ExecMainStartTimestampMonotonic']):
        found.append(f'boot-hook was not before the configuration phase: {hook}, {config}')
    have = names()
    for eni in present:
        state = props(UNIT.format(have.get(eni.mac)), 'Result', 'ActiveState')
        found += [f'{UNIT.format(have.get(eni.mac))}: {state}'] * ((state['Result'], state['ActiveState']) != ('success', 'active'))
    for unit in ('systemd-networkd-wait-online.service', 'network-online.target'):
        state = props(unit, 'ActiveState')
        found += [f'{unit}: {state}'] * (state['ActiveState'] != 'active')
    found += [f'failed: {sh("systemctl", "list-units", "--failed", "--no-legend", "--plain")}'] * (read(HERE + '/out/state') != 'running')
    journal = sh('journalctl', '-b', '-o', 'cat', '--no-pager')
    return found + [line for line in journal.splitlines() if 'ordering cycle' in line or 'deleted to break' in line]


def complaints_kept(networkd, cni):
    """Every MAC has its decision, and so has every name, for a nodeadm that comes after us."""
    kept, have = decisions(), names()
    by_name = {have[e.mac]: word for word, of in (('io.systemd.Network', networkd), ('cni', cni)) for e in of}
    found = [f'{name}: {kept}, not {word}' for name, word in by_name.items() if word not in kept.get(decision_path(name), '')]
    by_mac = {e.mac: word for word, of in (('io.systemd.Network', networkd), ('cni', cni)) for e in of}
    return found + [f'no decision of {mac} says {word}: {kept}' for mac, word in by_mac.items()
                    if not any(mac.replace(':', '') in (path + text).replace(':', '').replace('-', '') and word in text for path, text in kept.items())]
