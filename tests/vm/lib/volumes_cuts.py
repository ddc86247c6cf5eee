# SPDX-License-Identifier: Apache-2.0
"""usage: volumes_cuts.py

As cuts.py, for volumes: the power goes while a volume gets its file system, takes in what a directory holds, grows, or is brought up to
date at a later boot. The boot that follows, with the nodestrap units enabled, must end with a node whose directories are complete.
"""
import collections
import os
import subprocess

import cuts
import natural
import storage
from storage import BINDS, CONTAINERD, HERE, KUBELET, Problem, Report, sh, write
from volumes import BELOW, SDB, Entry, after_boot, finish, top, volume

# entry: whole or shared. used: it was filled by an earlier boot. The rest is as in cuts.py.
Cut = collections.namedtuple('Cut', 'what tool call count path before flush entry used', defaults=(None, False, False, 'whole', False))
ENTRIES = {'whole': Entry('/dev/sdb', CONTAINERD, 'xfs', SDB), 'shared': Entry('/dev/xvdb', [KUBELET, CONTAINERD], 'ext4', SDB)}
PLACE = '/mnt/k8s-volumes/xvdb'
CUTS = (
    Cut('in mkfs.xfs, at its start', 'mkfs.xfs', 'pwrite64', 4, flush=True),
    Cut('in mkfs.xfs, in its middle', 'mkfs.xfs', 'pwrite64', 20, flush=True),
    Cut('in mkfs.ext4, when half is written', 'mkfs.ext4', 'pwrite64', 60, flush=True, entry='shared'),
    Cut('in mkfs.ext4, before it is flushed', 'mkfs.ext4', 'fsync', 1, before=True, entry='shared'),
    Cut('before the new file system is marked as finished', None, 'ioctl', 1, PLACE, True),
    Cut('when the new file system is marked as finished', None, 'ioctl', 1, PLACE, entry='shared'),
    Cut('when nothing is copied yet', 'cp', 'execve', 1, before=True),
    Cut('in cp', 'cp', 'utimensat', 5),
    Cut('in cp, flushed', 'cp', 'utimensat', 9, flush=True),
    Cut('in the first of two copies, flushed', 'cp', 'utimensat', 1, flush=True, entry='shared'),
    Cut('when all is copied and nothing renamed', None, 'renameat2', 1, before=True),
    Cut('when one entry of a directory that becomes the whole volume is renamed', None, 'renameat2', 1, flush=True),
    Cut('when one of two directories is renamed', None, 'renameat2', 1, flush=True, entry='shared'),
    Cut('before the first original is deleted', None, 'unlinkat', 2, before=True),
    Cut('when some originals are deleted', None, 'unlinkat', 6, flush=True),
    Cut('when some originals of two directories are deleted', None, 'unlinkat', 9, flush=True, entry='shared'),
    Cut('before a volume with data grows', None, 'ioctl', 2, PLACE, True, used=True),
    Cut('when a volume with data has grown', None, 'ioctl', 2, PLACE, used=True),
    Cut('when a volume with data has grown, flushed', None, 'ioctl', 1, PLACE, flush=True, used=True, entry='shared'),
)
NEXT = HERE + '/cut'


def configure(node, cut):
    """For this run, and for the units at the next boot."""
    node.configure(ENTRIES[cut.entry])
    text = storage.read(storage.CONFIG).splitlines()
    at = next(i for i, line in enumerate(text) if line.startswith('  instance:'))
    write('/etc/eks/nodeadm.d/volumes.yaml', 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n' + '\n'.join(text[at:]) + '\n')


def put_to_use(node, cut):
    """A volume that an earlier boot filled, and that has grown since."""
    entry, name = ENTRIES[cut.entry], '/dev/' + volume(SDB).name
    size = ['-d', 'size=400m', name] if entry.fs == 'xfs' else [name, '400M']
    sh('/usr/sbin/mkfs.' + entry.fs, *(['-q', '-f'] if entry.fs == 'xfs' else ['-q', '-F']), *size)
    os.makedirs('/srv/used', exist_ok=True)
    sh('mount', name, '/srv/used')
    kept, tops = {}, {}
    for path, _, whole in node.targets():
        folder = '/srv/used' if whole else '/srv/used/' + path.strip('/').replace('/', '-')
        os.makedirs(folder, exist_ok=True)
        storage.bake(folder, 'used')
        kept[path], tops[path] = storage.tree(folder), top(folder)
    sh('umount', '/srv/used')
    storage.settle()
    return kept, tops


def run_into(node, cut, number):
    """Does not come back, unless the place is never reached."""
    cuts.disarm()
    configure(node, cut)
    node.clear()
    kept = put_to_use(node, cut) if cut.used else ({}, {})
    sh('nodestrap', 'init', '--skip', 'run', *cuts.SOURCES)
    natural.save(NEXT, {'number': number, 'want': {path: storage.tree(path) for path in BINDS}, 'tops': {path: top(path) for path in BINDS}, 'kept': kept})
    words = cuts.arm_at(cut, cut.path)
    os.sync()
    env = dict(os.environ, PATH=f'{HERE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')
    done = subprocess.run([*words, 'nodestrap', 'init', '--skip', 'config', *cuts.SOURCES], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, check=False)
    return [f'the place was never reached: exit {done.returncode}: {done.stderr[-1500:]}', storage.read(HERE + '/out/cuts', '')[-1500:]]


def judge(node, cut, saved):
    """What lay in the directories before the cut is on the volume, or what it held before; of a file that the boot has written since,
    that is as good."""
    node.kept, node.tops = saved['kept']
    for path, _, _ in node.targets():
        before = saved['kept'][0].get(path) or saved['want'][path]
        now = storage.tree(path) if os.path.ismount(path) else {}
        node.want[path] = {k: node.on_root[path][k] if not cut.used and now.get(k) == node.on_root[path].get(k) else v for k, v in before.items()}
        node.want_top[path] = saved['kept'][1].get(path) or saved['tops'][path]
        node.kept.setdefault(path, {})          # what is left on the root disk may be there if the volume has it, too
    return [w for w in node.complaints_up() if not (cut.used and BELOW in w)]


def main():
    report, saved, number = Report(), natural.load(NEXT), 0
    node = after_boot(ENTRIES['whole'])
    if saved:
        cut = CUTS[saved['number']]
        number = saved['number'] + 1
        node.configure(ENTRIES[cut.entry])
        found = judge(node, cut, saved) if node.last else ['the run phase has not begun', sh('journalctl', '-b', '-o', 'cat', '--no-pager', '-u', 'nodestrap-config')]
        report.line(f'after a power cut {cut.what}, the next boot is a node', found, node.describe)
    while number < len(CUTS):
        os.sync()
        report.line(f'a power cut happens {CUTS[number].what}', run_into(node, CUTS[number], number))
        number += 1
    finish(report)


if __name__ == '__main__':
    try:
        main()
    except (Problem, OSError, KeyError, subprocess.TimeoutExpired) as e:
        Report().line(f'boot {os.environ["VMTEST_BOOT"]} runs to its end', [f'{type(e).__name__}: {e}'])
        finish(Report())
