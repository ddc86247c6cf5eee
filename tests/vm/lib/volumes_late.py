# SPDX-License-Identifier: Apache-2.0
"""usage: volumes_late.py comes | never

A volume that comes while the node waits for it: EC2 takes a name for the request, not for the drive. The test asks the host to attach
it after nodestrap has printed that it waits.
"""
import sys
import time

import storage
from storage import CONTAINERD, KUBELET, Report, disks, sh
from volumes import SDB, SDC, Entry, VolumeNode, attach, finish, world


def config_phase(node):
    done = node.nodestrap('init', '--skip', 'run', '--config-cache', storage.CACHE)
    if done.returncode:
        raise storage.Problem(f'config phase: exit {done.returncode}: {done.stderr[-1500:]}')
    node.note()


def waits_for(process, names):
    """Reads up to the line that says what is waited for -> what was read, complaints."""
    said = ''
    for line in process.stderr:
        said += line
        if 'Waiting for EBS volumes' in line:
            return said, [f'no {n} in: {line}' for n in names if n not in line]
    return said, ['it never said that it waits: ' + said]


def comes(node, report):
    node.configure(Entry('/dev/sdb', [CONTAINERD, KUBELET], 'xfs', SDB), Entry('/dev/sdc', '/srv/data', 'ext4', SDC))
    node.clear('/srv/data')
    config_phase(node)
    p = node.start_run_phase()
    said, wrong = waits_for(p, ['/dev/sdb'])
    report.line('the message names the volume that is missing', wrong)
    report.line('the message does not name the volume that is there', [said] if '/dev/sdc' in said else [])
    report.line('nodestrap writes nothing while it waits', node.complaints_untouched())
    report.line('kubelet and containerd are down while nodestrap waits', [u for u in storage.UNITS if sh('systemctl', 'is-active', u, check=False).strip() == 'active'])
    attach(1)
    node.ended(p, said)
    report.line('the node comes up when the volume comes', node.complaints_up(made=2), node.describe)
    report.line('a second run changes nothing', node.complaints_again(), node.describe)

    # it goes, cleanly, and comes back under another name
    node.off()
    world('detach 1')
    while any(d.serial == SDB for d in disks(storage.EBS)):
        time.sleep(0.1)
    config_phase(node)
    p = node.start_run_phase()
    said, wrong = waits_for(p, ['/dev/sdb'])
    attach(1)
    node.ended(p, said)
    report.line('a volume that is detached and attached again has its data', wrong + node.complaints_up(made=0), node.describe)


def never(node, report):
    node.configure(Entry('/dev/sdb', CONTAINERD, 'xfs', SDB), Entry('/dev/sdc', KUBELET, 'xfs', SDC))
    node.clear()
    config_phase(node)
    p = node.start_run_phase()
    said, wrong = waits_for(p, ['/dev/sdb'])
    node.ended(p, said)
    report.line('the error names a volume that never comes, and those that are there', wrong + node.complaints_refused('EVOLUME', ['/dev/sdb', SDC]), node.describe)
    attach(1)
    node.run_phase()
    report.line('the next run uses a volume that comes after the failure', node.complaints_up(made=2), node.describe)


def main(what):
    node, report = VolumeNode(), Report()
    {'comes': comes, 'never': never}[what](node, report)
    finish(report)


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (storage.Problem, OSError, KeyError) as e:
        Report().line('the test runs to its end', [f'{type(e).__name__}: {e}'])
        finish(Report())
