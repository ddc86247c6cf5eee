# SPDX-License-Identifier: Apache-2.0
"""Volumes that grow: between two boots, from outside, and under a running node. There NVMe/TCP on the loopback interface stands in for
EBS, since drives of QEMU keep their first size.
"""
import os
import time

import bad
import natural
import storage
from storage import CONTAINERD, KUBELET, MIB, Report, sh, write
from volumes import SDB, SDC, Entry, VolumeNode, finish, volume, world

SAVED = storage.HERE + '/kept'
ENTRIES = (Entry('/dev/sdb', CONTAINERD, 'xfs', SDB), Entry('/dev/sdc', [KUBELET, '/srv/data'], 'ext4', SDC))
LIVE = 'vol0ab12cd34ef567890'


def mib(path):
    s = os.statvfs(path)
    return s.f_blocks * s.f_frsize // MIB


def sizes(want):
    """want: {path: at least so many MiB}"""
    return [f'{path} has {mib(path)} MiB, want {least}' for path, least in want.items() if mib(path) < least]


def first(node, report):
    node.clear('/srv/data')
    node.boot()
    report.line('(nodestrap uses two volumes)', node.complaints_up(made=2), node.describe)
    for path in (CONTAINERD, KUBELET, '/srv/data'):
        storage.bake(path, 'user')
    node.keep()
    natural.save(SAVED, (node.kept, node.tops))
    sh('sync')
    world('grow 1 1500M')
    world('grow 2 900M')
    sh('systemctl', '--no-block', 'reboot')


def second(node, report):
    node.kept, node.tops = natural.load(SAVED)
    small = [s for s, n in ((SDB, 1500), (SDC, 900)) if storage.read(f'/sys/block/{volume(s).name}/size') != str(n * 2048)]
    report.line('(the drives have grown)', small)
    node.boot()
    report.line('file systems grow with volumes that grew between two boots, and keep their data', node.complaints_up(tools=[], made=0), node.describe)
    report.line('the grown file systems use all the new room', sizes({CONTAINERD: 1300, KUBELET: 750, '/srv/data': 750}))
    report.line('a second run after the growth between boots changes nothing', node.complaints_again(), node.describe)
    node.off()
    node.on()
    node.boot()
    grown = [i for i, outcome in node.outcomes() if i.startswith('grow-filesystem:') and outcome != 'unchanged']
    report.line('no file system grows at the next boot', node.complaints_up(made=0) + grown, node.describe)


def live(node, report, fs):
    """The volume grows while it is mounted and in use; the next init grows its file system."""
    t = bad.Target(LIVE, 900, '0 819200 linear {loop} 0', storage.EBS)
    node.configure(Entry('vol-' + LIVE[3:], CONTAINERD, fs, LIVE))
    node.boot()
    report.line(f'(nodestrap uses a volume of 400 MiB with {fs})', node.complaints_up(made=1), node.describe)
    storage.bake(CONTAINERD, 'user')
    node.keep()
    node.want.update(node.kept)
    before = mib(CONTAINERD), storage.mounts(), sh('systemctl', 'show', '-P', 'InvocationID', *storage.UNITS)
    t.become('0 {sectors} linear {loop} 0')
    write(t.base + '/namespaces/1/revalidate_size', '1')
    while int(storage.read(f'/sys/block/{t.disk.name}/size')) != t.sectors:
        time.sleep(0.1)
    report.line('(the volume has grown, and its file system has not)', [] if mib(CONTAINERD) == before[0] else [mib(CONTAINERD)])
    node.again()
    found = sizes({CONTAINERD: 780}) + [f'exit {node.last.code}', node.last.err] * bool(node.last.code) + list(node.complaints_data())
    found += ['the mounts are others'] * (storage.mounts() != before[1])
    found += ['daemons were restarted'] * (sh('systemctl', 'show', '-P', 'InvocationID', *storage.UNITS) != before[2])
    report.line(f'the next init grows a mounted {fs} and restarts nothing', found, node.describe)
    report.line('a second run after the growth of a mounted volume changes nothing', node.complaints_again(), node.describe)
    node.off()
    t.remove()


def main():
    node, report = VolumeNode(), Report()
    node.configure(*ENTRIES)
    if os.environ['VMTEST_BOOT'] == '1':
        first(node, report)
        return
    second(node, report)
    node.clear()
    for fs in ('xfs', 'ext4'):
        live(node, report, fs)
        node.clear()
    finish(report)


if __name__ == '__main__':
    try:
        main()
    except (storage.Problem, OSError, KeyError) as e:
        Report().line('the test runs to its end', [f'{type(e).__name__}: {e}'])
        finish(Report())
