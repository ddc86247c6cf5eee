# SPDX-License-Identifier: Apache-2.0
"""usage: cuts.py STRATEGY [few]

The power goes, again and again, each time at another place of the run phase. The boot that follows, with the nodestrap units enabled,
must end with a node whose files are complete, and its plan must say what it found.

Boot k judges what became of the cut in boot k - 1 and runs into the next one. Where the power goes is a system call of a program: strace
stops it there (or in its place, so that it never happens), and what reads strace's output tells the world outside to cut. Each kind of
place has its turn once; with "few" those that the everyday proof has.
"""
import collections
import mmap
import os
import re
import signal
import subprocess
import sys
import threading
import time

import matrix
import natural
import storage
from storage import BINDS, CACHE, CONTAINERD, HERE, Problem, disks, read, sh, write

# tool: the program that is stopped, or None for nodestrap itself. call: the system call; before: it does not happen any more; path: only
# where it has to do with this; count: which of these calls. flush: all that was written so far reaches the disks. states: what the next plan
# must have found.
# stale: which disks are blank by now, of those of an array, or alone, that an earlier boot has filled. dirty: nothing runs, the node is up and
# writes. few: also with "few".
Cut = collections.namedtuple('Cut', 'what tool call count path before flush fs states stale dirty few',
                             defaults=(None, False, False, 'xfs', {}, (), False, False))
FIRST, SECOND, THIRD, FOURTH = 'DISK1', 'DISK2', 'DISK3', 'DISK4'
MARKED = storage.MOUNT_PATH + '/0'
RAID0 = (
    Cut('in mdadm, when one of three disks is a member', 'mdadm', 'write', 1, SECOND, True, states={'create-raid': 'remake'}, few=True),
    Cut('in mdadm, when all disks are members', 'mdadm', 'fsync', 1, THIRD, states={'create-raid': 'keep', 'make-filesystem': 'make'}),
    Cut('between mdadm and mkfs.xfs', 'mkfs.xfs', 'execve', 1, before=True, states={'create-raid': 'keep', 'make-filesystem': 'make'}),
    Cut('in mkfs.xfs, at its start', 'mkfs.xfs', 'pwrite64', 4, flush=True, states={'create-raid': 'keep'}),
    Cut('in mkfs.xfs, in its middle', 'mkfs.xfs', 'pwrite64', 20, flush=True, states={'create-raid': 'keep'}),
    Cut('in mkfs.ext4, when half is written', 'mkfs.ext4', 'pwrite64', 60, flush=True, fs='ext4', states={'create-raid': 'keep'}),
    Cut('in mkfs.ext4, before it is flushed', 'mkfs.ext4', 'fsync', 1, before=True, fs='ext4', states={'create-raid': 'keep'}),
    Cut('before the new file system is marked as finished', None, 'ioctl', 1, MARKED, True, states={'create-raid': 'keep', 'make-filesystem': 'remake'}, few=True),
    Cut('when the new file system is marked as finished', None, 'ioctl', 1, MARKED, fs='ext4', states={'create-raid': 'keep'}),
    Cut('in cp', 'cp', 'utimensat', 5, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('in cp, flushed', 'cp', 'utimensat', 9, flush=True, fs='ext4', states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('when all is copied and nothing renamed', None, 'renameat2', 1, before=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('when one directory is renamed', None, 'renameat2', 1, flush=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}, few=True),
    Cut('before the first original is deleted', None, 'unlinkat', 1, '/var/lib/kubelet', True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('when one stale member is marked', None, 'fsync', 1, FIRST, stale=(1,), states={'create-raid': 'remake', 'make-filesystem': 'remake'}),
    Cut('when the data of one stale member is wiped', None, 'fsync', 2, FIRST, stale=(1,), states={'create-raid': 'remake', 'make-filesystem': 'remake'}),
    Cut('when one stale member is wiped', None, 'fsync', 3, FIRST, stale=(1,), states={'create-raid': 'remake', 'make-filesystem': 'remake'}),
    Cut('when some originals are deleted', None, 'unlinkat', 6, flush=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
)
# What a RAID10 meets in another way: its array can do without some of its members, and has a bitmap.
RAID10 = (
    Cut('in mdadm, when one of four disks is a member', 'mdadm', 'write', 1, SECOND, True, states={'create-raid': 'remake'}),
    Cut('in mdadm, when three of four disks are members', 'mdadm', 'write', 1, FOURTH, True, states={'create-raid': 'repair'}),
    Cut('in mdadm, when all disks are members', 'mdadm', 'fsync', 1, FOURTH, states={'create-raid': 'keep', 'make-filesystem': 'make'}),
    Cut('in mkfs.xfs, in its middle', 'mkfs.xfs', 'pwrite64', 20, flush=True, states={'create-raid': 'keep'}),
    Cut('before the new file system is marked as finished', None, 'ioctl', 1, MARKED, True, fs='ext4', states={'create-raid': 'keep', 'make-filesystem': 'remake'}),
    Cut('in cp, flushed', 'cp', 'utimensat', 9, flush=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('when one directory is renamed', None, 'renameat2', 1, fs='ext4', states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('before a blank member joins', 'mdadm', 'write', 1, SECOND, True, stale=(1,), states={'create-raid': 'repair'}),
    Cut('when a blank member has joined', 'mdadm', 'fsync', 1, SECOND, stale=(1,)),
    Cut('when the data of one stale member is wiped', None, 'fsync', 2, FIRST, stale=(2, 3), states={'create-raid': 'remake', 'make-filesystem': 'remake'}),
    Cut('when one stale member is wiped', None, 'fsync', 3, FIRST, stale=(2, 3), states={'create-raid': 'remake', 'make-filesystem': 'remake'}),
    Cut('while one region of the array is written', None, None, 0, dirty=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
)
# Each disk has its own file system, so work on the second does not touch the first.
MOUNT = (
    Cut('in mkfs.xfs, at its start', 'mkfs.xfs', 'pwrite64', 4, flush=True, stale=(1,)),
    Cut('in mkfs.xfs, in its middle', 'mkfs.xfs', 'pwrite64', 20, flush=True, stale=(1,)),
    Cut('in mkfs.ext4, before it is flushed', 'mkfs.ext4', 'fsync', 1, before=True, fs='ext4', stale=(1,)),
    Cut('before the new file system is marked as finished', None, 'ioctl', 1, storage.MOUNT_PATH + '/2', True, stale=(1,), states={'make-filesystem': ['keep', 'remake']}),
    Cut('when the new file system is marked as finished', None, 'ioctl', 1, storage.MOUNT_PATH + '/2', fs='ext4', stale=(1,)),
    Cut('among two file systems that are made at the same time', 'mkfs.ext4', 'pwrite64', 60, flush=True, fs='ext4'),
    Cut('before one of two is marked as finished', None, 'ioctl', 1, storage.MOUNT_PATH + '/2', True),
)
ALL = {'RAID0': RAID0, 'RAID10': RAID10, 'Mount': MOUNT}
REGION = 512 << 20
NEXT = HERE + '/cut'
SOURCES = ('-c', 'imds://user-data', '-c', 'file:///etc/eks/nodeadm.d/', '--config-cache', CACHE)
TEXT = '<1>VMTEST CUT-HERE'      # by the kernel, which prints at once, whatever holds the terminal


def announcer(cut):
    """Reads strace's output and tells when the program stands still."""
    path = HERE + '/announce'
    write(path, f'''#!/bin/sh
while read -r line; do
        echo "$line" >>{HERE}/out/cuts
        case $line in *SIGSTOP*) {"sync;" if cut.flush else ""} echo "{TEXT}" >/dev/kmsg; exec sleep infinity;; esac
done
''')
    os.chmod(path, 0o755)
    return path


def arm(cut):
    by_serial = dict(zip((FIRST, SECOND, THIRD, FOURTH), (d.name for d in disks())))
    return arm_at(cut, '/dev/' + by_serial[cut.path] if cut.path in by_serial else cut.path)


def arm_at(cut, path):
    """-> the command line in front of nodestrap or, for a tool, a wrapper early in the path and nothing in front."""
    words = ['strace', '-f', '-q', '-e', f'trace={cut.call}', '-e', f'inject={cut.call}:{"retval=0:" if cut.before else ""}signal=SIGSTOP:when={cut.count}',
             *(['-P', path] if path else []), '-o', '|' + announcer(cut)]
    if not cut.tool:
        return words
    quoted = ' '.join("'" + w + "'" for w in words)
    wrapper = f'{HERE}/bin/{cut.tool}'
    os.unlink(wrapper)
    real = next(p for p in (f'/usr/sbin/{cut.tool}', f'/usr/bin/{cut.tool}', f'/sbin/{cut.tool}') if os.path.exists(p))
    if cut.call == 'execve':            # before it begins
        write(wrapper, f'#!/bin/sh\necho "{TEXT}" >/dev/kmsg; exec sleep infinity\n')
    else:
        write(wrapper, f'#!/bin/sh\nexec {quoted} {real} "$@"\n')
    os.chmod(wrapper, 0o755)
    return []


def disarm():
    for tool in ('mdadm', 'mkfs.xfs', 'mkfs.ext4', 'cp'):
        wrapper = f'{HERE}/bin/{tool}'
        if os.path.lexists(wrapper):
            os.unlink(wrapper)
        os.symlink('../tool', wrapper)


def filled_before(node, cut):
    """What an earlier boot has filled, and the stale disks are blank."""
    devices = ['/dev/' + d.name for d in disks()]
    places = {f'{storage.MOUNT_PATH}/{i + 1}': d for i, d in enumerate(devices) if i not in cut.stale}
    if node.raid():
        matrix.create(node.strategy, devices)
        places = {MARKED: '/dev/md/kubernetes'}
    for place, device in places.items():
        matrix.mkfs(cut.fs, device, 'kubernetes')
        os.makedirs('/srv/filled', exist_ok=True)
        sh('mount', device, '/srv/filled')
        storage.bake('/srv/filled/mine', 'mine')
        if 'remake' not in cut.states.values():
            node.kept[place] = storage.tree('/srv/filled')
        sh('umount', '/srv/filled')
    node.stop_arrays()
    storage.blank([disks()[i].name for i in cut.stale])


def run_into(node, cut, number):
    """Does not come back, unless the place is never reached."""
    disarm()
    node.configure(fs=cut.fs)
    write('/etc/eks/nodeadm.d/fs.yaml', f'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {{instance: {{localStorage: {{filesystem: {cut.fs}, expectedDisks: {node.n}}}}}}}\n')
    if cut.dirty:
        return write_a_region(node, number)
    node.clear()
    if cut.stale:
        filled_before(node, cut)
    natural.save(natural.KEPT, node.kept)
    sh('nodestrap', 'init', '--skip', 'run', *SOURCES)
    natural.save(NEXT, {'number': number, 'want': {path: storage.tree(path) for path in BINDS}})
    words = arm(cut)
    os.sync()
    env = dict(os.environ, PATH=f'{HERE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')
    done = subprocess.run([*words, 'nodestrap', 'init', '--skip', 'config', *SOURCES], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, check=False)
    return [f'the place was never reached: exit {done.returncode}: {done.stderr[-1500:]}', storage.read(HERE + '/out/cuts', '')[-1500:]]


def dirty_regions():
    """Of each member's bitmap, as it lies on the disk."""
    return [int(re.search(r'(\d+) dirty', sh('mdadm', '--examine-bitmap', '/dev/' + d.name))[1]) for d in disks()]


def write_a_region(node, number):
    """What is there is written there once more, while the file system stands still and md has noted that nothing is under way."""
    node.keep()
    natural.save(natural.KEPT, node.kept)
    natural.save(NEXT, {'number': number, 'want': {path: storage.tree(path) for path in BINDS}})
    write(HERE + '/baked', '')
    os.sync()
    sh('fsfreeze', '--freeze', MARKED)
    while any(dirty_regions()):
        time.sleep(0.2)
    device = os.open('/dev/' + next(iter(storage.arrays())), os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, mmap.PAGESIZE)
    os.preadv(device, [page], 3 * REGION + (1 << 20))

    def go_on():                        # a fifth of a second after the last write the superblock says that all copies are the same
        while True:
            os.pwritev(device, [page], 3 * REGION + (1 << 20))
    threading.Thread(target=go_on, daemon=True).start()
    while not all(dirty_regions()):
        time.sleep(0.2)
    if dirty_regions() != [1] * len(disks()):
        return [f'{dirty_regions()} regions are dirty']
    write('/dev/kmsg', TEXT + '\n')
    return [signal.pause()]


def complaints_resync():
    """md has compared the copies of that region, and no more: what has been read of the disks since the boot."""
    name = next(iter(storage.arrays()))
    sh('mdadm', '--wait', '/dev/' + name, check=False)          # 1: nothing to wait for
    have = sum(int(read(f'/sys/block/{d.name}/stat').split()[2]) * 512 for d in disks())
    said = re.findall(r'.*\bmd.*(?:resync|RAID array|reconstruction|bitmap).*', sh('dmesg'))
    print('\n'.join(f'# {line}' for line in said))
    print(f'# {have >> 20} MiB were read, of {4 * 2 * REGION >> 20}')
    return [f'{have} bytes were read', *said] if not 2 * REGION <= have < 3 * REGION else []


def complaints_trim():
    """nodestrap-trim discards deleted blocks, unless the timer of util-linux does."""
    def start():
        before = [storage.counters(d.name)[1] for d in disks()]
        sh('systemctl', 'start', 'nodestrap-trim.service')
        return [storage.counters(d.name)[1] - n for d, n in zip(disks(), before)]
    found = [] if sh('systemctl', 'is-active', 'nodestrap-trim.timer', check=False).strip() == 'active' else ['the timer does not run']
    discards = start()
    said = sh('journalctl', '-b', '-o', 'cat', '--no-pager', '-u', 'nodestrap-trim.service')
    if not all(discards) or f'{MARKED}: ' not in said:
        found.append(f'discards: {discards}: {said}')
    print(f'# discards: {discards}')
    sh('systemctl', 'enable', 'fstrim.timer')
    if any(start()):
        found.append('it discards what fstrim.service does as well')
    write('/etc/fstab', '# none\n\n /dev/none /srv/none ext4 noauto 0 0\n')
    if not all(start()):
        found.append('it leaves it to a fstrim.service that goes by /etc/fstab')
    return found


def judge(node, cut, saved):
    """What lay on the root disk before the cut, and what the boot has written there since, is on the disks."""
    node.want = {path: {**saved['want'][path], **node.want[path]} for path in BINDS}
    resync = complaints_resync() if cut.dirty else []
    found = resync + node.complaints_up(node.filter(cut.states), fs=cut.fs)
    if not found and not os.path.exists(CONTAINERD + '/snapshots/1/pause'):
        found.append('what the image brought is gone')
    return found


def main(strategy, extent=None):
    cuts = [c for c in ALL[strategy] if extent != 'few' or c.few]
    node, report = natural.start(strategy, len(disks()), 'xfs')
    saved = natural.load(NEXT)
    number = 0
    if saved:
        number = saved['number'] + 1
        cut = cuts[saved['number']]
        node.configure(fs=cut.fs)
        found = judge(node, cut, saved)
        report.line(f'after a power cut {cut.what}, the next boot is a node', found, node.describe)
        for a in node.last.plan['actions'] if node.last else []:
            if a['type'] in ('create-raid', 'make-filesystem', 'move-files'):
                print(f'# its plan: {a["type"]}: {a["state"]}: {a["why"]}')
    while number < len(cuts):
        os.sync()
        report.line(f'a power cut happens {cuts[number].what}', run_into(node, cuts[number], number))
        number += 1
    if strategy == 'RAID10':
        report.line('nodestrap-trim discards unused blocks, unless fstrim.timer does', complaints_trim())
    report.finish()


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (Problem, OSError, KeyError, subprocess.TimeoutExpired) as e:
        storage.Report().line(f'boot {os.environ["VMTEST_BOOT"]} runs to its end', [f'{type(e).__name__}: {e}'])
        storage.Report().finish()
