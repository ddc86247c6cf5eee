# SPDX-License-Identifier: Apache-2.0
"""usage: interfaces_boots.py

A node with several network cards: its first boot, an interface that the CNI attaches, one that goes and comes back, one that comes
in its place; then a reboot at which interfaces have each other's names.
"""
import os

import interfaces
import storage
from interfaces import MARKER, State, booted, call, complaints_boot, complaints_kept, configured, decided, decisions, describe, enis, ip, names, plug, \
    props, requests, reveal, speaks, unplug, wait
from storage import Report, sh

LAUNCHED = 4                    # from power-on; then one of the CNI's, and one that comes in the place of another
POD, VETH, TABLE = '10.11.31.200', 'eni0a1b2c3d4e5', '2'


def begun(unit):
    """The time of its start, as time.time(); before the configuration phase only interfaces send requests."""
    return booted() + int(props(unit, 'ExecMainStartTimestampMonotonic')['ExecMainStartTimestampMonotonic']) / 1e6


def complaints_requests(managed, cni=()):
    asked = [path for when, path in requests(booted()) if when < begun('nodestrap-config.service')]
    below = [path for path in asked if '/macs/' in path.rstrip('/')]
    found = [f'{len(asked)} requests: {asked}'] * (len(asked) > 3 * len(managed) + 5 + 3)       # three of boot-hook's own
    found += [f'asked twice: {path}' for path in sorted(set(below)) if below.count(path) > 1]
    return found + [f'asked of the CNI\'s: {path}' for path in below for e in cni if e.mac in path]


def do_as_the_cni(eni, name):
    """aws/amazon-vpc-cni-k8s:pkg/networkutils/network.go: an address of its own, a table of its own, and a pod."""
    gateway, address = str(eni.subnet[1]), eni.ipv4s[0]
    for words in (f'link set {name} mtu 9001 up', f'address add {address}/{eni.subnet.prefixlen} dev {name}', f'link add {VETH} type veth peer name pod0',
                  f'link set {VETH} up', f'route add {POD}/32 dev {VETH} scope link', f'route add {gateway} dev {name} scope link table {TABLE}',
                  f'route add default via {gateway} dev {name} table {TABLE}', f'rule add from all to {POD} lookup main priority 512',
                  f'rule add from {POD} lookup {TABLE} priority 1536', f'rule add from {address} lookup {TABLE} priority 32765'):
        sh('ip', *words.split())


def of_the_cni(name):
    """All that it has set."""
    return {'link': [{k: link.get(k) for k in ('mtu', 'flags', 'operstate')} for link in ip('link', 'show', 'dev', name)],
            'addresses': [a for link in ip('-4', 'address', 'show', 'dev', name) for a in link['addr_info']],
            'table': ip('route', 'show', 'table', TABLE), 'pod': ip('route', 'show', 'dev', VETH),
            'rules': [r for r in ip('rule') if r.get('table') == TABLE or r['priority'] == 512]}


def hot_plugged(report, all_of):
    launched, new = all_of[:LAUNCHED], all_of[LAUNCHED]
    report.line('(the run phase has begun)', [] if os.path.exists(MARKER) else [MARKER])
    before = len(requests())
    reveal(new)
    name = plug(new)
    decided(name)
    report.line('an interface that comes after the marker belongs to the CNI', State().complaints(launched, [new]), describe)
    report.line('an interface of the CNI causes no request to the metadata service', requests()[before:])
    report.line('nodestrap keeps the decision for the interface of the CNI', complaints_kept(launched, [new]), describe)
    do_as_the_cni(new, name)
    had = of_the_cni(name)
    report.line('(traffic from the address of the CNI leaves through its interface)', [] if speaks(new) == f'{new.index + 1} {new.mac} {new.ipv4s[0]}' else [speaks(new)])
    for what, words in (('networkctl reload', ('networkctl', 'reload')), ('a restart of networkd', ('systemctl', 'restart', 'systemd-networkd')),
                        ('udevadm trigger', ('udevadm', 'trigger', '--settle', '--action=add', '--subsystem-match=net')),
                        ('a second networkctl reload', ('networkctl', 'reload'))):
        sh(*words)
        configured(launched)
        now = of_the_cni(name)
        found = [f'{k}: {had[k]} has become {now[k]}' for k in had if now[k] != had[k]]
        report.line(f'the interface of the CNI keeps its settings after {what}', found + State().complaints(launched, [new]), describe)
    report.line('the metadata service gets no request during these events', requests()[before:])


def goes_and_comes(report, all_of):
    """An interface of power-on is taken away; another comes in its place, under its name; then it comes back."""
    *launched, last = all_of[:LAUNCHED]
    cni, other = all_of[LAUNCHED:LAUNCHED + 2]
    name = names()[last.mac]
    os.unlink(f'{interfaces.LINKS}10-{last.mac.replace(":", "")}.link')
    kept = decisions()
    unplug(last)
    wait('its file is still there', lambda: name not in interfaces.network_files())
    wait('its rules are still there', lambda: not State().complaints_rules(launched))
    report.line('an interface that is gone leaves no file and no rule', State().complaints(launched, [cni]), describe)
    report.line('nodestrap keeps the decision for an interface that is gone', [f'{k} is lost' for k in kept if k not in decisions()])
    call(other, name)
    reveal(other)
    now = plug(other, card=last)
    report.line('(another interface has the name of the old one)', [] if now == name else [now, name])
    decided(now)
    report.line('another interface under that name belongs to the CNI', State().complaints(launched, [cni, other]), describe)
    unplug(other, card=last)
    os.unlink(f'{interfaces.LINKS}10-{other.mac.replace(":", "")}.link')
    call(last, name)
    now = plug(last)
    decided(now)
    configured(all_of[:LAUNCHED])
    report.line('networkd manages the old interface again when it comes back', State().complaints(all_of[:LAUNCHED], [cni]), describe)


def first(report, all_of):
    launched = all_of[:LAUNCHED]
    report.line('first boot: every interface has its routes and rules', State().complaints(launched), describe)
    report.line('first boot: boot-hook ends before the configuration phase, and systemd drops no job', complaints_boot(launched), describe)
    report.line('first boot: nodestrap requests each path once', complaints_requests(launched))
    report.line('first boot: nodestrap keeps the decisions', complaints_kept(launched, []), describe)
    hot_plugged(report, all_of)
    goes_and_comes(report, all_of)
    swap(all_of)
    sh('sync')
    sh('systemctl', '--no-block', 'reboot')


def swap(all_of):
    """Interfaces exchange names: two of networkd, and one of networkd with that of the CNI. None gets a kernel name, since that can be taken."""
    have = names()
    one, two, three, cni = (have[e.mac] for e in all_of[1:LAUNCHED + 1])
    for eni, name in zip(all_of, ('front0', two, one, cni, three)):
        call(eni, name)


def second(report, all_of):
    launched, cni = all_of[:LAUNCHED], all_of[LAUNCHED]
    report.line('(interfaces have exchanged their names)', [] if names()[cni.mac] == 'lan3' and names()[all_of[3].mac] == 'lan4' else [names()])
    report.line('second boot: every interface has its routes and rules', State().complaints(launched, [cni]), describe)
    report.line('second boot: boot-hook ends before the configuration phase, and systemd drops no job', complaints_boot([*launched, cni]), describe)
    report.line('second boot: nodestrap requests each path once, and none of the CNI', complaints_requests(launched, [cni]))
    report.line('second boot: the decisions follow the MAC addresses', complaints_kept(launched, [cni]), describe)


def main():
    report = Report()
    if os.environ['VMTEST_BOOT'] == '1':
        first(report, enis())
        return
    second(report, enis())
    report.finish(volumes_used=True)


if __name__ == '__main__':
    try:
        main()
    except (storage.Problem, OSError, KeyError, ValueError) as e:
        broken = Report()
        broken.line('the test runs to its end', [f'{type(e).__name__}: {e}'], describe)
        broken.finish(volumes_used=True)
