# SPDX-License-Identifier: Apache-2.0
"""A node with EBS volumes, from inside a virtual machine (vmboot.sh -v): what tests/vm/lib/volumes_*.py share.

The instance stores of storage.py are put to use only where a test says so. What a volume holds outlives the machine and wins over what
lies in its directory; a blank one takes in what lies there.
"""
import collections
import json
import os
import random
import shutil
import struct
import subprocess

import natural
import storage
from storage import BINDS, CACHE, CONTAINERD, EBS, HERE, KUBELET, MOUNT_PATH, PCI, PODS, UNDER, Node, bake, blank, disks, mounts, read, sh, tree, \
    tree_difference, write

PLACES = '/mnt/k8s-volumes'
SDB, SDC, SDD, SDE = (f'vol{n:017}' for n in (1, 2, 3, 4))      # serial numbers, as vmboot.sh counts them
TTY = '/dev/ttyS0'
BELOW = 'lies on the root disk below the mount'        # right only for what the image brought, where the volume had something already
TAKEN = '.nodestrap-taken'      # stays on a volume that is one directory

# device: as the configuration calls it; targets: a path or a list; serial: the volume that is meant
Entry = collections.namedtuple('Entry', 'device targets fs serial')


def by_id(serial):
    return f'/dev/disk/by-id/nvme-{EBS.replace(" ", "_")}_{serial}'


def volume(serial):
    return next(d for d in disks(EBS) if d.serial == serial)


def world(what):
    """To vmboot.sh: attach N, detach N, grow N SIZE, blank-drives."""
    write(TTY, f'VMTEST {what}\n')


def attach(n):
    world(f'attach {n}')
    sh('udevadm', 'wait', '--timeout=60', by_id(f'vol{n:017}'))
    storage.settle()


def replug():
    """As over a boot: the same drives in another order, with other kernel names."""
    all_disks = disks() + disks(EBS)
    addresses = [d.pci for d in all_disks]
    for address in addresses:
        write(PCI + 'unbind', address)
    random.shuffle(addresses)
    for address in addresses:
        write(PCI + 'bind', address)
    sh('udevadm', 'wait', '--timeout=60', *(f'/dev/disk/by-id/nvme-{d.model.replace(" ", "_")}_{d.serial}' for d in all_disks))
    storage.settle()


def top(path):
    """All that matters of a directory itself."""
    return storage.entry(path, '', {}) if os.path.isdir(path) else None


def written():
    """What all drives have seen of writes and discards; what a test of a refusal compares."""
    return {d.name: storage.counters(d.name) for d in disks() + disks(EBS)}


def daemons():
    return [sh('systemctl', 'show', '-P', 'InvocationID', u) for u in storage.UNITS]


def of_any_boot(entries):
    """Without the time of files that the first phase writes again at each boot, also on the volume."""
    return {k: v[:6] + ((v[6][0], v[6][2]),) + v[7:] if k == 'kubeconfig' else v for k, v in entries.items()}


class VolumeNode(Node):
    """One list of volumes on this machine."""

    def __init__(self, imds=True):
        super().__init__(imds)
        self.entries, self.tops = [], {}
        self.prefix, self.busy = [], None       # words before nodestrap; a drive that others write to

    def configure(self, *entries, stores='', more=''):        # pylint: disable=arguments-differ
        """stores: what localStorage says, in YAML."""
        self.entries = list(entries)
        self.mount_path, self.disabled = MOUNT_PATH, ()
        text = read(HERE + '/node.head') + '\n  instance:\n' + (f'    localStorage: {{{stores}}}\n' if stores else '') + more
        text += '    storage:\n      volumes:\n'
        for e in entries:
            targets = f'mountTarget: {e.targets}' if isinstance(e.targets, str) else f'mountTargets: [{", ".join(e.targets)}]'
            text += f'      - {{device: "{e.device}", {targets}' + (f', fsType: {e.fs}' if e.fs else '') + '}\n'
        write(storage.CONFIG, text)

    def targets(self):
        """[(path, entry, is it the whole volume?)]"""
        return [(t, e, isinstance(e.targets, str)) for e in self.entries for t in ([e.targets] if isinstance(e.targets, str) else e.targets)]

    # -- the machine's switch --

    def our_mounts(self):
        mine = {t for t, _, _ in self.targets()}
        return [m for m in mounts() if m.target in mine or m.target in BINDS or m.target.startswith('/mnt/')]

    def keep(self):
        self.kept = {t: tree(t) for t, _, _ in self.targets() if os.path.ismount(t)}
        self.tops = {t: top(t) for t in self.kept}

    def on(self):                       # pylint: disable=arguments-differ
        replug()

    def clear(self, *also):             # pylint: disable=arguments-differ
        """A new instance with new volumes: blank drives, and an image that brings something in every directory. also: more of these."""
        self.off()
        self.kept, self.tops = {}, {}
        blank([d.name for d in disks() + disks(EBS)])
        shutil.rmtree(MOUNT_PATH, ignore_errors=True)
        shutil.rmtree(PLACES, ignore_errors=True)
        for path in (*BINDS, *also):
            if os.path.isdir(UNDER + path):
                shutil.rmtree(UNDER + path)
            os.makedirs(path)
        bake_all()
        for path in also:
            bake(path, path)

    # -- boots --

    def note(self):
        """Between the phases: what the run phase finds, and what must be there when it has ended."""
        paths = {t for t, _, _ in self.targets()} | set(BINDS)
        self.on_root = {path: tree(path) for path in paths}
        # a volume that had a directory keeps it as it is; else it is that of the image
        self.want = {path: self.kept.get(path) or self.on_root[path] for path in paths}
        self.want_top = {path: self.tops.get(path) or top(path) for path in paths}

    def nodestrap(self, *words):
        return subprocess.run([*self.prefix, 'nodestrap', *words, '-c', 'file://' + storage.CONFIG], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors='replace', check=False)

    def boot(self, plan=False, must=True):                    # pylint: disable=arguments-differ
        """must: the first phase must end well."""
        config = self.nodestrap('init', '--skip', 'run', '--config-cache', CACHE)
        if config.returncode and must:
            raise storage.Problem(f'config phase: exit {config.returncode}: {config.stderr[-1500:]}')
        self.note()
        return self.run_phase(self.plan() if plan else None)

    def run_phase(self, seen=None):
        self.etc, self.before, self.counted = self.look_at_etc(), mounts(), written()
        write(storage.TOOLS, '')
        run = self.nodestrap('init', '--skip', 'config', '--config-cache', CACHE)
        self.last = storage.Result(run.returncode, run.stderr, seen, read(storage.TOOLS).splitlines(), json.loads(read('/run/nodestrap/status.json', '{}')))
        return self.last

    def start_run_phase(self):
        """In the background: -> the process, whose stderr is read by its owner."""
        self.etc, self.before, self.counted = self.look_at_etc(), mounts(), written()
        write(storage.TOOLS, '')
        return subprocess.Popen(['nodestrap', 'init', '--skip', 'config', '--config-cache', CACHE, '-c', 'file://' + storage.CONFIG], env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors='replace')

    def ended(self, process, said):
        """Its result: said is what was read of it so far."""
        said += process.stderr.read()
        code = process.wait()
        self.last = storage.Result(code, said, None, read(storage.TOOLS).splitlines(), json.loads(read('/run/nodestrap/status.json', '{}')))
        return self.last

    # -- judging --

    def complaints_mounts(self, fs=None):
        now, folders = mounts(), set()
        for target, e, whole in self.targets():
            d, there = volume(e.serial), [m for m in now if m.target == target]
            if len(there) != 1:
                yield f'{target} is mounted {len(there)} times: {there}'
                continue
            m = there[0]
            if m.number != d.number or m.type != (e.fs or 'xfs'):
                yield f'{target} is on {m.number} ({m.type}, {m.source}), want {d.number} ({e.fs or "xfs"})'
            if whole != (m.root == '/') or (d.number, m.root) in folders:
                yield f'{target} shows {m.root} of its volume'
            folders.add((d.number, m.root))
            if 'noatime' not in m.options:
                yield f'{target} is mounted with {m.options}'
            if not any(t.startswith('shared:') for t in m.tags):
                yield f'{target} is not shared: {m.tags}'
        mine, numbers = {t for t, _, _ in self.targets()}, {d.number for d in disks(EBS)}
        for m in now:
            if m.number in numbers and m.target not in mine and not m.target.startswith((PLACES + '/', UNDER + '/')):
                yield f'mounted too: {m.target}'

    def complaints_size(self):
        for target, e, _ in self.targets():
            s, size = os.statvfs(target), int(read(f'/sys/block/{volume(e.serial).name}/size')) * 512
            if not 0.8 * size < s.f_blocks * s.f_frsize <= size:
                yield f'{target} has {s.f_blocks * s.f_frsize >> 20} MiB of {size >> 20}'

    def complaints_data(self):
        for target, _, _ in self.targets():
            yield from tree_difference(of_any_boot(tree(target)), of_any_boot(self.want[target]), target)
            if top(target) != self.want_top[target]:
                yield f'{target} itself is {top(target)}, was {self.want_top[target]}'
            # what is below the mount is hidden and takes room; what the first phase writes again at each boot is on the volume, too
            hidden = {k: v for k, v in tree(UNDER + target).items() if v[5]}
            for k, v in hidden.items():
                if target not in self.kept or tree(target).get(k, [None] * 6)[5] != v[5]:
                    yield f'{target}/{k} {BELOW}'
            left = [n for n in os.listdir(target) if n.startswith('.nodestrap') and n != TAKEN]
            if left:
                yield f'{target} holds {left}'
        for place in os.listdir(PLACES) if os.path.isdir(PLACES) else []:
            left = [n for n in os.listdir(f'{PLACES}/{place}') if n.startswith('.nodestrap') and n != TAKEN]
            if left:
                yield f'{PLACES}/{place} holds {left}'

    def complaints_up(self, tools=None, made=None):          # pylint: disable=arguments-differ
        """All that a node must be after a boot that went well. tools: programs that it took; made: how many file systems."""
        if self.last.code:
            return [f'exit {self.last.code}', self.last.err[-1500:]]
        try:
            found = list(self.complaints_mounts())
            if not found:
                found += list(self.complaints_size()) + list(self.complaints_data())
            found += list(self.complaints_daemons()) + list(self.complaints_etc())
            if self.last.status.get('verdict') != 'ok':
                found.append(f'status.json: {self.last.status.get("verdict")}')
            if tools is not None:
                have = sorted(line.split()[0] for line in self.last.tools)
                found += [f'programs started: {self.last.tools}, want {tools}'] if have != sorted(tools) else []
            if made is not None:
                done = [i for i, outcome in self.outcomes() if i.startswith('make-filesystem:') and outcome == 'done']
                found += [f'file systems made: {done}, want {made}'] if len(done) != made else []
        except (storage.Problem, OSError, KeyError, StopIteration) as e:
            found = [f'{type(e).__name__}: {e}']
        return found

    def outcomes(self):
        return [(a['id'], a['outcome']) for run in self.last.status['runs'].values() for a in run['actions']]

    def complaints_again(self):
        """A second run by hand changes nothing and restarts nothing."""
        before = mounts(), daemons(), written()
        self.again()
        if self.last.code:
            return [f'exit {self.last.code}', self.last.err[-1500:]]
        sh('sync')
        found = [f'mounts: {mounts()}'] * (mounts() != before[0]) + ['daemons were restarted'] * (daemons() != before[1])
        found += [f'{i}: {outcome}' for i, outcome in self.outcomes() if outcome != 'unchanged']
        return found + self.last.tools + list(self.complaints_data())

    def complaints_refused(self, word, says, exit_code=30):   # pylint: disable=arguments-differ
        """This cause and these texts in the last line, not one write to a drive, no program, no mount; the daemons stay down and the
        directories as they are."""
        found, r = [], self.last
        last = r.err.strip().splitlines()[-1] if r.err.strip() else ''
        words = [word] if isinstance(word, str) else word
        if r.code != exit_code:
            found.append(f'exit {r.code}')
        if not any(f'({exit_code} {w})' in last for w in words):
            found.append(f'the last line is not one of {words}: {last}')
        found += [f'the last line does not say "{text}": {last}' for text in says if text not in last]
        found += self.complaints_untouched() + self.complaints_down()
        if exit_code == 30 and (r.status.get('verdict'), r.status.get('exit')) != ('failed', exit_code):
            found.append(f'status.json: {r.status.get("verdict")}, {r.status.get("exit")}')
        return found + [r.err[-1200:]] if found else []

    def complaints_untouched(self):
        now = written()
        found = [f'{name} was written: {before} -> {now.get(name)}' for name, before in self.counted.items() if now.get(name) != before and name != self.busy]
        if mounts() != self.before:
            found.append(f'mounted: {[m for m in mounts() if m not in self.before]}')
        for path, want in self.on_root.items():
            if not os.path.ismount(path):
                found += tree_difference(tree(path), want, path)
        return found + [f'started: {line}' for line in read(storage.TOOLS, '').splitlines()]

    def describe(self):
        text = ['\n'.join(f'{m.target} {m.number} {m.type} {m.source} {m.root}' for m in self.our_mounts()), read(storage.CONFIG, '').split('instance:')[-1]]
        if self.last:
            text += ['tools: ' + '; '.join(self.last.tools), self.last.err[-1500:]]
        return text


def after_boot(*entries):
    """The node as its units have left it, which natural.py looked at; where they have not run, as it is."""
    node = VolumeNode(imds=False)
    node.configure(*entries)
    before = natural.load(natural.BEFORE, {})
    if before.get('boot') != read('/proc/sys/kernel/random/boot_id'):
        return node
    node.kept, node.tops = natural.load(natural.KEPT, ({}, {}))
    node.on_root, node.etc, node.before = before['want'], before['etc'], before['mounts']
    node.want = {path: node.kept.get(path) or before['want'][path] for path in before['want']}
    node.want_top = {path: node.tops.get(path) or before['tops'][path] for path in before['tops']}
    journal = sh('journalctl', '-b', '-o', 'cat', '--no-pager', '-u', 'nodestrap-run.service', '-u', 'nodestrap-config.service')
    code = int(sh('systemctl', 'show', '-P', 'ExecMainStatus', 'nodestrap-run.service'))
    node.last = storage.Result(code, journal, before['plan'], [], natural.status())
    return node


def bake_all():
    """What an image brings, and what a copy to another file system can lose of it: see storage.bake(); SELinux's labels, too."""
    os.chmod(PODS, 0o750)
    bake(CONTAINERD, 'baked')
    bake(PODS, 'logs', nasty=False)
    write(KUBELET + '/pki/current.pem', 'key')
    os.chmod(KUBELET + '/pki', 0o700)
    os.chmod(CONTAINERD, 0o711)
    os.chown(CONTAINERD, 0, 998)
    for path, label in ((CONTAINERD, b'container_var_lib_t'), (CONTAINERD + '/snapshots/1/pause', b'container_ro_file_t'),
                        (KUBELET + '/pki/current.pem', b'cert_t')):
        os.setxattr(path, 'security.selinux', b'system_u:object_r:' + label + b':s0\0')


# ---- what can lie on a drive ----

MBR = bytes(446) + struct.pack('<B3sB3sII', 0, b'\0\2\0', 0x83, b'\0\2\0', 2048, 204800) + bytes(48) + b'\x55\xaa'


def put(name, offset, data):
    with open('/dev/' + name, 'r+b') as f:
        f.seek(offset)
        f.write(data)
    sh('blockdev', '--rereadpt', '/dev/' + name, check=False)
    storage.settle()


def finish(report):
    report.finish(volumes_used=True)


