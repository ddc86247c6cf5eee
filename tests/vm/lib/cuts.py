# SPDX-License-Identifier: Apache-2.0
"""usage: cuts.py [all]

The power goes, again and again, each time at another place of the run phase; the boot that follows, with nodestrap's units enabled,
must end with a node whose files are complete, and its plan must say what it found.

Boot k judges what became of the cut in boot k - 1 and runs into the next one. Where the power goes is a system call of a program: strace
stops it there (or in its place, so that it never happens), and what reads strace's output tells the world outside to cut. Each kind of
place has its turn once; with "all" also the others.
"""
import collections
import os
import subprocess
import sys

import matrix
import natural
import storage
from storage import BINDS, CACHE, CONTAINERD, HERE, Problem, disks, sh, write

# tool: the program that is stopped, or None for nodestrap itself. call: the system call; before: it does not happen any more; path: only
# where it has to do with this; count: the how manieth. flush: all that was written so far reaches the disks. states: what the next plan
# must have found.
# stale: the disks are those of an array of which one is blank now. other: only with "all", for another cut is of the same kind.
Cut = collections.namedtuple('Cut', 'what tool call count path before flush fs states stale other',
                             defaults=(None, False, False, 'xfs', {}, False, False))
SECOND, THIRD, FIRST = 'DISK2', 'DISK3', 'DISK1'
CUTS = (
    Cut('in mdadm, when one of three disks is a member', 'mdadm', 'write', 1, SECOND, True, states={'create-raid': 'remake'}),
    Cut('in mdadm, when all disks are members', 'mdadm', 'fsync', 1, THIRD, states={'create-raid': 'keep', 'make-filesystem': 'make'}, other=True),
    Cut('between mdadm and mkfs.xfs', 'mkfs.xfs', 'execve', 1, before=True, states={'create-raid': 'keep', 'make-filesystem': 'make'}, other=True),
    Cut('in mkfs.xfs, at its start', 'mkfs.xfs', 'pwrite64', 4, flush=True, states={'create-raid': 'keep'}, other=True),
    Cut('in mkfs.xfs, in its middle', 'mkfs.xfs', 'pwrite64', 20, flush=True, states={'create-raid': 'keep'}),
    Cut('in mkfs.ext4, when half is written', 'mkfs.ext4', 'pwrite64', 60, flush=True, fs='ext4', states={'create-raid': 'keep'}, other=True),
    Cut('in mkfs.ext4, before it is flushed', 'mkfs.ext4', 'fsync', 1, before=True, fs='ext4', states={'create-raid': 'keep'}),
    Cut('before the new file system is marked as finished', None, 'ioctl', 1, storage.MOUNT_PATH + '/0', True, states={'create-raid': 'keep', 'make-filesystem': 'remake'}),
    Cut('when the new file system is marked as finished', None, 'ioctl', 1, storage.MOUNT_PATH + '/0', fs='ext4', states={'create-raid': 'keep'}, other=True),
    Cut('in cp', 'cp', 'utimensat', 5, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('in cp, flushed', 'cp', 'utimensat', 9, flush=True, fs='ext4', states={'create-raid': 'keep', 'make-filesystem': 'keep'}, other=True),
    Cut('when all is copied and nothing renamed', None, 'renameat2', 1, before=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}, other=True),
    Cut('when one directory is renamed', None, 'renameat2', 1, flush=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}),
    Cut('before the first original is deleted', None, 'unlinkat', 1, before=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}, other=True),
    Cut('when the data of one stale member is wiped', None, 'fsync', 1, FIRST, stale=True, states={'create-raid': 'remake', 'make-filesystem': 'remake'}, other=True),
    Cut('when one stale member is wiped', None, 'fsync', 2, FIRST, stale=True, states={'create-raid': 'remake', 'make-filesystem': 'remake'}),
    Cut('when some originals are deleted', None, 'unlinkat', 6, flush=True, states={'create-raid': 'keep', 'make-filesystem': 'keep'}, other=True),
)
NEXT = HERE + '/cut'
SOURCES = ('-c', 'imds://user-data', '-c', 'file:///etc/eks/nodeadm.d/', '--config-cache', CACHE)
TEXT = 'VMTEST CUT-HERE'


def announcer(cut):
    """Reads strace's output and tells when the program stands still."""
    path = HERE + '/announce'
    write(path, f'''#!/bin/sh
while read -r line; do
        echo "$line" >>{HERE}/out/cuts
        case $line in *SIGSTOP*) {"sync;" if cut.flush else ""} echo "{TEXT}" >/dev/ttyS0; exec sleep infinity;; esac
done
''')
    os.chmod(path, 0o755)
    return path


def arm(cut):
    by_serial = {FIRST: disks()[0].name, SECOND: disks()[1].name, THIRD: disks()[2].name}
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
        write(wrapper, f'#!/bin/sh\necho "{TEXT}" >/dev/ttyS0; exec sleep infinity\n')
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


def run_into(node, cut, number):
    """Does not come back, unless the place is never reached."""
    disarm()
    node.configure(fs=cut.fs)
    write('/etc/eks/nodeadm.d/fs.yaml', f'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {{instance: {{localStorage: {{filesystem: {cut.fs}}}}}}}\n')
    node.clear()
    if cut.stale:
        members = ['/dev/' + d.name for d in disks()]
        matrix.create('RAID0', members)
        matrix.mkfs('xfs', '/dev/md/kubernetes', 'kubernetes')
        node.stop_arrays()
        storage.blank([disks()[1].name])
    sh('nodestrap', 'init', '--skip', 'run', *SOURCES)
    natural.save(NEXT, {'number': number, 'want': {path: storage.tree(path) for path in BINDS}})
    words = arm(cut)
    os.sync()
    env = dict(os.environ, PATH=f'{HERE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')
    done = subprocess.run([*words, 'nodestrap', 'init', '--skip', 'config', *SOURCES], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300, check=False)
    return [f'the place was never reached: exit {done.returncode}: {done.stderr[-1500:]}', storage.read(HERE + '/out/cuts', '')[-1500:]]


def judge(node, cut, saved):
    """What lay on the root disk before the cut, and what the boot has written there since, is on the disks."""
    node.want = {path: {**saved['want'][path], **node.want[path]} for path in BINDS}
    found = node.complaints_up(node.filter(cut.states), fs=cut.fs)
    if not found and not os.path.exists(CONTAINERD + '/snapshots/1/pause'):
        found.append('what the image brought is gone')
    return found


def main(extent=None):
    cuts = CUTS if extent == 'all' else [c for c in CUTS if not c.other]
    node, report = natural.start('RAID0', len(disks()), 'xfs')
    saved = natural.load(NEXT)
    number = 0
    if saved:
        number = saved['number'] + 1
        cut = cuts[saved['number']]
        node.configure(fs=cut.fs)
        found = judge(node, cut, saved)
        report.line(f'the power went {cut.what}: the next boot is a node again', found, node.describe)
        for a in node.last.plan['actions'] if node.last else []:
            if a['type'] in ('create-raid', 'make-filesystem', 'move-files'):
                print(f'# its plan: {a["type"]}: {a["state"]}: {a["why"]}')
    while number < len(cuts):
        os.sync()
        report.line(f'a power cut {cuts[number].what}', run_into(node, cuts[number], number))
        number += 1
    report.finish()


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (Problem, OSError, KeyError, subprocess.TimeoutExpired) as e:
        storage.Report().line(f'boot {os.environ["VMTEST_BOOT"]}', [f'{type(e).__name__}: {e}'])
        storage.Report().finish()
