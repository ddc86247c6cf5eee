# SPDX-License-Identifier: Apache-2.0
"""Volumes that nodestrap must not use, and places that it must not use them at: a sentence that names them, and not one write to any
drive; and what looks bad and is not.

Each case is a generator as in bad.py: what stands before its yield breaks the machine (and yields cause, texts, exit status), what
stands behind it mends it.
"""
import os

import bad
import storage
from storage import BINDS, CONTAINERD, KUBELET, PODS, Problem, Report, disks, sh, write
from volumes import BELOW, MBR, SDB, SDC, Entry, VolumeNode, by_id, finish, put, volume

PLAIN = Entry('/dev/sdb', CONTAINERD, 'xfs', SDB)


def refused(word, *says, code=30):
    return word, says, code


def holds(what, *says):
    """A case that writes to the volume: what(name of the drive)."""
    def case(node):
        node.configure(PLAIN)
        what(volume(SDB).name)
        storage.settle()
        yield refused('EDISKUSED', '/dev/sdb', SDB, *says)
    case.__doc__ = f'nodestrap refuses a volume with {says[-1]}'
    return case


lvm = holds(lambda name: put(name, 512, bytes(bad.LVM)), 'LVM')
luks = holds(lambda name: put(name, 0, b'LUKS\xba\xbe\x00\x01' + b'aes' + bytes(157) + b'8f8b9d9e-1b1c-4f9e-8f7e-0123456789ab'), 'LUKS')
swap = holds(lambda name: sh('mkswap', '/dev/' + name), 'swap')
partition = holds(lambda name: put(name, 0, MBR), 'partition')
btrfs = holds(lambda name: put(name, 0x10000, bytes(64) + b'_BHRfS_M' + bytes(8) + bytes(200)), 'btrfs')


def unknown_data(node):
    """nodestrap refuses a volume with data but no signature"""
    node.configure(PLAIN)
    put(volume(SDB).name, 200 << 20, os.urandom(1 << 20))
    yield refused('EDISKDATA', '/dev/sdb', SDB, f'`blkdiscard --zeroout /dev/{volume(SDB).name}`')


def member(node):
    """nodestrap refuses a volume that is a member of an array"""
    node.configure(PLAIN)
    names = [f'/dev/{volume(s).name}' for s in (SDB, SDC)]
    sh(bad.MDADM, '--create', '/dev/md/theirs', '--run', '--homehost=any', '--level=0', '--raid-devices=2', *names)
    storage.settle()
    yield refused('EDISKUSED', '/dev/sdb', SDB, os.path.basename(os.path.realpath('/dev/md/theirs')))
    sh(bad.MDADM, '--stop', '/dev/md/theirs')
    storage.settle()
    node.boot()         # nothing holds it now, but what it says of itself
    wrong = node.complaints_refused('EDISKUSED', [SDB, 'raid'])
    if wrong:
        raise Problem('\n'.join(wrong))


def held(node):
    """nodestrap refuses a volume that device mapper holds"""
    node.configure(PLAIN)
    sh('dmsetup', 'create', 'theirs', '--table', f'0 2048 linear /dev/{volume(SDB).name} 0')
    storage.settle()
    yield refused('EDISKUSED', SDB, os.path.basename(os.path.realpath('/dev/mapper/theirs')))
    sh('dmsetup', 'remove', 'theirs')


def mounted_elsewhere(node):
    """nodestrap refuses a volume that is mounted elsewhere"""
    node.configure(PLAIN)
    sh('/usr/sbin/mkfs.ext4', '-q', '-F', '/dev/' + volume(SDB).name)
    os.makedirs('/srv/theirs', exist_ok=True)
    sh('mount', '-o', 'ro', '/dev/' + volume(SDB).name, '/srv/theirs')
    yield refused('EDISKUSED', SDB, '/srv/theirs')
    sh('umount', '/srv/theirs')


def read_only(node):
    """nodestrap refuses a volume that cannot be written"""
    node.configure(PLAIN)
    sh('blockdev', '--setro', '/dev/' + volume(SDB).name)
    yield refused('EDISKERROR', SDB, 'read-only')
    sh('blockdev', '--setrw', '/dev/' + volume(SDB).name)


def root_disk(node):
    """nodestrap refuses the root disk as a volume"""
    node.configure(PLAIN)
    name, root = '/dev/' + volume(SDB).name, '/srv/root'
    sh('/usr/sbin/mkfs.ext4', '-q', '-F', name)
    os.makedirs(root, exist_ok=True)
    sh('mount', name, root)
    for path in ('/usr', '/etc', '/proc', '/sys', '/dev', '/run', storage.HERE):
        os.makedirs(root + path)
        sh('mount', '--bind', path, root + path)
    for path in ('bin', 'sbin', 'lib', 'lib64'):
        os.symlink('usr/' + path, f'{root}/{path}')
    for path in BINDS:
        os.makedirs(root + path)
    sh('sync')
    node.prefix, node.busy = ['chroot', root], volume(SDB).name
    yield refused('EDISKUSED', '/dev/sdb', SDB, 'root disk')
    node.prefix, node.busy = [], None
    sh('umount', '--recursive', root)


def one_device_twice(node):
    """nodestrap refuses one device in two entries, as /dev/sdb and as /dev/xvdb"""
    node.configure(PLAIN, Entry('/dev/xvdb', KUBELET, 'xfs', SDB))
    yield refused('EINVALID', '/dev/xvdb', 'volumes[0]', code=11)


def one_device_by_two_names(node):
    """nodestrap refuses one device under two names"""
    node.configure(PLAIN, Entry(SDB, KUBELET, 'xfs', SDB))
    yield refused('EDISKUSED', '/dev/sdb', SDB, 'same volume')


def two_for_one_target(node):
    """nodestrap refuses two volumes for one target"""
    node.configure(PLAIN, Entry('/dev/sdc', CONTAINERD + '/', 'xfs', SDC))
    yield refused('EINVALID', CONTAINERD, 'volumes[0]', code=11)


def target_below_target(node):
    """nodestrap refuses a target below another"""
    node.configure(PLAIN, Entry('/dev/sdc', CONTAINERD + '/io.containerd.content.v1.content', 'xfs', SDC))
    yield refused('EINVALID', CONTAINERD + '/io.containerd.content.v1.content', 'volumes[0]', code=11)


def target_below_stores(node):
    """nodestrap refuses a target below a directory that goes to the instance stores"""
    node.configure(Entry('/dev/sdb', CONTAINERD + '/below', 'xfs', SDB), stores='strategy: RAID0')
    yield refused('EMOUNT', CONTAINERD + '/below', 'instance stores')


def target_in_place_of_stores(node):
    """nodestrap refuses a target where it mounts instance stores"""
    node.configure(Entry('/dev/sdb', storage.MOUNT_PATH + '/0', 'xfs', SDB), stores='strategy: RAID0')
    yield refused('EMOUNT', storage.MOUNT_PATH, 'mountPath')


def target_is_mounted(node):
    """nodestrap refuses a target on which a foreign file system is mounted"""
    node.configure(Entry('/dev/sdb', '/srv/data', 'xfs', SDB))
    os.makedirs('/srv/data', exist_ok=True)
    sh('mount', '-t', 'tmpfs', 'theirs', '/srv/data')
    yield refused('EMOUNT', '/srv/data', 'tmpfs')
    sh('umount', '/srv/data')


def target_is_file(node):
    """nodestrap refuses a target that is a file"""
    node.configure(Entry('/dev/sdb', '/srv/file', 'xfs', SDB))
    write('/srv/file', 'x')
    yield refused('EMOUNT', '/srv/file')
    os.unlink('/srv/file')


def pod_mount(node):
    """nodestrap refuses to move the kubelet directory if a pod mount lies below it"""
    node.configure(Entry('/dev/sdb', KUBELET, 'xfs', SDB))
    path = KUBELET + '/pods/1/volumes/secret'
    os.makedirs(path)
    sh('mount', '-t', 'tmpfs', 'none', path)
    yield refused(('EMOVE', 'EMOUNT'), path)
    sh('umount', path)


def too_much(node):
    """nodestrap refuses to move more than the volume holds"""
    node.configure(Entry('/dev/sdb', CONTAINERD, 'ext4', SDB))
    with open(CONTAINERD + '/large', 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, 500 << 20)
    sh('sync')
    yield refused('EMOVE', CONTAINERD, '/dev/sdb')
    os.unlink(CONTAINERD + '/large')


def no_mkfs(node):
    """nodestrap refuses a blank volume if mkfs.xfs is missing"""
    node.configure(PLAIN)
    with bad.without('mkfs.xfs'):
        yield refused('ESTORAGETOOL', 'mkfs.xfs', 'xfsprogs')


CASES = (root_disk, lvm, luks, swap, btrfs, partition, unknown_data, member, held, mounted_elsewhere, read_only, one_device_twice, one_device_by_two_names,
         two_for_one_target, target_below_target, target_below_stores, target_in_place_of_stores, target_is_mounted, target_is_file, pod_mount,
         too_much, no_mkfs)


def fresh(node):
    node.configure(PLAIN)
    node.clear()


def try_case(node, case):
    storage.blank([d.name for d in disks(storage.EBS)])
    steps = case(node)
    try:
        word, says, code = next(steps)
        node.boot(plan=False, must=False)
        found = node.complaints_refused(word, says, code)
    finally:
        for _ in steps:
            pass
    return found


# ---- not refused ----

def with_stores(node, report):
    """The instance stores want the same path: the volume has it, and both are used."""
    node.configure(Entry('vol-' + SDB[3:], CONTAINERD, 'xfs', SDB), stores='strategy: RAID0, filesystem: ext4')
    node.clear()
    node.boot()
    stores = {d.number for d in disks()} | {n for n, _ in storage.arrays().values()}
    found = node.complaints_up(made=2)
    on = {m.target: m.number for m in storage.mounts()}
    found += [f'{p} is on {on.get(p)}, no instance store of {stores}' for p in (KUBELET, PODS) if on.get(p) not in stores]
    warned = [w for w in node.last.err.splitlines() if 'warning' in w and CONTAINERD in w]
    report.line('a volume gets the path that instance stores want too, and they get the others', found, node.describe)
    report.line('a warning names the volume and the path that instance stores want too', [] if warned and 'volume' in warned[0] else [node.last.err])
    report.line('a second run with volume and instance stores changes nothing', node.complaints_again(), node.describe)
    node.off()
    storage.blank([d.name for d in disks()])
    node.on()
    node.boot()
    report.line('a stop and start uses new instance stores and the same volume', node.complaints_up(made=1), node.describe)


def other_file_system(node, report):
    """A volume with a file system that is not the wanted one is kept as it is, with what it holds."""
    node.configure(Entry(by_id(SDB), CONTAINERD, 'xfs', SDB))
    node.clear()
    sh('/usr/sbin/mkfs.ext4', '-q', '-F', '-L', 'precious', '/dev/' + volume(SDB).name)
    os.makedirs('/srv/theirs', exist_ok=True)
    sh('mount', '/dev/' + volume(SDB).name, '/srv/theirs')
    storage.bake('/srv/theirs', 'theirs')
    write('/srv/theirs/precious', 'x')
    node.kept = {CONTAINERD: storage.tree('/srv/theirs')}
    node.tops = {}
    sh('umount', '/srv/theirs')
    storage.settle()
    node.boot()
    node.want_top[CONTAINERD] = storage.entry(CONTAINERD, '', {})
    node.configure(Entry(by_id(SDB), CONTAINERD, 'ext4', SDB))      # what is to be there now
    hidden = [p for p in storage.tree(storage.UNDER + CONTAINERD) if p not in node.kept[CONTAINERD]]
    found = [w for w in node.complaints_up(made=0) if BELOW not in w]
    report.line('nodestrap uses a volume with data and another file system as it is', found, node.describe)
    report.line('the files of the image stay apart from the data of that volume', [p for p in hidden if os.path.lexists(f'{CONTAINERD}/{p}')] +
                ([] if hidden else ['the root disk has lost them']))
    report.line('a warning names the ext4 of that volume, which is not the wanted file system', [] if 'warning' in node.last.err and 'ext4' in node.last.err else [node.last.err])


def mounted_before(node, report):
    """As by /etc/fstab, or by the unit that nodeadm leaves: the volume is at its target already."""
    node.configure(PLAIN)
    node.clear()
    sh('/usr/sbin/mkfs.xfs', '-q', '-f', '/dev/' + volume(SDB).name)
    sh('mount', '-o', 'noatime', '/dev/' + volume(SDB).name, CONTAINERD)
    storage.bake(CONTAINERD, 'theirs')
    node.keep()
    before = [m for m in storage.mounts() if m.target == CONTAINERD]
    node.boot()
    found = [w for w in node.complaints_up(made=0, tools=[]) if BELOW not in w]
    now = [m for m in storage.mounts() if m.target == CONTAINERD]
    report.line('a volume that is mounted at its target already stays as it is', found + [f'{before} became {now}'] * (now != before), node.describe)


def main():
    report, node = Report(), VolumeNode()
    fresh(node)
    for case in CASES:
        try:
            found = try_case(node, case)
        except (Problem, OSError, StopIteration, KeyError) as e:
            found = [f'{type(e).__name__}: {e}']
        if not report.line(case.__doc__, found, node.describe):
            fresh(node)
    with_stores(node, report)
    other_file_system(node, report)
    mounted_before(node, report)
    finish(report)


if __name__ == '__main__':
    try:
        main()
    except (Problem, OSError, KeyError) as e:
        Report().line('the test runs to its end', [f'{type(e).__name__}: {e}'])
        finish(Report())
