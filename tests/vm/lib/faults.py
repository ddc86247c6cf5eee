# SPDX-License-Identifier: Apache-2.0
"""usage: faults.py [WORD=VALUE...]

A fault at each call that changes something, in each phase of init, on a machine with real disks, arrays, mounts, systemd and huge pages.
The next, undisturbed run must end in the same state as on a machine where nothing ever went wrong.

  seed=7 sample=20      that many faults, anywhere; else all of them
  shard=2/3             of all, every third from the second on
  scenes=config,run     of config, change, devices, run, reboot, again
  faults=kill,die,…     of kill, die, ENOSPC, EIO, ENOMEM
  from=N to=N           these calls alone
  container=1           a container: one disk, no array, no huge pages, and all much quicker
  order=random          as seed says; else as they come
  seconds=N             it ends after that time, with what it has done

A scene is a state of the machine, and the run of nodestrap in it that is disturbed. kill ends everything, as systemd does with a unit; die
ends the one process whose call it is, where that is not nodestrap; the others make the call fail, in nodestrap's own process and, once
for each kind of call, in the programs that it starts (tests/helpers/fault-tool.c).
"""
import collections
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import time
import traceback

import storage
from storage import CONFIG, HERE, KUBELET, Problem, read, sh, write

TOOL = HERE + '/fault-tool'
LOG = HERE + '/fault.log'
TREES = ('/etc', '/var/lib/nodestrap', '/run/nodestrap', '/run/eks', '/run/nodeadm', '/run/systemd/system', KUBELET)
FAULTS = ('kill', 'die', 'ENOSPC', 'EIO', 'ENOMEM')
ALL = '''  kubelet: {config: {registryPullQPS: 7}, flags: [--v=3]}
  containerd: {config: "[plugins.\\"io.containerd.grpc.v1.cri\\"]\\nmax_container_log_line_size = 32768\\n"}
'''
INSTANCE = '''    environment: {default: {HTTP_PROXY: "http://proxy.example:3128"}, containerd: {A: b}}
    sysctl: {vm.max_map_count: 262145}
    hugePages: {mode: explicit, pages: [{size: 2Mi, count: 8}]}
'''
LESS = '''    environment: {kubelet: {A: b}}
    sysctl: {vm.max_map_count: 262145}
    hugePages: {mode: explicit, pages: [{size: 2Mi, count: 8}]}
'''
NET = '/proc/sys/net/core/somaxconn'
SYSCTL, PAGES = '/proc/sys/vm/max_map_count', '/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'
SKIPS = {'config': ('devices', 'run'), 'devices': ('config', 'run'), 'run': ('config',), 'all': ()}
PHASES = ('config', 'devices', 'run')
SENTENCE = re.compile(r'nodestrap: failed \((\d+) [A-Z0-9]+\) at .+: .{15,}')

Run = collections.namedtuple('Run', 'code err')


# ---- files -----------------------------------------------------------------------------------------------------------------------

def walk():
    """{path: lstat} of all that may be ours."""
    found = {}
    for top in TREES:
        if os.path.lexists(top):
            found[top] = os.lstat(top)
        for path, dirs, names in os.walk(top):
            for name in dirs + names:
                full = os.path.join(path, name)
                try:
                    found[full] = os.lstat(full)
                except FileNotFoundError:
                    pass
    return found


def content(path, st):
    if stat.S_ISLNK(st.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(st.st_mode):
        with open(path, 'rb') as f:
            return f.read()
    return None


def same(a, b):
    return (a.st_mode, a.st_uid, a.st_gid, a.st_ino, a.st_size, a.st_mtime_ns) == (b.st_mode, b.st_uid, b.st_gid, b.st_ino, b.st_size, b.st_mtime_ns)


class Files:
    """The files as they were once, which restore() brings back."""

    def __init__(self):
        self.stats = walk()
        self.contents = {p: content(p, st) for p, st in self.stats.items()}

    def restore(self):
        now, changed = walk(), False
        for path in sorted(now, reverse=True):
            old = self.stats.get(path)
            if old and stat.S_IFMT(old.st_mode) == stat.S_IFMT(now[path].st_mode):
                continue
            if os.path.lexists(path):
                shutil.rmtree(path) if stat.S_ISDIR(now[path].st_mode) else os.unlink(path)
            changed |= '/systemd/' in path
        for path in sorted(self.stats):
            st, there = self.stats[path], now.get(path)
            directory = stat.S_ISDIR(st.st_mode)
            if there and not directory and same(there, st) and os.path.lexists(path):
                continue
            changed |= '/systemd/' in path and not directory
            if directory:
                os.makedirs(path, exist_ok=True)
            elif stat.S_ISLNK(st.st_mode):
                if os.path.lexists(path):
                    os.unlink(path)
                os.symlink(self.contents[path], path)
                continue
            elif stat.S_ISREG(st.st_mode):
                if not os.path.exists(path) or content(path, os.lstat(path)) != self.contents[path]:
                    with open(path, 'wb') as f:
                        f.write(self.contents[path])
            if (os.lstat(path).st_uid, os.lstat(path).st_gid) != (st.st_uid, st.st_gid):
                os.chown(path, st.st_uid, st.st_gid)
            os.chmod(path, stat.S_IMODE(st.st_mode))
            if not directory:
                self.stats[path] = os.lstat(path)
        return changed


# Files that report a run and its time. An unfinished temporary file in /run is gone at the next boot.
VOLATILE = re.compile(r'/run/nodestrap/(status.json|metrics.prom|progress|.*lock|event.*)|/run/nodestrap|/run/systemd/system|/etc/(mtab|cni.*)|/run/.*\.[0-9a-f]{16}\.tmp')
# Losing one of these is not a failure; the next run has it again.
ASIDE = re.compile(r'/run/nodestrap/(facts.json|plan.*.txt|started/.*|started|devices.json)|/run/eks.*|/run/nodestrap/reload-wanted')
LOOKED = re.compile('/run/nodestrap/(started/|facts.json|plan)')        # what was found on the way, which may differ
UNWELL = '/var/lib/nodestrap/unwell.json'      # until the run phase has ended well


def state_files(up):
    found = {}
    for path, st in walk().items():
        if VOLATILE.fullmatch(path) or path == KUBELET:
            continue
        data = None if LOOKED.match(path) else content(path, st)
        if up or path != UNWELL:
            found[path] = (oct(st.st_mode), st.st_uid, st.st_gid, data)
    return found


def difference(have, want, what=''):
    for key in sorted(set(have) | set(want), key=str):
        a, b = have.get(key), want.get(key)
        if a != b:
            yield f'{what}{key}: is {str(a)[:200]}, would be {str(b)[:200]}'


# ---- the machine -----------------------------------------------------------------------------------------------------------------

def fake_disk():
    """A loop device that nspawn has given the name of an instance store, as sysfs would have it; without udev and PCI."""
    st, top = os.stat('/dev/nvme1n1'), '/sys/block/nvme1n1'
    if not os.path.exists(top):
        sh('mount', '-t', 'tmpfs', 'none', '/sys/block')
        for name, text in (('dev', f'{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}'), ('size', str(1 << 21)), ('ro', '0'), ('device/model', storage.STORE),
                           ('device/serial', 'AWS00001000000000001'), ('queue/logical_block_size', '512'), ('stat', ' '.join('0' * 17))):
            write(f'{top}/{name}', text + '\n')
        for name in ('holders', 'slaves'):
            os.makedirs(f'{top}/{name}')
    os.mknod = lambda path, mode, device: os.mkfifo(path, 0o600)        # what a container may not make
    os.setxattr = lambda *words: None
    storage.plug = storage.settle = lambda *words: None
    os.rename('/usr/local/sbin/mdadm', '/usr/local/sbin/mdadm.stub') if os.path.exists('/usr/local/sbin/mdadm') else None


class Machine:
    def __init__(self, container):
        if container:
            fake_disk()
        self.node, self.container = storage.Node(), container
        self.free = {path: read(path) for path in ((NET,) if container else (SYSCTL, PAGES))}
        self.boot_env = dict(self.node.env)
        self.pristine = None

    def configure(self, less=False):
        more = LESS if less else INSTANCE
        if self.container:
            more = ''.join(line.replace('vm.max_map_count: 262145', 'net.core.somaxconn: 4097') + '\n' for line in more.splitlines() if 'hugePages' not in line)
        self.node.configure('RAID0', len(self.node.all), 'xfs', more=more)
        write(CONFIG, ALL if not less else '', 'a')

    def init(self, phase, *before):
        skips = [w for s in SKIPS[phase] for w in ('--skip', s)]
        done = subprocess.run([*before, '/usr/bin/nodestrap', 'init', *skips, '--config-cache', storage.CACHE, '-c', 'file://' + CONFIG], env=self.boot_env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=600, check=False)       # of one that hangs
        return Run(done.returncode, done.stderr)

    def must(self, phase):
        run = self.init(phase)
        if run.code:
            raise Problem(f'{phase} phase, undisturbed: exit {run.code}: {run.err[-1500:]}')

    def kernel(self, values):
        for path, value in values.items():
            if read(path) != value:
                write(path, value)

    def bare(self, files=None):
        """An instance that has just been launched; files: with what a phase has left there."""
        self.node.clear()
        self.kernel(self.free)
        self.put(files or self.pristine)

    @staticmethod
    def put(files):
        if files.restore():
            sh('systemctl', 'daemon-reload')

    def state(self, up):
        """All that is to be the same, whatever happened on the way; up: the disks are in use."""
        found = {'files': state_files(up), 'kernel': {p: read(p) for p in self.free}}
        if up:
            node = self.node
            node.last = storage.Result(0, '', None, [], {})
            found['storage'] = list(node.complaints_array()) + list(node.complaints_mounts())
            if not found['storage']:
                found['storage'] = list(node.complaints_size()) + list(node.complaints_data())
            found['storage'] += list(node.complaints_daemons())
            found['mounts'] = [(m.target, m.root, m.type, sorted(m.options)) for m in sorted(node.our_mounts(), key=lambda m: m.target)]
            array = next(iter(storage.arrays()), '')
            found['link'] = not array or os.path.basename(os.path.realpath('/dev/md/kubernetes')) == array
            array = array or storage.disks()[0].name
            found['content'] = {k: v for k, v in (line.split('=', 1) for line in sh('blkid', '-p', '-o', 'export', '/dev/' + array).splitlines() if '=' in line)
                                if k not in ('DEVNAME', 'UUID')}
            found['failed units'] = sh('systemctl', 'list-units', '--failed', '--plain', '--no-legend')
        return found

    def complaints(self, want, up, aside=True):
        have = self.state(up)
        if not aside:
            have, want = ({**state, 'files': {p: v for p, v in state['files'].items() if not ASIDE.fullmatch(p)}} for state in (have, want))
        found = list(have.get('storage', []))
        for key, value in want.items():
            if key != 'storage' and have[key] != value:
                found += list(difference(have[key], value)) if isinstance(value, dict) else [f'{key}: is {have[key]}, would be {value}']
        return found

    def unchanged(self, phase):
        """A second run finds nothing to do."""
        run = self.init(phase)
        if run.code:
            return [f'a second clean run: exit {run.code}: {run.err[-600:]}']
        actions = json.loads(read('/run/nodestrap/status.json'))['runs'][','.join(p for p in PHASES if p not in SKIPS[phase])]['actions']
        return [f'a second clean run: {a["id"]} is {a["outcome"]}' for a in actions if a['outcome'] != 'unchanged'] + ['nothing is reported'] * (len(actions) < 2)


class Scene:
    """A state of the machine, the phase that is disturbed in it, and what must come of it."""

    def __init__(self, machine, name, phase, ready, up):
        self.machine, self.name, self.phase, self.ready, self.up = machine, name, phase, ready, up
        self.want, self.calls = None, []

    def learn(self):
        """The undisturbed run, twice: what it leaves, and which calls it makes."""
        m = self.machine
        self.ready()
        run = m.init(self.phase, TOOL, '-l', LOG)
        if run.code:
            raise Problem(f'{self.name}: counting: exit {run.code}: {run.err[-1500:]}')
        self.calls = read(LOG).splitlines()[:-1]
        first = m.state(self.up)
        self.ready()
        m.must(self.phase)
        self.want = m.state(self.up)
        return first.get('storage', []) + m.complaints(first, self.up) + m.unchanged(self.phase)

    def faults_at(self, n, seen):
        """Of a program that is not nodestrap each kind of call fails once; it dies, and all with it, at each of the first eight calls of a kind and at every eighth one after that."""
        call = self.calls[n - 1].split(' ')
        if call[2].startswith('clone'):
            return ('kill', 'ENOMEM')
        if call[1].endswith('*'):
            return [f for f in FAULTS if f != 'die']
        kind = (call[1], call[2])
        seen[kind] += 1
        return FAULTS if seen[kind] == 1 else ('kill', 'die') if seen[kind] <= 8 else ('kill',) if seen[kind] % 8 == 0 else ()

    def disturb(self, n, fault):
        """-> (complaints, what was hit or None where there was no such call)"""
        m = self.machine
        self.ready()
        if os.path.exists(LOG):
            os.unlink(LOG)
        run = m.init(self.phase, TOOL, '-n', str(n), '-f', fault, '-l', LOG)
        lines = read(LOG, '').splitlines()
        hit = lines[0] if lines and not lines[0].startswith('total') else None
        if hit is None:
            return [], None
        found = self.judge_disturbed(run, hit)
        if run.code == 0:
            found += ['as it ended: ' + c for c in m.complaints(self.want, self.up, aside=False)]
        if run.code or not found and m.complaints(self.want, self.up):
            again = m.init(self.phase)
            if again.code:
                return found + [f'the clean run after it: exit {again.code}: {again.err[-900:]}', f'the disturbed one: exit {run.code}: {run.err[-900:]}'], hit
        found += m.complaints(self.want, self.up)
        if not found and (not self.up or n % 4 == 0):
            found += m.unchanged(self.phase)
        return found + [f'the disturbed run: exit {run.code}: {run.err[-900:]}'] if found else [], hit

    def judge_disturbed(self, run, hit):
        if run.code == 137:
            return []
        if run.code == 0 or run.code == 127 and 'error while loading shared libraries' in run.err:
            return []
        last = run.err.strip().splitlines()[-1] if run.err.strip() else ''
        match = SENTENCE.match(last)
        if not match or int(match[1]) != run.code or run.code not in (12, 20, 30, 31, 40, 50, 51) and not (run.code == 1 and re.search(' (clone|sendto)', hit)):
            return [f'exit {run.code}, and the last line is: {last}']
        return []


def scenes(machine):
    """Each begins where the one before it ends."""
    m = machine
    m.configure()
    m.node.clear()
    m.pristine = Files()
    left = {}

    def after(name):
        def ready():
            m.put(left[name])
            m.kernel(left[name].kernel)
        return ready

    def keep(name):
        left[name] = Files()
        left[name].kernel = {p: read(p) for p in m.free}

    def note_root():
        sh('systemctl', 'reset-failed', *storage.UNITS, check=False)        # the test starts daemons more often than systemd allows
        m.node.on_root = {path: storage.tree(path) for path in storage.BINDS}
        m.node.want = {path: {**m.node.kept.get(path, {}), **m.node.on_root[path]} for path in storage.BINDS}

    keep('bare')
    yield Scene(m, 'config', 'config', after('bare'), False)
    after('bare')()
    m.must('config')
    keep('config')

    def changed():
        m.configure()
        after('config')()
        m.configure(less=True)
    yield Scene(m, 'change', 'config', changed, False)
    m.configure()
    after('config')()

    def no_devices():
        after('config')()
        m.kernel(m.free)
    yield Scene(m, 'devices', 'devices', no_devices, False)
    no_devices()
    m.must('devices')
    keep('devices')

    def launched():
        m.node.clear()
        after('devices')()
        note_root()
    yield Scene(m, 'run', 'run', launched, True)
    launched()
    m.must('run')

    def rebooted():
        m.node.off()
        m.node.on()
        after('devices')()
        note_root()
    yield Scene(m, 'reboot', 'run', rebooted, True)
    rebooted()
    m.must('run')
    yield Scene(m, 'again', 'all', lambda: None, True)


def main(*words):
    options = dict(w.split('=', 1) for w in words)
    wanted, faults = options.get('scenes', '').split(',') if 'scenes' in options else None, options.get('faults', ','.join(FAULTS)).split(',')
    shard, of = map(int, options.get('shard', '1/1').split('/'))
    begin, limit, sample = time.monotonic(), float(options.get('seconds', 'inf')), int(options.get('sample', '0'))
    report, machine, done, number = storage.Report(), Machine('container' in options), collections.Counter(), 0
    chance = random.Random(int(options.get('seed', '1')))
    for scene in scenes(machine):
        if wanted and scene.name not in wanted:
            continue
        report.line(f'{scene.name}: two undisturbed runs give the same state', scene.learn())
        print(f'# {scene.name}: {len(scene.calls)} calls, after {time.monotonic() - begin:.0f} s')
        if 'list' in options:
            print('\n'.join('# ' + c[:150] for c in scene.calls))
        seen, todo, bad = collections.Counter(), [], []
        for n in range(int(options.get('from', '1')), int(options.get('to', len(scene.calls))) + 1):
            todo += [(n, f) for f in scene.faults_at(n, seen) if f in faults]
        if sample:
            todo = sorted(chance.sample(todo, min(len(todo), sample)))
        if options.get('order') == 'random':
            chance.shuffle(todo)
        for n, fault in todo:
            number += 1
            if number % of != shard % of or time.monotonic() - begin > limit:
                continue
            found, hit = scene.disturb(n, fault)
            if hit is None:
                continue
            done['calls killed' if fault in ('kill', 'die') else 'faults injected'] += 1
            done[scene.name] += 1
            with open('/dev/ttyS0', 'a') as f:
                f.write(f'{"not " if found else ""}right: {scene.name}: {fault} at {hit[:120]}\n')
            if found:
                bad.append(f'{fault} at {hit[:200]}')
                report.line(f'{scene.name}: nodestrap recovers from {fault} at {hit[:200]}', found)
                for path in ('status.json',):
                    shutil.copy('/run/nodestrap/' + path, f'{HERE}/out/{scene.name}-{n}-{fault}.json') if os.path.exists('/run/nodestrap/' + path) else None
        if not bad and not done[scene.name] and time.monotonic() - begin > limit:
            print(f'# {scene.name}: the time was up')
        elif not bad:
            report.line(f'{scene.name}: each of {done[scene.name]} faults is followed by the undisturbed state', [] if done[scene.name] else ['not one'])
    for what in ('calls killed', 'faults injected'):
        print(f'# figure: {done[what]} {what}')
    print(f'# {time.monotonic() - begin:.0f} s')
    report.finish(volumes_used='container' in options)


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (Problem, OSError, KeyError, subprocess.TimeoutExpired) as e:
        storage.Report().line('the faults run to their end', [f'{type(e).__name__}: {e}'])
        traceback.print_exc()
        storage.Report().finish(volumes_used=True)
