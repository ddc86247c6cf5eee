# SPDX-License-Identifier: Apache-2.0
"""nodestrap finds a volume, and no other, by every name of a configuration; with the udev rules of AWS and without any."""
import glob
import os

import storage
from storage import CONTAINERD, Report, disks, sh
from volumes import SDB, SDC, SDD, SDE, Entry, VolumeNode, by_id, finish, volume


def names(serial, called):
    """Names of the volume where udev makes no links of AWS."""
    node = volume(serial).name
    bare = called.removeprefix('/dev/')
    other = bare.replace('xvd', 'sd') if bare.startswith('xvd') else bare.replace('sd', 'xvd')
    return [serial.replace('vol', 'vol-'), serial, f'/dev/{bare}', f'/dev/{other}', bare, f'/dev/{node}', by_id(serial)]


def found(node, name, serial):
    """The plan names the disk: enough for most names, and a second each."""
    node.configure(Entry(name, CONTAINERD, 'xfs', serial))
    seen = node.plan()
    if 'failed' in seen:
        return [seen['text'][-800:]]
    disk = volume(serial)
    made = [a for a in seen['actions'] if a['type'] == 'make-filesystem']
    return [f'not {disk.serial}: {a}' for a in made if disk.serial not in str(a)] + ['no file system is planned'] * (len(made) != 1)


def used(report, node, name, serial):
    node.configure(Entry(name, CONTAINERD, 'xfs', serial))
    node.clear()
    node.on()           # other kernel names than before
    node.boot()
    report.line(f'nodestrap uses the volume {name}', node.complaints_up(made=1), node.describe)


def refused(report, node, what, entry, says):
    node.configure(entry)
    node.boot()
    report.line(what, node.complaints_refused(('EDISKS', 'EDISKUSED', 'EVOLUME'), says), node.describe)


RULES = '/usr/lib/udev/rules.d/70-ec2-nvme-devices.rules'


def rules(there):
    os.rename(*(RULES + '.away', RULES) if there else (RULES, RULES + '.away'))
    sh('udevadm', 'control', '--reload')
    sh('udevadm', 'trigger', '--settle', '--subsystem-match=block')
    if os.path.exists('/dev/sdb') != there:
        raise storage.Problem(f'links are {glob.glob("/dev/sd*") + glob.glob("/dev/xvd*")}')


def main():
    node, report = VolumeNode(), Report()
    rules(False)
    for serial, called in ((SDB, '/dev/sdb'), (SDC, 'xvdca')):
        for name in names(serial, called):
            report.line(f'the name {name} leads to {serial}', found(node, name, serial), node.describe)
    used(report, node, '/dev/xvdb', SDB)
    node.clear()
    refused(report, node, 'nodestrap refuses a name that two volumes have', Entry('/dev/sdd', CONTAINERD, 'xfs', SDD), ['/dev/sdd matches two disks', SDD, SDE])
    store = disks()[0]
    refused(report, node, 'nodestrap refuses an instance store as a volume', Entry('/dev/' + store.name, CONTAINERD, 'xfs', SDB), [store.serial, 'instance store'])

    rules(True)
    for name in ('/dev/sdb', '/dev/xvdb', by_id(SDB) + '-ns-1', by_id(SDB) + '_1'):
        report.line(f'with the udev rules of AWS, the name {name} leads to {SDB}', found(node, name, SDB), node.describe)
    used(report, node, '/dev/sdb', SDB)
    finish(report)


if __name__ == '__main__':
    try:
        main()
    except (storage.Problem, OSError, KeyError) as e:
        storage.Report().line('the test runs to its end', [f'{type(e).__name__}: {e}'])
        finish(storage.Report())
