# SPDX-License-Identifier: Apache-2.0
"""usage: boots.py STRATEGY DISKS FILESYSTEM

The same machine from power-on, again and again, with its units enabled and a real containerd: first boot, a second run by hand, reboot,
stop and start (blank disks with other serials, another host name, remains of nodeadm in /etc), a foreign disk.
"""
import os
import sys

import natural
import storage
from storage import CONTAINERD, KUBELET, MOUNT_PATH, PODS, Problem, bake, disks, sh, write

MINE = ('blobs', 'snapshots', 'pki', 'user')
OLD_DISK = '/dev/disk/by-uuid/5c1c3e0d-2b6b-4a57-9c4d-3c4d0a7b1e11'
STALE = {'Mount': {'mnt-k8s\\x2ddisks-1.mount': (OLD_DISK, MOUNT_PATH + '/1', 'xfs', 'defaults,noatime')}}     # binds nothing
STALE['RAID0'] = STALE['RAID10'] = {'mnt-k8s\\x2ddisks-0.mount': (OLD_DISK, MOUNT_PATH + '/0', 'xfs', 'defaults,noatime'),
                                    'var-lib-containerd.mount': (MOUNT_PATH + '/0/containerd', CONTAINERD, 'none', 'bind')}


def user_data(node, word):
    if node.strategy == 'Mount':
        for target, _, _ in node.expected_mounts():
            bake(f'{target}/user/{word}', word)
        return
    bake(f'{CONTAINERD}/user/{word}', word)
    write(f'{PODS}/user/{word}.log', word)
    write(f'{KUBELET}/user/{word}', word)
    bake(f'{MOUNT_PATH}/0/user/{word}', word)


def keep(node):
    """What must be there after the next boot; files of containerd itself change until it stops."""
    kept = {}
    for m in node.our_mounts():
        kept[m.target] = {k: v for k, v in storage.tree(m.target).items() if k.split('/')[0] in MINE}
    natural.save(natural.KEPT, kept)


def leave_remains(strategy):
    write('/.aws/mdadm.conf', 'ARRAY /dev/md/kubernetes metadata=1.2 name=old:kubernetes UUID=3aaa0122:29827cfa:5331ad66:ca767371\n')
    wants = '/etc/systemd/system/multi-user.target.wants/'
    for unit, (what, where, kind, options) in STALE[strategy].items():
        write('/etc/systemd/system/' + unit, f'[Unit]\nDescription=Of an earlier boot\n[Mount]\nWhat={what}\nWhere={where}\nType={kind}\nOptions={options}\n'
                                             '[Install]\nWantedBy=multi-user.target\n')
        os.symlink('../' + unit, wants + unit)


def sandbox(node):
    """Without this image no pod starts, and only this machine has it."""
    if node.strategy == 'Mount':
        return []
    images = sh('ctr', '--namespace', 'k8s.io', 'images', 'ls', check=False)
    rows = [row for row in images.splitlines() if row.split() and row.split()[0] == natural.SANDBOX]
    return [] if rows and 'io.cri-containerd.pinned=pinned' in rows[0] else [f'containerd has no sandbox image, or has not pinned it: {images}']


def second_run(node):
    before = storage.mounts(), [sh('systemctl', 'show', '-P', 'InvocationID', u) for u in storage.UNITS]
    words = ['nodestrap', 'init', '-c', 'imds://user-data', '-c', 'file:///etc/eks/nodeadm.d/', '--config-cache', storage.CACHE]
    sh(*words)
    found = [] if (storage.mounts(), [sh('systemctl', 'show', '-P', 'InvocationID', u) for u in storage.UNITS]) == before else ['mounts or daemons changed']
    actions = natural.status()['runs']['config,devices,run']['actions']
    return found + [f'{a["id"]}: {a["outcome"]}' for a in actions if a['outcome'] != 'unchanged'] + ['nothing is reported'] * (len(actions) < 10)


def make_foreign(node):
    """For the next boot: swap space where an instance store is."""
    node.off()
    storage.blank([d.name for d in disks()])
    sh('mkswap', '/dev/' + disks()[0].name)
    sh('sync')


def main(strategy, n, fs):
    node, report = natural.start(strategy, int(n), fs)
    boot, what = int(os.environ['VMTEST_BOOT']), f'{strategy}, {n} disks, {fs}'
    if boot == 1:
        report.line(f'{what}: the first boot sets up the node', node.complaints_up(node.filter(natural.FRESH)) + sandbox(node), node.describe)
        report.line(f'{what}: a second run changes nothing', second_run(node))
        user_data(node, 'first')
        keep(node)
    elif boot == 2:
        report.line(f'{what}: a reboot sets up the node with its data', node.complaints_up(node.filter(natural.AGAIN)) + sandbox(node), node.describe)
        write('/etc/hostname', 'ip-10-9-8-7\n')
        leave_remains(node.strategy)
        natural.save(natural.KEPT, {})
        sh('sync')
        write('/dev/ttyS0', 'VMTEST blank-drives\n')
    elif boot == 3:
        report.line(f'{what}: a stop and start sets up the node, with another host name and remains of nodeadm', node.complaints_up(node.filter(natural.FRESH)) + sandbox(node), node.describe)
        sh('systemctl', 'daemon-reload')
        storage.settle()
        report.line(f'{what}: systemd leaves the mounts alone', list(node.complaints_mounts()), node.describe)
        make_foreign(node)
    else:
        serial = disks()[0].serial
        last = storage.sh('nodestrap', 'status')
        found = [f'exit {node.last.code}'] * (node.last.code != 30) + node.complaints_down() + [last] * ('EDISKUSED' not in last or serial not in last)
        report.line(f'{what}: init fails with EDISKUSED and the serial number of a foreign disk', found, node.describe)
        report.finish()
    sh('systemctl', '--no-block', 'reboot')


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (Problem, OSError, KeyError) as e:
        storage.Report().line(f'boot {os.environ["VMTEST_BOOT"]} of {" ".join(sys.argv[1:])} runs to its end', [f'{type(e).__name__}: {e}'])
        storage.Report().finish()
