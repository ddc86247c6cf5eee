# SPDX-License-Identifier: Apache-2.0
"""A node with instance stores, from inside a virtual machine: what tests/vm/lib/*.py share.

Node      runs nodestrap as a boot does, switches the machine off and on again (disks go and come back in another order, udev puts
          arrays together), blanks disks, and judges what is mounted, what is in it and what was started
Report    TAP on stdout; the count survives a reboot
The helpers read files of the kernel where they can, since a process costs 40 ms in an emulated machine.
"""
import collections
import contextlib
import fcntl
import functools
import glob
import hashlib
import json
import os
import random
import re
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time

HERE = '/vmtest'
CONFIG, CACHE, UNDER = HERE + '/node.yaml', '/run/eks/nodeadm/config.json', HERE + '/under'    # UNDER: the root file system, without what is mounted on it
TOOLS = HERE + '/tools.log'
STORE, EBS = 'Amazon EC2 NVMe Instance Storage', 'Amazon Elastic Block Store'
KUBELET, CONTAINERD, PODS, SOCI = '/var/lib/kubelet', '/var/lib/containerd', '/var/log/pods', '/var/lib/soci-snapshotter-grpc'
BINDS = (KUBELET, CONTAINERD, PODS, SOCI)
MOUNT_PATH = '/mnt/k8s-disks'
UNITS = ('kubelet.service', 'containerd.service')
PCI = '/sys/bus/pci/drivers/nvme/'
BLKZEROOUT = 0x127f
MIB = 1 << 20


SPENT = {}      # seconds by what was done


def counted(function):
    @functools.wraps(function)
    def around(*words, **named):
        begin = time.monotonic()
        try:
            return function(*words, **named)
        finally:
            SPENT[function.__name__] = SPENT.get(function.__name__, 0) + time.monotonic() - begin
    return around


class Problem(Exception):
    """Something around the test itself did not work."""


def sh(*argv, check=True, env=None, stdin=None):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', input=stdin,
                          stdin=None if stdin else subprocess.DEVNULL, env=env)
    if check and done.returncode:
        raise Problem(f'{" ".join(argv)}: exit {done.returncode}: {done.stdout[-2000:]}')
    return done.stdout


def read(path, default=None):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        if default is None:
            raise
        return default


def write(path, text, mode='w'):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode) as f:
        f.write(text)


class Report:
    """`case NAME` judged by a list of complaints; none is ok."""

    def __init__(self):
        self.count, self.bad = (int(read(f'{HERE}/out/tap-{n}', '0')) for n in ('count', 'bad'))

    def line(self, name, complaints, more=None):
        self.count += 1
        text = [f'{"not ok" if complaints else "ok"} {self.count} - {name}']
        if complaints:
            self.bad += 1
            for block in ['\n'.join(map(str, complaints[:12]))] + (more() if more else []):
                text += ['# ' + line[:500] for line in str(block).splitlines()[-40:]]
        print('\n'.join(text), flush=True)
        with open('/dev/ttyS0', 'w') as f:      # for the host, which waits, or shows it after a timeout
            f.write('\n'.join(text) + '\n')
        for n in ('count', 'bad'):
            write(f'{HERE}/out/tap-{n}', str(getattr(self, n)))
        return not complaints

    def finish(self, volumes_used=False):
        if not volumes_used:
            seen = {d.name: counters(d.name) for d in disks(EBS)}
            self.line('the EBS volume has seen no write and no discard', [] if seen and not any(map(any, seen.values())) else [f'{seen or "there is none"}'])
        print(f'1..{self.count}')
        sys.stdout.flush()
        sys.exit(1 if self.bad else 0)


# ---- disks, arrays, mounts as the kernel has them --------------------------------------------------------------------------------

Disk = collections.namedtuple('Disk', 'name serial model number pci')
Mount = collections.namedtuple('Mount', 'number root target options tags type source')


def disks(model=STORE):
    found = []
    for path in glob.glob('/sys/block/nvme*'):
        name = os.path.basename(path)
        if read(path + '/device/model', '') != model or not os.path.exists(path + '/dev') or read(path + '/size', '0') == '0':
            continue
        pci = re.search(r'/([0-9a-f]{4}:[0-9a-f:.]+)/nvme/', os.path.realpath(path))
        found.append(Disk(name, read(path + '/device/serial'), model, read(path + '/dev'), pci and pci[1]))
    return sorted(found, key=lambda d: d.serial)


def counters(name):
    """Writes, discards and zeroed ranges that a device has seen since it came."""
    f = read(f'/sys/block/{name}/stat').split()
    return int(f[4]), int(f[11])


def arrays():
    """{name: (number, members)} of md."""
    return {os.path.basename(p): (read(p + '/dev'), sorted(os.listdir(p + '/slaves'))) for p in glob.glob('/sys/block/md*')
            if read(p + '/md/array_state', 'clear') != 'clear'}


def mounts():
    found = []
    with open('/proc/self/mountinfo') as f:
        for line in f:
            left, right = line.split(' - ')
            left, right = left.split(), right.split()
            found.append(Mount(left[2], left[3], re.sub(r'\\(\d{3})', lambda m: chr(int(m[1], 8)), left[4]), left[5].split(','), left[6:], right[0], right[1]))
    return found


@counted
def settle():
    sh('udevadm', 'settle')


def in_threads(function, items):
    threads = [threading.Thread(target=function, args=(item,)) for item in items]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def zero(name, size=None):
    fd = os.open('/dev/' + name, os.O_WRONLY)
    try:
        fcntl.ioctl(fd, BLKZEROOUT, struct.pack('QQ', 0, size or int(read(f'/sys/block/{name}/size')) * 512))
        os.fsync(fd)
    finally:
        os.close(fd)


@counted
def blank(names):
    """As after a stop and start: not one byte of before."""
    in_threads(zero, names)
    settle()


@counted
def plug(wanted):
    """Exactly these PCI addresses have their driver; what comes, comes in a shuffled order."""
    def unbind(address):
        write(PCI + 'unbind', address)
    have = [os.path.basename(p) for p in glob.glob(PCI + '0000:*')]
    keep = [d.pci for d in disks(EBS)]
    in_threads(unbind, [a for a in have if a not in wanted and a not in keep])
    coming = [a for a in wanted if a not in have]
    random.shuffle(coming)
    for address in coming:
        write(PCI + 'bind', address)
    links = [f'/dev/disk/by-id/nvme-{STORE.replace(" ", "_")}_{SERIALS[a]}' for a in wanted]
    if links:
        sh('udevadm', 'wait', '--timeout=60', *links)
    settle()


SERIALS = {}


def remember_disks():
    SERIALS.update({d.pci: d.serial for d in disks()})
    return [d.pci for d in disks()]


# ---- trees of files --------------------------------------------------------------------------------------------------------------

def entry(path, name, links):
    st = os.lstat(path)
    kind, content = stat.S_IFMT(st.st_mode), ''
    if stat.S_ISREG(st.st_mode):
        with open(path, 'rb') as f:
            content = hashlib.md5(f.read()).hexdigest()
    elif stat.S_ISLNK(st.st_mode):
        content = os.readlink(path)
    first = links.setdefault((st.st_dev, st.st_ino), name) if st.st_nlink > 1 and not stat.S_ISDIR(st.st_mode) else name
    attributes = tuple((a, os.getxattr(path, a, follow_symlinks=False)) for a in sorted(os.listxattr(path, follow_symlinks=False)))
    return (kind, stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_rdev, content,
            None if stat.S_ISDIR(st.st_mode) else (st.st_size, st.st_mtime_ns, first), attributes)


@counted
def tree(top):
    """{path: all that matters of it} below a directory, on its own file system; without the times of directories, which a merge changes."""
    found, links = {}, {}
    device = os.lstat(top).st_dev if os.path.isdir(top) else None
    for path, dirs, names in os.walk(top):
        dirs.sort()
        for name in sorted(dirs + names):
            full = os.path.join(path, name)
            if os.lstat(full).st_dev == device:
                found[os.path.relpath(full, top)] = entry(full, os.path.relpath(full, top), links)
        dirs[:] = [d for d in dirs if not os.path.islink(os.path.join(path, d)) and os.lstat(os.path.join(path, d)).st_dev == device]
    return found


def tree_difference(have, want, where):
    for path in sorted(want):
        if path not in have:
            yield f'{where}/{path} is lost'
        elif have[path] != want[path]:
            yield f'{where}/{path} is {have[path]}, was {want[path]}'


def bake(top, seed, nasty=True):
    """What an image brings: every kind of thing that a copy can get wrong."""
    os.makedirs(f'{top}/blobs/sha256', exist_ok=True)
    for i in range(4):
        data = hashlib.sha256(f'{seed} {i}'.encode()).digest() * (700 << i)
        with open(f'{top}/blobs/sha256/{hashlib.sha256(data).hexdigest()}', 'wb') as f:
            f.write(data)
    if not nasty:
        return
    d = f'{top}/snapshots/1'
    os.makedirs(d + '/empty dir', exist_ok=True)
    write(d + '/pause', f'pause {seed}')
    os.chmod(d + '/pause', 0o4755)
    os.chown(d + '/pause', 65535, 12345)
    os.chmod(d + '/pause', 0o4755)
    for name, make in (('hard', lambda p: os.link(d + '/pause', p)), ('link', lambda p: os.symlink('../../blobs', p)),
                       ('dangling', lambda p: os.symlink('/nowhere', p)), ('whiteout', lambda p: os.mknod(p, stat.S_IFCHR | 0o600, 0)),
                       ('fifo', lambda p: os.mkfifo(p, 0o640)), ('ümläut \n', lambda p: write(p, seed)), ('.hidden', lambda p: write(p, seed))):
        if not os.path.lexists(f'{d}/{name}'):
            make(f'{d}/{name}')
    with open(d + '/sparse', 'wb') as f:
        f.truncate(8 * MIB)
        f.seek(5 * MIB)
        f.write(b'end')
    os.setxattr(d + '/pause', 'user.test', seed.encode())
    os.setxattr(d + '/pause', 'trusted.overlay.opaque', b'y')
    os.chmod(d, 0o711)
    os.utime(d + '/pause', ns=(1, 1234567890123456789))


# ---- the node --------------------------------------------------------------------------------------------------------------------

Result = collections.namedtuple('Result', 'code err plan tools status')


class Node:
    """One configuration on this machine."""

    def __init__(self, imds=True):
        self.all = remember_disks()             # PCI addresses, in order of serial
        self.strategy, self.n, self.fs, self.expected, self.more = 'RAID0', len(self.all), 'xfs', None, ''
        self.kept = {}                          # what each path held when the machine went down
        self.hidden = {}                        # what foreign mounts hide on the root disk
        self.array_of_one = False               # another program made an array of a single disk
        self.array_is_theirs = False            # or of several, without a bitmap, which mdadm gives none of this size by default
        self.last = None
        if not os.path.ismount(UNDER):
            os.makedirs(UNDER, exist_ok=True)
            sh('mount', '--bind', '/', UNDER)
            sh('mount', '--make-private', UNDER)
        if imds:
            self.serve_imds()

    def serve_imds(self):
        self.imds = subprocess.Popen(['python3', HERE + '/imds.py', 'serve', '127.0.0.1', '8169', HERE + '/imds'], stdout=subprocess.PIPE, text=True)
        self.imds.stdout.readline()
        self.env = dict(os.environ, PATH=f'{HERE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                        AWS_EC2_METADATA_SERVICE_ENDPOINT='http://127.0.0.1:8169')

    def configure(self, strategy=None, n=None, fs=None, expected=None, more='', mount_path=MOUNT_PATH, disabled=()):
        """expected: None means what is there, 0 means that nothing is said."""
        self.strategy, self.n, self.fs = strategy or self.strategy, n or self.n, fs or self.fs
        self.mount_path, self.disabled = mount_path, disabled
        self.expected = self.n if expected is None else expected
        with open(HERE + '/node.head') as f:
            head = f.read()
        write(CONFIG, head + f'''
  instance:
    localStorage:
      strategy: {self.strategy}
      mountPath: {mount_path}
      filesystem: {self.fs}
      disabledMounts: [{", ".join(disabled)}]
''' + (f'      expectedDisks: {self.expected}\n' if self.expected else '') + more)

    # -- the machine's switch --

    def stores(self):
        return disks()[:self.n]

    def raid(self):
        return self.strategy != 'Mount' and (self.n > 1 or self.array_of_one)

    def filter(self, states):
        """What of these states this strategy has actions for."""
        gone = {'create-raid'} if not self.raid() else set()
        if self.strategy == 'Mount':
            gone |= {'move-files', 'bind'}
        return {k: v for k, v in states.items() if k not in gone}

    def our_mounts(self):
        return [m for m in mounts() if m.target in BINDS or (m.target + '/').startswith(('/mnt/', self.mount_path + '/'))]

    def keep(self):
        """What must be there after the next boot."""
        self.kept = {m.target: tree(m.target) for m in self.our_mounts() if m.root == '/' or m.target in BINDS}

    @counted
    def off(self):
        """Power goes, in order: nothing runs, nothing is mounted, no array is there; /run is empty."""
        self.keep()
        self.hidden = {}
        seen = self.our_mounts()
        sh('systemctl', 'stop', *UNITS)
        for m in reversed(seen):
            sh('umount', m.target)
        self.stop_arrays()
        for path in ('/run/nodestrap', '/run/nodeadm', '/run/eks', '/run/started'):
            shutil.rmtree(path, ignore_errors=True)

    def stop_arrays(self):
        ours = {d.name for d in disks()}
        for name, (_, members) in arrays().items():
            if ours & set(members) or not members:
                sh('/usr/sbin/mdadm', '--stop', '/dev/' + name)

    @counted
    def on(self, n=None):
        """The disks come, as at a boot, with new kernel names; udev assembles what it finds. n: only the first n of them."""
        plug([])
        plug(self.all[:self.n if n is None else n])

    @counted
    def clear(self, n=None):
        """A new instance with n stores."""
        self.off()
        self.kept, self.array_of_one, self.array_is_theirs = {}, False, False
        plug(self.all[:n or self.n])
        self.stop_arrays()
        blank([d.name for d in disks()])
        shutil.rmtree(self.mount_path, ignore_errors=True)
        for path in BINDS:
            if os.path.isdir(UNDER + path):
                shutil.rmtree(UNDER + path)
            os.makedirs(path)
        os.chmod(PODS, 0o750)
        bake(CONTAINERD, 'baked')
        bake(PODS, 'logs', nasty=False)
        write(KUBELET + '/pki/current.pem', 'key')
        os.chmod(KUBELET + '/pki', 0o700)
        self.etc = None

    # -- boots --

    def nodestrap(self, *words):
        return subprocess.run(['nodestrap', *words, '-c', 'file://' + CONFIG], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors='replace')

    @counted
    def plan(self):
        done = self.nodestrap('plan', '--output', 'json', '--config-cache', CACHE)
        return json.loads(done.stdout) if done.returncode == 0 else {'failed': done.returncode, 'actions': [], 'text': done.stderr}

    @counted
    def boot(self, plan=True):
        """Both phases, as the units run them; what is judged later is noted in between."""
        config = self.nodestrap('init', '--skip', 'run', '--config-cache', CACHE)
        if config.returncode:
            raise Problem(f'config phase: exit {config.returncode}: {config.stderr[-1500:]}')
        seen = self.plan() if plan else None
        self.on_root = {path: tree(path) for path in BINDS}
        self.want = {path: {**self.kept.get(path, {}), **self.on_root[path]} for path in BINDS}
        self.etc, self.before = self.look_at_etc(), mounts()
        write(TOOLS, '')
        run = self.nodestrap('init', '--skip', 'config', '--config-cache', CACHE)
        self.last = Result(run.returncode, run.stderr, seen, read(TOOLS).splitlines(), json.loads(read('/run/nodestrap/status.json', '{}')))
        return self.last

    @counted
    def again(self):
        """A second run by hand, both phases at once."""
        seen = self.plan()
        self.etc, self.before = self.look_at_etc(), mounts()
        write(TOOLS, '')
        run = self.nodestrap('init', '--config-cache', CACHE)
        self.last = Result(run.returncode, run.stderr, seen, read(TOOLS).splitlines(), json.loads(read('/run/nodestrap/status.json', '{}')))
        return self.last

    @staticmethod
    def look_at_etc():
        seen = {}
        for path, dirs, names in os.walk('/etc'):
            dirs[:] = [d for d in dirs if d != 'cni']           # containerd makes it
            for name in names + dirs:
                st = os.lstat(os.path.join(path, name))
                seen[os.path.join(path, name)] = (st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns)
        return seen

    # -- judging --

    def device(self):
        """Number of what the binds are to be on: the array over all our disks, or the one disk."""
        if not self.raid():
            return self.stores()[0].number
        names = sorted(d.name for d in self.stores())
        for number, members in arrays().values():
            if members == names:
                return number
        raise Problem(f'no array is made of {names}: {arrays()}')

    def expected_mounts(self):
        """[(target, device number, root of it or None where any directory will do)]"""
        if self.strategy == 'Mount':
            return [(f'{self.mount_path}/{i + 1}', d.number, '/') for i, d in enumerate(self.stores())]
        device = self.device()
        words = {KUBELET: 'Kubelet', CONTAINERD: 'Containerd', PODS: 'PodLogs', SOCI: 'SOCI'}
        return [(self.mount_path + '/0', device, '/')] + [(path, device, None) for path in BINDS if words[path] not in self.disabled]

    def complaints_mounts(self, fs=None):
        now, expected = mounts(), self.expected_mounts()
        for target, number, root in expected:
            there = [m for m in now if m.target == target]
            if len(there) != 1:
                yield f'{target} is mounted {len(there)} times: {there}'
                continue
            m = there[0]
            if m.number != number or m.type != (fs or self.fs):
                yield f'{target} is on {m.number} ({m.type}, {m.source}), want {number} ({fs or self.fs})'
            if root and m.root != root or not root and m.root in ('/', ''):
                yield f'{target} shows {m.root} of its file system'
            if 'noatime' not in m.options:
                yield f'{target} is mounted with {m.options}'
            if not root and not any(t.startswith('shared:') for t in m.tags):
                yield f'{target} is not shared: {m.tags}'
            if not os.path.samestat(os.stat(target), os.stat(self.mount_path + '/0' + m.root if not root else target)):
                yield f'{target} is not what {self.mount_path}/0{m.root} is'
        extra = {m.target for m in self.our_mounts()} - {t for t, _, _ in expected}
        if extra:
            yield f'mounted too: {sorted(extra)}'

    def complaints_size(self):
        if self.strategy == 'Mount':
            tops = [(t, 1) for t, _, _ in self.expected_mounts()]
        else:
            tops = [(t, self.n if self.strategy == 'RAID0' else self.n / 2) for t, _, _ in self.expected_mounts()]
        first = os.statvfs(tops[0][0])
        for target, parts in tops:
            s = os.statvfs(target)
            size = s.f_blocks * s.f_frsize
            if not 0.85 * parts * 1024 * MIB < size <= parts * 1024 * MIB:
                yield f'{target} has {size >> 20} MiB, want {parts} disks of 1024'
            if self.strategy != 'Mount' and (s.f_blocks, s.f_fsid) != (first.f_blocks, first.f_fsid):
                yield f'{target} reports {s.f_blocks} blocks, {tops[0][0]} {first.f_blocks}'

    def complaints_array(self):
        if not self.raid():
            if any({d.name for d in self.stores()} & set(members) for _, members in arrays().values()):
                yield f'a disk is in an array: {arrays()}'
            return
        name = next((n for n, (_, members) in arrays().items() if members == sorted(d.name for d in self.stores())), None)
        if not name:
            yield f'no array of all disks: {arrays()}'
            return
        level, disks_ = read(f'/sys/block/{name}/md/level'), read(f'/sys/block/{name}/md/raid_disks')
        if (level, disks_) != (self.strategy.lower(), str(self.n)):
            yield f'{name} is {level} of {disks_}'
        location = read(f'/sys/block/{name}/md/bitmap/location', 'none')
        if self.strategy == 'RAID10' and (location == 'none') != self.array_is_theirs:
            yield f'the bitmap of {name} is {location}'

    def complaints_data(self):
        """Everything is there that lay on the disks before and on the root disk, the latter where both did; and nothing of it is hidden
        below the mounts."""
        if self.strategy == 'Mount':
            for target, _, _ in self.expected_mounts():
                yield from tree_difference(tree(target), self.kept.get(target, {}), target)
            return
        bound = {m.root.split('/')[1] for m in mounts() if m.target in BINDS}
        for target, _, root in self.expected_mounts():
            if root:                # what others keep beside the directories that are bound
                yield from tree_difference(tree(target), {k: v for k, v in self.kept.get(target, {}).items() if k.split('/')[0] not in bound}, target)
                continue
            yield from tree_difference(tree(target), self.want[target], target)
            hidden, theirs = tree(UNDER + target), self.hidden.get(target, {})
            if hidden != theirs:
                yield f'{target}: on the root disk below the mount: {sorted(hidden)}, want {sorted(theirs)}'
        left = [n for n in os.listdir(self.mount_path + '/0') if n.startswith('.')]
        if left:
            yield f'{self.mount_path}/0 holds {left}'

    def complaints_daemons(self):
        """They run, and what they saw when they started is what is there now."""
        for unit in UNITS:
            if sh('systemctl', 'is-active', unit, check=False).strip() != 'active':
                yield f'{unit} is not active'
        for path, name in ((KUBELET, 'kubelet'), (CONTAINERD, 'containerd')):
            st, fs = os.stat(path), os.statvfs(path)
            now = f'{st.st_dev} {fs.f_blocks}'
            if read(f'/run/started/{name}', 'nothing') != now:
                yield f'{name} saw {read(f"/run/started/{name}", "nothing")} at {path} (device, blocks) when it started, now it is {now}'

    def complaints_etc(self):
        now = self.look_at_etc()
        for path in sorted(set(now) | set(self.etc)):
            if now.get(path) != self.etc.get(path):
                yield f'{path} changed: {self.etc.get(path)} -> {now.get(path)}'

    def complaints_tools(self, want):
        have = sorted(line.split()[0] for line in self.last.tools)
        if have != sorted(want):
            yield f'programs started: {self.last.tools}, want {sorted(want)}'
        if self.strategy != 'Mount' and len(have) > 4:
            yield f'{len(have)} programs were started'

    def complaints_plan(self, states):
        """states: {type of action: state}; and each has a reason."""
        if self.last.plan is None:
            return
        if 'failed' in self.last.plan:
            yield f'plan failed with {self.last.plan["failed"]}: {self.last.plan["text"][-600:]}'
            return
        for kind, want in states.items():
            actions = [a for a in self.last.plan['actions'] if a['type'] == kind]
            have = sorted({state_of(a) for a in actions}) if actions else 'no such action'
            if have != sorted({want} if isinstance(want, str) else want):
                yield f'the plan has {have} for {kind}, want {want}'
            for a in actions:
                if not a.get('why'):
                    yield f'{a["id"]}: no reason'

    def complaints_node(self, fs=None):
        """What the plan said that kubelet will find below its directory: to the byte where it was mounted or stays as it is."""
        if self.last.plan is None or 'failed' in self.last.plan:
            return
        node, s = self.last.plan['node'], os.statvfs(KUBELET)
        said, size = quantity(node['capacity'].get('ephemeral-storage', '0')), s.f_blocks * s.f_frsize
        states = {a['type']: state_of(a) for a in self.last.plan['actions'] if a['type'] in ('mount', 'bind')}
        exact = self.strategy == 'Mount' or states.get('bind') == 'keep' or states.get('mount') in ('keep', 'repair')
        # xfs cuts its last allocation group to the array's stripes; what a small ext4 takes goes in steps
        tolerance = 0 if exact else 8 * MIB if {self.fs, fs or self.fs} == {'xfs'} else size * 0.05
        if abs(said - size) > tolerance:
            yield f'the plan expects {said} bytes below {KUBELET}, and {size} are there'
        if ('ephemeral-storage' in node['approximate']) == exact:
            yield f'the plan says {node["approximate"]} of the node, and {states} of the storage'
        memory = int(read('/proc/meminfo').split('MemTotal:')[1].split()[0]) * 1024
        if quantity(node['capacity']['memory']) != memory or node['capacity']['cpu'] != str(os.cpu_count()):
            yield f'the plan expects {node["capacity"]}; memory is {memory}'

    @counted
    def complaints_up(self, states, tools=None, fs=None):
        """All that a node must be after a boot that went well."""
        if self.last.code:
            return [f'exit {self.last.code}', self.last.err[-1500:]]
        try:
            found = list(self.complaints_plan(states)) + list(self.complaints_node(fs)) + list(self.complaints_array()) + list(self.complaints_mounts(fs))
            if not found:
                found += list(self.complaints_size()) + list(self.complaints_data())
            found += list(self.complaints_daemons()) + list(self.complaints_etc())
            if tools is not None:
                found += list(self.complaints_tools(tools))
        except (Problem, OSError) as e:
            found = [f'{type(e).__name__}: {e}']
        return found

    def complaints_failed(self, word, says):
        """Exit 30 with this word and these texts in the last line; the daemons are down; what lay on the root disk lies there."""
        found, r = [], self.last
        last = r.err.strip().splitlines()[-1] if r.err.strip() else ''
        words = [word] if isinstance(word, str) else word
        if r.code != 30:
            found.append(f'exit {r.code}')
        if not any(f'(30 {w})' in last for w in words):
            found.append(f'the last line is not one of {word}: {last}')
        for text in says:
            if text not in last:
                found.append(f'the last line does not say "{text}": {last}')
        found += self.complaints_down()
        for path in BINDS:
            if not os.path.ismount(path):
                found += tree_difference(tree(path), self.on_root[path], path)
        return found + [r.err[-1200:]] if found else []

    @counted
    def complaints_refused(self, word, says, counted):
        """The same, and not one write to the disks, no program started, nothing mounted. counted: counters() of before, by name."""
        found, r = self.complaints_failed(word, says), self.last
        found += [f'{name} was written: {before} -> {counters(name)}' for name, before in counted.items() if counters(name) != before]
        if mounts() != self.before:
            found.append(f'mounted: {[m for m in mounts() if m not in self.before]}')
        if r.tools:
            found.append(f'programs started: {r.tools}')
        return found

    @staticmethod
    def complaints_down():
        found = []
        for unit in UNITS:
            state = sh('systemctl', 'is-active', unit, check=False).strip()
            if state not in ('inactive', 'failed'):
                found.append(f'{unit} is {state}')
        for path in ('/run/nodestrap/mounts-ready', '/run/nodestrap/kubelet-may-start'):
            if os.path.exists(path):
                found.append(f'{path} is there')
        return found

    def describe(self):
        """For a failure: what there is."""
        text = [sh('sh', '-c', 'dmesg | grep -iE "nvme|blocked for|timer|I/O error" | tail -12'), read('/proc/mdstat', ''), '\n'.join(f'{m.target} {m.number} {m.type} {m.source} {m.root}' for m in self.our_mounts())]
        if self.last:
            text.append('tools: ' + '; '.join(self.last.tools))
            text.append(self.last.err[-1500:])
            if self.last.plan:
                text.append('\n'.join(f'{a["id"]}: {state_of(a)}: {a.get("why")}' for a in self.last.plan['actions'] if a.get('group') == 'storage'))
        return text


def quantity(text):
    """Of bytes, as Kubernetes writes it."""
    number, suffix = re.fullmatch('([0-9]+)([A-Za-z]*)', text).groups()
    return int(number) * {'': 1, 'k': 10**3, 'M': 10**6, 'G': 10**9, 'Ki': 2**10, 'Mi': 2**20, 'Gi': 2**30, 'Ti': 2**40}[suffix]


def state_of(action):
    return action.get('state')


@contextlib.contextmanager
def timed(what):
    SPENT.clear()
    begin = time.monotonic()
    yield
    print(f'# {what}: {time.monotonic() - begin:.0f} s, of which ' + ', '.join(f'{name} {spent:.0f}' for name, spent in SPENT.items()))
    sys.stdout.flush()
