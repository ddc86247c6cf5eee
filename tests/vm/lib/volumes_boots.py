# SPDX-License-Identifier: Apache-2.0
"""usage: volumes_boots.py stores | shared

The same machine from power-on, twice, with its units enabled and a real containerd: first boot, a second run by hand, then
stores: a volume with xfs for containerd, RAID0 for the rest of the node; stop and start: the stores come back blank, the volume as it was
shared: one volume with ext4 for containerd and kubelet; reboot
"""
import os
import sys

import boots
import natural
import storage
from storage import CONTAINERD, HERE, KUBELET, PODS, Problem, Report, bake, read, sh, write
from volumes import SDB, Entry, after_boot, finish, top, volume, world

ENTRIES = {'stores': Entry('/dev/sdb', CONTAINERD, 'xfs', SDB), 'shared': Entry('vol-' + SDB[3:], [KUBELET, CONTAINERD], 'ext4', SDB)}
UUID, IMAGE = HERE + '/uuid', 'example.test/pulled:1'


def keep(node):
    """What must be there after the next boot; files of containerd itself change until it stops."""
    mine = {t: {k: v for k, v in storage.tree(t).items() if k.split('/')[0] in boots.MINE} for t, _, _ in node.targets()}
    natural.save(natural.KEPT, (mine, {t: top(t) for t in mine}))


def uuid():
    return sh('blkid', '-p', '-s', 'UUID', '-o', 'value', '/dev/' + volume(SDB).name).strip()


def images(*wanted):
    names = sh('ctr', '--namespace', 'k8s.io', 'images', 'ls', '--quiet', check=False)
    return [f'containerd has no image {n} but {names}' for n in wanted if n not in names]


def stores_used(node, kind):
    """What the volume does not have is on the instance stores."""
    if kind != 'stores':
        return []
    on, arrays = {m.target: m.number for m in storage.mounts()}, {n for n, _ in storage.arrays().values()}
    return [f'{p} is on {on.get(p)}, no array of {arrays}' for p in (KUBELET, PODS) if on.get(p) not in arrays]


def first(node, kind, report):
    found = node.complaints_up(made=2 if kind == 'stores' else 1)
    report.line(f'{kind}: the first boot sets up the node', found + stores_used(node, kind) + images(natural.SANDBOX), node.describe)
    report.line(f'{kind}: a second run changes nothing', boots.second_run(node))
    for path in (CONTAINERD, KUBELET):
        bake(f'{path}/user', 'user')
    sh('python3', HERE + '/archive.py', '/run/pulled.tar', IMAGE)
    sh('ctr', '--namespace', 'k8s.io', 'images', 'import', '/run/pulled.tar')
    keep(node)
    write(UUID, uuid())
    sh('sync')
    if kind == 'stores':
        world('blank-drives')
    sh('systemctl', '--no-block', 'reboot')


def second(node, kind, report):
    found = node.complaints_up(made=1 if kind == 'stores' else 0)
    found += [f'the file system is {uuid()}, was {read(UUID)}'] * (uuid() != read(UUID))
    found += stores_used(node, kind) + images(natural.SANDBOX, IMAGE)
    report.line(f'{kind}: a {"stop and start" if kind == "stores" else "reboot"} keeps the data of the volume', found, node.describe)
    sh('systemctl', 'daemon-reload')
    storage.settle()
    report.line(f'{kind}: systemd leaves the mounts alone', list(node.complaints_mounts()), node.describe)
    finish(report)


def main(kind):
    node = after_boot(ENTRIES[kind])
    if not node.last:
        raise Problem(f'the run phase has not begun:\n{sh("journalctl", "-b", "-o", "cat", "--no-pager", "-u", "nodestrap-config.service")}')
    node.want_top[CONTAINERD] = top(CONTAINERD)         # containerd itself gives it another mode
    (first if os.environ['VMTEST_BOOT'] == '1' else second)(node, kind, Report())


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (Problem, OSError, KeyError) as e:
        Report().line(f'boot {os.environ["VMTEST_BOOT"]} runs to its end', [f'{type(e).__name__}: {e}'])
        finish(Report())
