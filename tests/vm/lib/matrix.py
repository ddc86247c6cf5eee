# SPDX-License-Identifier: Apache-2.0
"""usage: matrix.py STRATEGY [DISKS FILESYSTEM] [short]

Every situation that a machine can boot into, for 1, 3, 4 and 8 disks, xfs and ext4, or for these alone: one line each. Where the file
system does not matter (the name of an array, another host name, foreign disks) one of both is enough: xfs with 1 and 4 disks, ext4 with
3 and 8.
nodeadm makes xfs alone: where xfs is asked for its units have mounted it, where ext4 is asked for they have not. The machine is
switched off and on by taking the drives from their driver and giving them back, so that udev sees them come and assembles what it finds.
"""
import os
import sys

import storage
from natural import AGAIN, FRESH
from storage import BINDS, CONTAINERD, KUBELET, MOUNT_PATH, PODS, UNDER, Problem, arrays, bake, blank, counters, disks, settle, sh, write

MDADM = '/usr/sbin/mdadm'
ASSEMBLED = {**AGAIN, 'create-raid': 'assemble', 'make-filesystem': 'assemble', 'mount': 'assemble'}
DONE = {'create-raid': 'keep', 'make-filesystem': 'keep', 'mount': 'keep', 'bind': 'keep'}
UNITS, OLD_DISK = '/etc/systemd/system/', '/dev/disk/by-uuid/5c1c3e0d-2b6b-4a57-9c4d-3c4d0a7b1e11'


class Matrix:
    def __init__(self, strategy):
        self.report, self.node, self.strategy = storage.Report(), storage.Node(), strategy
        self.hostname = os.uname().nodename
        sh('modprobe', 'md-mod')
        write('/proc/sys/dev/raid/speed_limit_max', '2000')     # KB/s: a new RAID10 is made the same on all its disks, for as long as it stands

    def short(self, n, fs):
        self.n, self.fs, self.up = n, fs, False
        self.node.configure(self.strategy, self.n, self.fs)
        for function in (Matrix.first_boot, Matrix.second_run, Matrix.rebooted):
            self.case(function.__doc__, function)
        self.report.finish()

    def run(self, combinations):
        foreign_elsewhere()
        for n, fs in combinations:
            with storage.timed(f'{self.strategy}, {n} disks, {fs}'):
                self.combination(n, fs)
        self.report.line(f'{self.strategy}: nodestrap leaves the array on other disks alone', foreign_complaints())
        self.report.finish()

    def combination(self, n, fs):
        print('# sectors of', {int(storage.read(f'/sys/block/{d.name}/queue/logical_block_size')) for d in disks()})
        self.n, self.fs, self.up = n, fs, False
        self.node.configure(self.strategy, n, fs)
        if self.strategy == 'RAID10' and n < 4:
            return self.case('nodestrap refuses fewer disks than RAID10 needs', self.too_few)
        for function in SITUATIONS:
            if self.is_wanted(function):
                self.case(function.__doc__, function)

    def is_wanted(self, function):
        if function is Matrix.member_missing and self.n == 1 or function is Matrix.promised_missing and (self.n, self.fs) != (4, 'ext4'):
            return False            # without its only disk a node has nothing to do; the wait for one is half a minute
        if function in ANY_FS and (self.fs == 'xfs') != (self.n in (1, 4)):
            return False
        if function in ONE_FS and self.fs != ONE_FS[function]:
            return False
        return (self.node.raid() or function not in ARRAYS_ONLY) and (self.strategy != 'Mount' or function not in MOVES_ONLY)

    def case(self, what, function):
        """A situation starts from a node that is up; if the one before broke it, from a new one."""
        complaints = []
        try:
            if function not in (Matrix.first_boot, self.too_few) and not self.up:
                self.new()
                if self.node.boot(plan=False).code:
                    raise Problem(f'a first boot fails: {self.node.last.err[-600:]}')
            complaints = function(self) if function != self.too_few else function()
        except (Problem, OSError, ValueError, KeyError, IndexError) as e:
            complaints = [f'{type(e).__name__}: {e}']
        self.up = not complaints and function not in LEAVES_RUINS
        self.report.line(f'{self.strategy}, {self.n} disk{"s" * (self.n > 1)}, {self.fs}: {what}', complaints, self.node.describe)

    def new(self):
        self.node.clear()

    def judge(self, states, tools=None, fs=None):
        return self.node.complaints_up(self.node.filter(states), tools, fs)

    def boot(self, states, tools=None, fs=None):
        self.node.boot()
        return self.judge(states, tools, fs)

    def tools(self, *words):
        """Of mdadm, mkfs, cp those that this combination starts."""
        mkfs = [f'mkfs.{self.fs}'] * (self.n if self.strategy == 'Mount' else 1)
        have = {'mdadm': ['mdadm'] * self.node.raid(), 'mkfs': mkfs, 'cp': ['cp'] * (self.strategy != 'Mount')}
        return [name for w in words for name in have[w]]

    def members(self):
        return ['/dev/' + d.name for d in self.node.stores()]

    def user_data(self, word):
        """What a running node and its user write; some of it on the disks alone, some over what the image brought."""
        if self.strategy == 'Mount':
            for target, _, _ in self.node.expected_mounts():
                bake(f'{target}/{word}', word, nasty=False)
            return
        bake(f'{CONTAINERD}/{word}', word)
        write(f'{PODS}/{word}/0.log', word)
        write(f'{KUBELET}/pods/{word}/etc-hosts', word)
        write(f'{KUBELET}/pki/current.pem', word)
        bake(f'{MOUNT_PATH}/0/mine {word}', word, nasty=False)

    def reboot(self, word):
        self.user_data(word)
        self.node.off()
        self.node.on()

    def halt(self, word):
        """As reboot(), for situations in which the test does the part of udev; drives that come and go cost seconds."""
        self.user_data(word)
        self.node.off()

    def announce(self, paths):
        """To udev, as if the drives came now."""
        sh('udevadm', 'trigger', '--action=add', *paths)
        settle()

    # -- situations; the text is what the line says --

    def too_few(self):
        self.node.clear(self.n)
        before = {d.name: counters(d.name) for d in disks()}
        self.node.configure(self.strategy, self.n, self.fs, expected=0)
        self.node.boot()
        return self.node.complaints_refused('EDISKS', ['RAID10'], before)

    def first_boot(self):
        """the first boot sets up blank disks"""
        self.new()
        return self.boot(FRESH, self.tools('mdadm', 'mkfs', 'cp'))

    def second_run(self):
        """a second run changes nothing"""
        before = storage.mounts(), [sh('systemctl', 'show', '-P', 'InvocationID', u) for u in storage.UNITS]
        self.node.kept = {}
        self.node.want = {path: storage.tree(path) for path in BINDS}
        self.node.again()
        found = self.judge(DONE, [])
        if (storage.mounts(), [sh('systemctl', 'show', '-P', 'InvocationID', u) for u in storage.UNITS]) != before:
            found.append('mounts or daemons are not those of before')
        actions = self.node.last.status.get('runs', {}).get('config,devices,run', {}).get('actions', [])
        found += [f'{a["id"]}: {a["outcome"]}' for a in actions if a['outcome'] != 'unchanged']
        if len(actions) < 10:
            found.append(f'only {len(actions)} actions are reported')
        return found

    def rebooted(self):
        """a reboot uses what udev has assembled"""
        self.reboot('reboot')
        found = self.boot(AGAIN)
        return found + [t for t in self.node.last.tools if not t.startswith('cp')]

    def other_name(self, name):
        self.halt('name')
        sh(MDADM, '--assemble', name, *self.members())
        settle()
        return self.boot(AGAIN)

    def named_md127(self):
        """a reboot uses an array that was assembled as md127"""
        return self.other_name('/dev/md127')

    def named_underscore(self):
        """a reboot uses an array that was assembled as kubernetes_0"""
        return self.other_name('/dev/md/kubernetes_0')

    def not_assembled(self):
        """a reboot assembles an array that udev did not assemble"""
        self.halt('alone')
        return self.boot(ASSEMBLED, ['mdadm', 'cp'])

    def other_hostname(self):
        """a reboot under another host name uses the disks of the first one"""
        self.halt('hostname')
        if self.node.raid():
            sh(MDADM, '--assemble', '/dev/md126', '--update=name', '--name=somehost:kubernetes', *self.members())
            sh(MDADM, '--stop', '/dev/md126')
            settle()                            # udev has seen the disks change and put them together again
            self.node.stop_arrays()
        storage.plug([])
        sh('hostname', 'ip-10-9-8-7')
        try:
            self.node.on()
            return self.boot(AGAIN)
        finally:
            sh('hostname', self.hostname)

    def member_missing(self):
        """nodestrap notices a missing disk, and uses it when it is back"""
        gone = self.unplug_last()
        before, kept = {d.name: counters(d.name) for d in disks()}, self.node.kept
        self.node.configure(expected=0)         # it is not expected: only the other members show it
        self.node.boot()
        if self.strategy == 'Mount':
            self.node.n -= 1
            found = self.judge(AGAIN)
            self.node.n += 1
        else:
            enough = self.strategy == 'RAID0' or self.n > 4
            found = self.node.complaints_refused('EDISKS', [f'has {self.n} members, but only {self.n - 1} instance store' if enough else
                                                            f'needs at least four instance stores, but this machine has {self.n - 1}'], before)
        self.node.off()
        self.node.kept = {**kept, **self.node.kept}
        self.node.configure()
        return found + self.plug_last(gone)

    def promised_missing(self):
        """init fails if an expected disk is missing, and the next boot uses it"""
        gone = self.unplug_last()
        before, kept = {d.name: counters(d.name) for d in disks()}, self.node.kept
        self.node.boot()
        found = self.node.complaints_refused('EDISKS', [f'1 of {self.n} instance stores is missing', disks()[0].serial], before)
        self.node.off()
        self.node.kept = kept
        return found + self.plug_last(gone)

    def unplug_last(self):
        gone = self.node.stores()[-1]
        self.halt('missing')
        storage.plug(self.node.all[:self.n - 1])
        self.node.stop_arrays()
        self.announce(['/dev/' + d.name for d in disks()])
        sh('systemctl', 'stop', 'mdadm-last-resort@*.timer')    # which starts it without that disk after as many seconds as we wait
        return gone

    def plug_last(self, gone):
        storage.plug(self.node.all[:self.n])
        if gone.serial not in [d.serial for d in disks()]:
            raise Problem('the disk did not come back')
        return self.boot(ASSEMBLED if self.node.raid() else AGAIN)      # udev had but one of them to put into an array

    def member_blank(self):
        """nodestrap sets up the node again if one disk is blank"""
        self.halt('blank')
        victim = self.node.stores()[self.n // 2]
        blank([victim.name])
        self.announce(self.members())
        if self.strategy == 'Mount':
            i = [d.name for d in self.node.stores()].index(victim.name)
            self.node.kept.pop(f'{MOUNT_PATH}/{i + 1}')
            return self.boot({'make-filesystem': ['keep', 'make'] if self.n > 1 else 'make', 'mount': 'make'}, [f'mkfs.{self.fs}'])
        if self.strategy == 'RAID10':
            return self.boot({**ASSEMBLED, 'create-raid': 'repair'}) + self.all_members()
        self.node.kept = {}
        remade = {'create-raid': 'remake', 'make-filesystem': ['make', 'remake'][self.n > 1]}
        return self.boot({**FRESH, **remade}, self.tools('mdadm', 'mdadm', 'mkfs', 'cp'))     # udev has put together what is left: it is stopped first

    def all_members(self):
        return [f'md says {storage.read("/proc/mdstat")}'] if '(F)' in storage.read('/proc/mdstat') else []

    def stop_start(self):
        """a stop and start sets up blank disks beside remains of nodeadm in /etc"""
        self.halt('lost')
        self.node.kept = {}
        blank([d.name for d in disks()])
        write('/.aws/mdadm.conf', 'ARRAY /dev/md/kubernetes metadata=1.2 name=old:kubernetes UUID=3aaa0122:29827cfa:5331ad66:ca767371\n')
        remains = [('mnt-k8s\\x2ddisks-0.mount', OLD_DISK, MOUNT_PATH + '/0', 'defaults,noatime'),
                   ('var-lib-containerd.mount', MOUNT_PATH + '/0/containerd', CONTAINERD, 'bind')]
        if self.strategy == 'Mount':
            remains = [('mnt-k8s\\x2ddisks-1.mount', OLD_DISK, MOUNT_PATH + '/1', 'defaults,noatime')]
        for unit, what, where, options in remains:
            kind = 'none' if options == 'bind' else 'xfs'
            write(UNITS + unit, f'[Unit]\nDescription=Mount EC2 Instance Store NVMe disk RAID\n[Mount]\nWhat={what}\nWhere={where}\nType={kind}\nOptions={options}\n'
                        '[Install]\nWantedBy=multi-user.target\n')
            os.makedirs(UNITS + 'multi-user.target.wants', exist_ok=True)
            os.symlink('../' + unit, f'{UNITS}multi-user.target.wants/{unit}')
        sh('systemctl', 'daemon-reload')
        try:
            found = self.boot(FRESH, self.tools('mdadm', 'mkfs', 'cp'))
            sh('systemctl', 'daemon-reload')
            settle()
            return found or self.judge({})
        finally:
            for unit, *_ in remains:
                os.unlink(UNITS + unit)
                os.unlink(f'{UNITS}multi-user.target.wants/{unit}')
            os.unlink('/.aws/mdadm.conf')
            sh('systemctl', 'daemon-reload')

    def no_file_system(self):
        """nodestrap goes on after a run that ended before it made a file system"""
        self.new()
        if self.node.raid():
            create(self.strategy, self.members())
        return self.boot({**FRESH, 'create-raid': 'keep'}, self.tools('mkfs', 'cp'))

    def unfinished_file_system(self):
        """nodestrap goes on after a run that ended while it made a file system"""
        self.new()
        devices = self.members()
        if self.node.raid():
            create(self.strategy, devices)
            devices = ['/dev/md/kubernetes']
        for device in devices:
            mkfs(self.fs, device, 'nodestrap-mk')
        settle()
        return self.boot({**FRESH, 'create-raid': 'keep', 'make-filesystem': 'remake'}, self.tools('mkfs', 'cp'))

    def interrupted_copy(self):
        """nodestrap goes on after a run that ended while it copied"""
        self.new()
        device = self.finished_file_system()
        os.makedirs(HERE_MOUNT, exist_ok=True)
        sh('mount', device, HERE_MOUNT)
        sh('cp', '-a', CONTAINERD + '/blobs', HERE_MOUNT + '/half')
        os.makedirs(HERE_MOUNT + '/.nodestrap-incoming')
        os.rename(HERE_MOUNT + '/half', HERE_MOUNT + '/.nodestrap-incoming/containerd')
        write(HERE_MOUNT + '/.nodestrap-incoming/containerd/half', 'not all of it')
        sh('umount', HERE_MOUNT)
        found = self.boot(AGAIN, ['cp'])
        return found + [p for p in (CONTAINERD + '/half', CONTAINERD + '/containerd') if os.path.exists(p)]

    def interrupted_delete(self):
        """nodestrap goes on after a run that ended while it deleted the originals"""
        self.new()
        names, device = self.bind_names(), self.finished_file_system()
        os.makedirs(HERE_MOUNT, exist_ok=True)
        sh('mount', device, HERE_MOUNT)
        for path in BINDS:
            sh('cp', '-a', path, f'{HERE_MOUNT}/{names[path]}')
            self.node.kept[path] = storage.tree(path)
        sh('umount', HERE_MOUNT)
        half = sorted(os.listdir(CONTAINERD))[0]
        sh('rm', '-r', f'{CONTAINERD}/{half}', f'{KUBELET}/pki')
        return self.boot(AGAIN, ['cp'])

    def nodeadms_mounts(self):
        """nodestrap keeps what nodeadm made and its units have mounted"""
        self.as_nodeadm()
        self.user_data('nodeadm')
        self.node.keep()
        self.node.hidden = {path: storage.tree(UNDER + path) for path in BINDS} if self.strategy != 'Mount' else {}
        return self.boot({**DONE, 'move-files': 'keep'}, [], 'xfs')

    def nodeadms_disks(self):
        """nodestrap keeps what nodeadm made if its units are gone"""
        self.as_nodeadm()
        self.reboot('nodeadm')
        found = self.boot(AGAIN, self.tools('cp'), 'xfs')
        kept = f'holds xfs already: nodestrap keeps it, since you may need its data, and does not make {self.fs}' in self.node.last.err
        return found if kept else [*found, f'nobody says that xfs is kept: {self.node.last.err}']

    def foreign_array(self):
        """nodestrap refuses disks with a foreign array"""
        self.node.off()
        self.node.kept = {}
        blank([d.name for d in disks()])
        level = '0' if self.strategy == 'RAID10' else '10' if self.strategy == 'RAID0' and self.n > 3 else '1'
        more = ['missing'] * (self.n == 1)
        sh(MDADM, '--create', '/dev/md/theirs', '--run', '--homehost=any', '--name=theirs', f'--level={level}', f'--raid-devices={self.n + len(more)}',
           *([] if level == '0' else ['--bitmap=none', '--assume-clean']), *self.members(), *more)
        settle()
        sh(MDADM, '--wait-clean', '/dev/md/theirs', check=False)
        before = {d.name: counters(d.name) for d in disks()}
        self.node.boot()
        return self.node.complaints_refused('EDISKUSED', ['theirs', self.node.stores()[0].serial], before)

    # -- of situations --

    def finished_file_system(self):
        device = self.members()[0]
        if self.node.raid():
            create(self.strategy, self.members())
            device = '/dev/md/kubernetes'
        mkfs(self.fs, device, 'kubernetes')
        settle()
        return device

    def as_nodeadm(self):
        """As its script leaves new disks, by the commands that it runs (awslabs/amazon-eks-ami:templates/shared/runtime/bin/
        setup-local-disks): no host name and the default chunk for the array, one disk or many; the originals stay where they are."""
        self.new()
        names, devices = self.bind_names(), self.members()
        if self.strategy != 'Mount':
            sh(MDADM, '--create', '--force', '--verbose', '/dev/md/kubernetes', f'--level={self.strategy[4:]}', '--name=kubernetes',
               *['--assume-clean'] * (self.strategy == 'RAID10'), f'--raid-devices={self.n}', *devices)
            settle()
            self.node.array_of_one, self.node.array_is_theirs = self.n == 1, True
            devices = ['/dev/md/kubernetes']
        for i, device in enumerate(devices):
            sh('/usr/sbin/mkfs.xfs', '-q', '-K', '-l', 'su=8b', device)
            place = f'{MOUNT_PATH}/{i + (self.strategy == "Mount")}'
            os.makedirs(place)
            sh('mount', '-o', 'noatime', device, place)
        for path, name in names.items():
            sh('/usr/bin/cp', '-a', path + '/', f'{MOUNT_PATH}/0/{name}/')
            sh('mount', '--bind', f'{MOUNT_PATH}/0/{name}', path)

    def bind_names(self):
        """{path: name of its directory on the disks}, as the plan has it."""
        names = {}
        for a in self.node.plan()['actions']:
            if a['type'] == 'bind':
                names[a['target']] = os.path.basename(a['source'])
        return names


HERE_MOUNT = storage.HERE + '/earlier'
SITUATIONS = (Matrix.first_boot, Matrix.second_run, Matrix.rebooted, Matrix.named_md127, Matrix.named_underscore,
              Matrix.not_assembled, Matrix.other_hostname, Matrix.member_missing, Matrix.promised_missing, Matrix.stop_start, Matrix.member_blank, Matrix.no_file_system,
              Matrix.unfinished_file_system, Matrix.interrupted_copy, Matrix.interrupted_delete,
              Matrix.nodeadms_mounts, Matrix.nodeadms_disks, Matrix.foreign_array)
MOVES_ONLY = (Matrix.interrupted_copy, Matrix.interrupted_delete)
ARRAYS_ONLY = (Matrix.named_md127, Matrix.named_underscore, Matrix.not_assembled)
ANY_FS = (Matrix.named_md127, Matrix.named_underscore, Matrix.other_hostname, Matrix.foreign_array)
ONE_FS = {Matrix.nodeadms_mounts: 'xfs', Matrix.nodeadms_disks: 'ext4'}
LEAVES_RUINS = (Matrix.foreign_array,)


def create(strategy, members):
    sh(MDADM, '--create', '/dev/md/kubernetes', '--run', '--homehost=any', '--name=kubernetes', f'--level={strategy[4:]}', '--chunk=256',
       *(['--bitmap=internal', '--assume-clean'] if strategy == 'RAID10' else []), f'--raid-devices={len(members)}', *members)
    settle()


def mkfs(fs, device, label):
    """Past the wrappers, which count only what nodestrap starts."""
    if fs == 'xfs':
        sh('/usr/sbin/mkfs.xfs', '-q', '-f', '-K', '-L', label, device)
    else:
        sh('/usr/sbin/mkfs.ext4', '-q', '-F', '-E', 'nodiscard,lazy_itable_init=1', '-L', label, device)


def foreign_elsewhere():
    """An array on foreign disks: it runs all the time, and nodestrap must not touch it."""
    loops = []
    for i in (1, 2):
        path = f'{storage.HERE}/loop{i}'
        with open(path, 'wb') as f:
            f.truncate(64 * storage.MIB)
        loops.append(sh('losetup', '--find', '--show', path).strip())
    sh(MDADM, '--create', '/dev/md100', '--run', '--homehost=any', '--name=data', '--level=0', '--raid-devices=2', *loops)
    mkfs('ext4', '/dev/md100', 'kubernetes')
    settle()
    global elsewhere
    name = 'md100'
    elsewhere = name, storage.read(f'/sys/block/{name}/md/array_state'), counters(name), loops


def foreign_complaints():
    name, state, seen, loops = elsewhere
    if (storage.read(f'/sys/block/{name}/md/array_state', 'gone'), counters(name)) != (state, seen):
        return [f'{name} is {storage.read(f"/sys/block/{name}/md/array_state", "gone")}, {counters(name)}; was {state}, {seen}']
    return []


def main(strategy, n=None, fs=None, extent=None):
    matrix = Matrix(strategy)
    if extent == 'short':
        matrix.short(int(n), fs)
    elif n:
        matrix.run([(int(n), fs)])
    else:
        matrix.run([(n, fs) for n in (1, 3, 4, 8) for fs in ('xfs', 'ext4')])


if __name__ == '__main__':
    main(*sys.argv[1:])
