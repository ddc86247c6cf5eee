# SPDX-License-Identifier: Apache-2.0
"""usage: bad.py [CASE...]

Instance stores that nodestrap must not use, and places that it must not use them at: exit 30, the device and the reason in the last
line, not one write where it could be known before, kubelet and containerd stay down.

Each case is a generator: what stands before its yield breaks the machine (and yields what is expected), what stands behind it mends it.
"""
import contextlib
import os
import struct
import sys

import storage
from storage import CONTAINERD, HERE, KUBELET, MIB, Node, Problem, Report, blank, counters, disks, settle, sh, write

MDADM = '/usr/sbin/mdadm'


class Target:
    """One more instance store, or EBS volume, made of a device mapper table over a file; it comes over NVMe/TCP on the loopback
    interface, because that is where a model and a serial can be given at run time."""
    PORT = '/sys/kernel/config/nvmet/ports/1'

    def __init__(self, serial, size_mib, table='0 {sectors} linear {loop} 0', model=storage.STORE):
        self.name = serial.lower()
        sh('modprobe', '-a', 'nvmet-tcp', 'nvme-tcp', 'dm_mod', 'loop')
        path = f'{storage.HERE}/{serial}'
        with open(path, 'wb') as f:
            f.truncate(size_mib * MIB)
        self.loop = sh('losetup', '--find', '--show', path).strip()
        self.sectors = size_mib * 2048
        sh('dmsetup', 'create', self.name, '--table', self.table(table))
        base = f'/sys/kernel/config/nvmet/subsystems/{self.name}'
        os.makedirs(base + '/namespaces/1')
        for attribute, value in (('attr_allow_any_host', '1'), ('attr_model', model), ('attr_serial', serial),
                                 ('namespaces/1/device_path', f'/dev/mapper/{self.name}'), ('namespaces/1/enable', '1')):
            write(f'{base}/{attribute}', value)
        if not os.path.exists(self.PORT):
            os.makedirs(self.PORT)
            for attribute, value in (('addr_trtype', 'tcp'), ('addr_adrfam', 'ipv4'), ('addr_traddr', '127.0.0.1'), ('addr_trsvcid', '4420')):
                write(f'{self.PORT}/{attribute}', value)
        os.symlink(base, f'{self.PORT}/subsystems/{self.name}')
        self.base = base
        sh('nvme', 'connect', '-t', 'tcp', '-a', '127.0.0.1', '-s', '4420', '-n', self.name)
        sh('udevadm', 'wait', '--timeout=120', f'/dev/disk/by-id/nvme-{model.replace(" ", "_")}_{serial}')
        settle()
        self.disk = next(d for d in disks(model) if d.serial == serial)

    def table(self, text):
        return '\n'.join(text.format(sectors=self.sectors, loop=self.loop).split(';'))

    def become(self, text):
        sh('dmsetup', 'suspend', '--noflush', self.name)
        sh('dmsetup', 'load', self.name, '--table', self.table(text))
        sh('dmsetup', 'resume', self.name)

    def remove(self):
        sh('nvme', 'disconnect', '-n', self.name)
        settle()
        os.unlink(f'{self.PORT}/subsystems/{self.name}')
        write(f'{self.base}/namespaces/1/enable', '0')
        os.rmdir(self.base + '/namespaces/1')
        os.rmdir(self.base)
        sh('dmsetup', 'remove', self.name)
        sh('losetup', '--detach', self.loop)
        os.unlink(f'{storage.HERE}/{self.disk.serial}')


# ---- cases: yield (word, texts in the last line, may programs run before the failure?) ---------------------------------------------

def raid10_of_two(node):
    """nodestrap refuses RAID10 with two disks"""
    node.configure('RAID10', 2, 'xfs', expected=0)
    storage.plug(node.all[:2])
    yield 'EDISKS', ['RAID10', 'four'], False


def idle_controller(node):
    """nodestrap refuses to go on if an instance store controller on the PCI bus brings no disk"""
    bus, fake = '/sys/bus/pci/devices', HERE + '/pci'
    os.makedirs(fake)
    for name in os.listdir(bus):
        os.symlink(os.path.realpath(f'{bus}/{name}'), f'{fake}/{name}')
    for i in range(4):              # the controllers of QEMU have another vendor
        address = f'{fake}/0000:7f:0{i}.0'
        write(address + '/uevent', 'DRIVER=nvme\nPCI_CLASS=10802\nPCI_ID=1D0F:CD01\nPCI_SUBSYS_ID=1D0F:CD01\n')
        write(address + '/numa_node', '-1\n')
        os.makedirs(f'{address}/nvme/nvme{i}' + f'/nvme{i}n1' * (i < 3))
    sh('mount', '--bind', fake, bus)
    node.configure(expected=0)
    yield 'EDISKS', ['1 of 4 instance stores is missing', 'the PCI bus', disks()[0].serial, 'no disk on the controllers at 0000:7f:03.0.'], False
    sh('umount', bus)


def place(node, path):
    node.configure(mount_path=path)
    return 'EMOUNT', [path], False


def path_is_file(node):
    """nodestrap refuses a mountPath that is a file"""
    write('/srv/file', 'x')
    yield place(node, '/srv/file')
    os.unlink('/srv/file')


def path_below_file(node):
    """nodestrap refuses a mountPath below a file"""
    write('/srv/file', 'x')
    yield place(node, '/srv/file/disks')
    os.unlink('/srv/file')


def path_not_empty(node):
    """nodestrap refuses to mount over a directory with files"""
    write('/srv/full/0/precious', 'x')
    yield place(node, '/srv/full')
    if storage.read('/srv/full/0/precious') != 'x':
        raise Problem('the file is gone')
    sh('rm', '-r', '/srv/full')


def path_read_only(node):
    """nodestrap refuses a mountPath on a read-only file system"""
    os.makedirs('/srv/ro')
    sh('mount', '-t', 'tmpfs', '-o', 'ro,mode=755', 'none', '/srv/ro')
    yield place(node, '/srv/ro/disks')
    sh('umount', '/srv/ro')
    os.rmdir('/srv/ro')


def path_into_proc(node):
    """nodestrap refuses a mountPath that leads to /proc"""
    os.symlink('/proc/self', '/srv/link')
    yield place(node, '/srv/link/disks')
    os.unlink('/srv/link')


def disk_with_errors(node):
    """nodestrap refuses a disk that cannot be read"""
    t = Target('AWS0BAD0000000000001', 512)
    node.configure(n=4)
    t.become('0 {sectors} error')
    yield 'EDISKERROR', [t.disk.serial, t.disk.name], False
    t.become('0 {sectors} linear {loop} 0')
    t.remove()


def disk_with_errors_later(node):
    """init fails with a disk that has errors where only mkfs writes"""
    t = Target('AWS0BAD0000000000002', 512, '0 543744 linear {loop} 0;543744 512 error;544256 504320 linear {loop} 544256')
    storage.plug([])
    node.configure('Mount', 1, 'xfs')
    yield ('EFILESYSTEM', 'EDISKERROR'), [t.disk.name], True
    t.remove()


def disk_that_hangs(node):
    """nodestrap refuses a disk that does not answer"""
    timeout = '/sys/module/nvme_core/parameters/io_timeout'
    before = storage.read(timeout).strip()
    write(timeout, '4294967')           # EC2 images let the kernel wait forever
    t = Target('AWS0BAD0000000000003', 512)
    write(timeout, before)
    node.configure(n=4)
    sh('dmsetup', 'suspend', '--noflush', '--nolockfs', t.name)
    yield 'EDISKERROR', [t.disk.serial, t.disk.name, 'did not answer within 40 s'], False
    sh('dmsetup', 'resume', t.name)
    t.remove()


def disk_read_only(node):
    """nodestrap refuses a disk that cannot be written"""
    victim = disks()[1]
    sh('blockdev', '--setro', '/dev/' + victim.name)
    yield ('EDISKERROR', 'EDISKUSED'), [victim.serial, 'read-only'], False
    sh('blockdev', '--setrw', '/dev/' + victim.name)


@contextlib.contextmanager
def without(*programs):
    found = [f'{d}/{p}' for d in ('/usr/sbin', '/usr/bin', storage.HERE + '/bin') for p in programs if os.path.lexists(f'{d}/{p}')]
    for path in found:
        os.rename(path, path + '.away')
    try:
        yield
    finally:
        for path in found:
            os.rename(path + '.away', path)


def no_mkfs(node):
    """init fails before the first write if mkfs.xfs is missing"""
    with without('mkfs.xfs'):
        yield 'ESTORAGETOOL', ['mkfs.xfs', 'xfsprogs'], False


def no_mkfs_ext4(node):
    """init fails before the first write if mkfs.ext4 is missing"""
    node.configure(fs='ext4')
    with without('mkfs.ext4'):
        yield 'ESTORAGETOOL', ['mkfs.ext4', 'e2fsprogs'], False


def no_mdadm(node):
    """init fails before the first write if mdadm is missing"""
    with without('mdadm'):
        yield 'ESTORAGETOOL', ['mdadm'], False


def no_cp(node):
    """init fails before the first write if cp is missing"""
    with without('cp'):
        yield 'ESTORAGETOOL', ['cp'], False


def too_much_to_move(node):
    """nodestrap refuses to move more than the disks hold"""
    t = Target('AWS05A11000000000001', 48)
    storage.plug([])
    node.configure('RAID0', 1, 'ext4')
    fill(CONTAINERD + '/large', 60)
    yield 'EMOVE', ['must move to the instance stores', f'{CONTAINERD} 63', 'room for only 47.8 MB'], False
    os.unlink(CONTAINERD + '/large')
    t.remove()


def no_space(node):
    """init fails if the disks are full before it has copied all"""
    t = Target('AWS05A11000000000002', 48)
    storage.plug([])
    node.configure('RAID0', 1, 'ext4')
    fill(CONTAINERD + '/large', 43)
    yield 'EMOVE', ['No space left'], True
    os.unlink(CONTAINERD + '/large')
    node.off()
    t.remove()


def fill(path, mib):
    with open(path, 'wb') as f:
        for _ in range(mib):
            f.write(os.urandom(MIB))


def two_arrays(node):
    """nodestrap refuses two arrays named kubernetes"""
    node.configure(n=4)
    storage.plug(node.all[:4])
    names = [d.name for d in disks()]
    for i, device in ((0, '/dev/md/kubernetes'), (2, '/dev/md/kubernetes_1')):
        sh(MDADM, '--create', device, '--run', '--homehost=any', '--name=kubernetes', '--level=0', '--raid-devices=2', *('/dev/' + n for n in names[i:i + 2]))
    settle()
    running = [os.path.basename(os.path.realpath(f'/dev/md/{n}')) for n in ('kubernetes', 'kubernetes_1')]
    yield 'EARRAY', ['two arrays', *running], False
    if not all(text in node.last.err for text in ('two arrays are named kubernetes', *names)):
        raise Problem(f'not all is said: {node.last.err}')


def array_of_metadata(version):
    def case(node):
        names = [d.name for d in disks()]
        sh(MDADM, '--create', '/dev/md/kubernetes', '--run', '--homehost=any', '--name=kubernetes', f'--metadata={version}', '--level=0',
           f'--raid-devices={len(names)}', *('/dev/' + n for n in names))
        settle()
        yield 'EDISKUSED', ['and metadata 1.2. If', *names], False
    case.__doc__ = f'nodestrap refuses an array named kubernetes with metadata {version}'
    case.__name__ = f'array_of_metadata_{version.replace(".", "_")}'
    return case


def partitioned(node):
    """nodestrap refuses a disk with partitions"""
    victim = disks()[1]
    with open('/dev/' + victim.name, 'r+b') as f:       # an MBR with one Linux partition of 100 MiB
        f.write(bytes(446) + struct.pack('<B3sB3sII', 0, b'\0\2\0', 0x83, b'\0\2\0', 2048, 204800) + bytes(48) + b'\x55\xaa')
    sh('blockdev', '--rereadpt', '/dev/' + victim.name)
    settle()
    yield 'EDISKUSED', [victim.serial, 'partition'], False


def signature(offset, data, word):
    def case(node):
        victim = disks()[2]
        with open('/dev/' + victim.name, 'r+b') as f:
            f.seek(offset)
            f.write(data)
        settle()
        yield 'EDISKUSED', [victim.serial, word], False
    case.__doc__ = f'nodestrap refuses a disk with the signature of {word}'
    return case


LVM = bytearray(512)
LVM[:32] = b'LABELONE' + struct.pack('<QII', 1, 0, 32) + b'LVM2 001'


def lvm_crc(data):
    crc = 0xf597a6cf            # LVM2's own start value (lib/misc/crc.c)
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xedb88320 if crc & 1 else 0)
    return crc


LVM[32:64] = b'0123456789abcdefghijklmnopqrstuv'
LVM[16:20] = struct.pack('<I', lvm_crc(bytes(LVM[20:512])))
lvm = signature(512, bytes(LVM), 'LVM physical volume')
luks = signature(0, b'LUKS\xba\xbe\x00\x01' + b'aes' + bytes(157) + b'8f8b9d9e-1b1c-4f9e-8f7e-0123456789ab', 'LUKS')


def swap(node):
    """nodestrap refuses a disk with swap space"""
    victim = disks()[0]
    sh('mkswap', '/dev/' + victim.name)
    settle()
    yield 'EDISKUSED', [victim.serial, 'swap'], False


def their_file_system(node):
    """nodestrap refuses an array with a disk that has a file system"""
    victim = disks()[1]
    sh('/usr/sbin/mkfs.ext4', '-q', '-F', '-L', 'precious', '/dev/' + victim.name)
    settle()
    yield 'EDISKUSED', [victim.serial, 'ext4', 'precious'], False


def put(name, at, data):
    with open('/dev/' + name, 'r+b') as f:
        f.seek(at)
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def clear_ends(name, size):
    """Both ends of a device; the data between them stays."""
    end = int(storage.read(f'/sys/class/block/{name}/size')) * 512 - size
    for at in range(0, size, MIB):
        put(name, at, bytes(MIB))
        put(name, end + at, bytes(MIB))


def free_by_the_named_command(node, names):
    """The command in the error must free the disks."""
    for name in names:
        words = next(text for text in node.last.err.split('`') if text.startswith('blkdiscard ') and text.endswith('/' + name))
        sh(*words.split())
    settle()
    found = {a['type']: a.get('state') for a in node.plan()['actions'] if a['type'] == 'create-raid'}
    if found != {'create-raid': 'make'}:
        raise Problem(f'not free after {words}: {found or node.plan()}')


def unknown_data(node):
    """nodestrap refuses disks with data but no signature, and names each"""
    node.configure(n=4)
    storage.plug(node.all[:4])
    node.stop_arrays()
    blank([d.name for d in disks()])
    foreign, middle, everywhere, ciphered = [d.name for d in disks()]
    put(foreign, 0, b'FOREIGN!' + os.urandom(65536))
    sh('/usr/sbin/mkfs.ext4', '-q', '-F', '-E', 'nodiscard', '/dev/' + middle)
    clear_ends(middle, 16 * MIB)
    for at in range(0, 1024, 64):
        put(everywhere, at * MIB, os.urandom(MIB))
    put(ciphered, 16 * MIB, os.urandom(MIB))            # LUKS2 without the 16 MiB of its header
    settle()
    yield 'EDISKDATA', ['blkdiscard /dev/'], False
    if [n for n in (foreign, middle, everywhere, ciphered) if f'{n} ({storage.read(f"/sys/block/{n}/device/serial")}' not in node.last.err]:
        raise Problem(f'not all are named: {node.last.err}')
    free_by_the_named_command(node, (foreign, middle, everywhere, ciphered))


def array_of_ours():
    """An array of ours with a file system, at rest."""
    members = ['/dev/' + d.name for d in disks()]
    sh(MDADM, '--create', '/dev/md/kubernetes', '--run', '--homehost=any', '--name=kubernetes', '--level=0', '--chunk=256', '--raid-devices=3', *members)
    sh('/usr/sbin/mkfs.xfs', '-q', '-f', '-K', '-L', 'kubernetes', '/dev/md/kubernetes')
    os.makedirs('/srv/used', exist_ok=True)
    sh('mount', '/dev/md/kubernetes', '/srv/used')
    fill('/srv/used/file', 24)
    sh('umount', '/srv/used')
    settle()
    return os.path.basename(os.path.realpath('/dev/md/kubernetes'))


def superblock_of_member_lost(node):
    """nodestrap refuses an array of its own if one member has lost its superblock"""
    name, victim = array_of_ours(), disks()[1]
    sh(MDADM, '--stop', '/dev/' + name)
    sh(MDADM, '--zero-superblock', '/dev/' + victim.name)
    settle()
    yield 'EDISKDATA', [victim.serial, f'`blkdiscard /dev/{victim.name}`'], False
    node.stop_arrays()


def superblock_of_file_system_lost(node):
    """nodestrap refuses an array of its own if the file system has lost its superblock"""
    name = array_of_ours()
    clear_ends(name, MIB)
    settle()
    yield 'EDISKDATA', [name, 'blkdiscard'], False


def mounted_elsewhere(node):
    """nodestrap refuses a disk that is mounted elsewhere"""
    victim = disks()[1]
    sh('/usr/sbin/mkfs.ext4', '-q', '-F', '/dev/' + victim.name)
    os.makedirs('/srv/theirs', exist_ok=True)
    sh('mount', '-o', 'ro', '/dev/' + victim.name, '/srv/theirs')      # or the kernel itself writes to it
    yield 'EDISKUSED', [victim.serial, '/srv/theirs'], False
    sh('umount', '/srv/theirs')


def held(node):
    """nodestrap refuses a disk that device mapper holds"""
    victim = disks()[2]
    sh('dmsetup', 'create', 'theirs', '--table', f'0 2048 linear /dev/{victim.name} 0')
    settle()
    yield 'EDISKUSED', [victim.serial, os.path.basename(os.path.realpath('/dev/mapper/theirs'))], False
    sh('dmsetup', 'remove', 'theirs')


def pod_mount(node):
    """nodestrap refuses to move the kubelet directory if a pod mount lies below it"""
    path = KUBELET + '/pods/1/volumes/secret'
    os.makedirs(path)
    sh('mount', '-t', 'tmpfs', 'none', path)
    yield ('EMOVE', 'EMOUNT'), [path], False
    sh('umount', path)


CASES = (raid10_of_two, idle_controller, path_is_file, path_below_file, path_not_empty, path_read_only, path_into_proc, disk_with_errors,
         disk_with_errors_later, disk_that_hangs, disk_read_only, no_mkfs, no_mkfs_ext4, no_mdadm, no_cp, too_much_to_move, no_space, two_arrays,
         array_of_metadata('1.0'), array_of_metadata('1.1'), partitioned, lvm, luks, swap, unknown_data, superblock_of_member_lost, superblock_of_file_system_lost, their_file_system, mounted_elsewhere, held, pod_mount)


def fresh(node):
    node.configure('RAID0', 3, 'xfs')
    node.clear()


def try_case(node, case):
    fresh(node)
    steps = case(node)
    try:
        word, says, written = next(steps)
        before = {d.name: counters(d.name) for d in disks()}
        node.boot()
        found = node.complaints_failed(word, says) if written else node.complaints_refused(word, says, before)
    finally:
        for _ in steps:
            pass
    return found


def array_elsewhere():
    """An array with our name, on disks of another kind."""
    loops = []
    for i in (1, 2):
        path = f'{HERE}/elsewhere{i}'
        with open(path, 'wb') as f:
            f.truncate(64 * MIB)
        loops.append(sh('losetup', '--find', '--show', path).strip())
    sh(MDADM, '--create', '/dev/md/kubernetes', '--run', '--homehost=any', '--name=kubernetes', '--level=0', '--raid-devices=2', *loops)
    settle()
    return os.path.basename(os.path.realpath('/dev/md/kubernetes')), loops


def name_is_taken(node, report):
    """The disks are blank, and a foreign array has the name of ours, also at the next boot; then it is gone."""
    fresh(node)
    name, loops = array_elsewhere()
    seen = (name, counters(name))
    for state, what in (('make', 'nodestrap gives an array of blank disks another name if a foreign array has the usual one'),
                        ('assemble', 'the next boot finds the array of nodestrap beside the foreign array')):
        node.boot()
        found = node.complaints_up({'create-raid': state, 'bind': 'make'})
        own = os.path.basename(os.path.realpath('/dev/md/nodestrap'))
        if storage.arrays().get(own, (None, []))[1] != sorted(d.name for d in node.stores()):
            found.append(f'/dev/md/nodestrap is {own}: {storage.arrays()}')
        if (os.path.basename(os.path.realpath('/dev/md/kubernetes')), counters(name)) != seen:
            found.append(f'{name} was touched')
        report.line(what, found, node.describe)
        node.off()
    sh(MDADM, '--stop', '/dev/' + name)
    for loop in loops:
        sh('losetup', '--detach', loop)
    node.boot()
    report.line('a boot without the foreign array finds the array of nodestrap', node.complaints_up({'create-raid': 'assemble', 'bind': 'make'}), node.describe)


def main():
    report, node = Report(), Node()
    for case in [c for c in CASES if c.__name__ in sys.argv[1:]] or CASES:
        try:
            found = try_case(node, case)
        except (Problem, OSError, StopIteration) as e:
            found = [f'{type(e).__name__}: {e}']
        report.line(case.__doc__, found, node.describe)
    name_is_taken(node, report)
    report.finish()


if __name__ == '__main__':
    main()
