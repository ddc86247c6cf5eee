# SPDX-License-Identifier: Apache-2.0
"""usage: interfaces_units.py

The unit of an interface: it finds the device whatever its name, is there again when a name goes and comes back at once, and takes nothing
away when it is stopped or started again by hand.
"""
import os

import interfaces
import storage
from interfaces import NETWORK, UNIT, State, configured, describe, enis, names, props, wait
from storage import Report, sh

TIMES = 6


def rename(name, to):
    sh('ip', 'link', 'set', name, 'down')
    sh('ip', 'link', 'set', name, 'name', to)


def up(name):
    sh('ip', 'link', 'set', name, 'up')


def unit_of(name):
    return UNIT.format(sh('systemd-escape', name).strip())


def active(name):
    unit = unit_of(name)
    wait(f'{unit} is not active', lambda: props(unit, 'ActiveState')['ActiveState'] == 'active' and unit not in sh('systemctl', 'list-jobs', '--full'))


def by_hand(report, launched):
    for eni in launched[:2]:
        name = names()[eni.mac]
        path, unit = f'{NETWORK}70-eks-{name}.network', unit_of(name)
        before = os.stat(path).st_ino
        sh('systemctl', 'stop', unit)
        report.line(f'{name}: its unit takes nothing away if it is stopped by hand', State().complaints(launched), describe)
        report.line(f'{name}: its unit stays stopped', [p for p in [props(unit, 'ActiveState')] if p != {'ActiveState': 'inactive'}])
        plan = sh('nodestrap', 'udev-net-manager', '--action', 'add', '--interface', name, '--dry-run', check=False)
        sh('systemctl', 'start', unit)
        sh('systemctl', 'restart', unit)
        report.line(f'{name}: its unit takes nothing away if it is started and restarted', State().complaints(launched), describe)
        report.line(f'{name}: its .network file is not replaced', [] if os.stat(path).st_ino == before else ['another', plan])


def odd_name(report, launched):
    old, new = names()[launched[2].mac], 'efa-0'
    rename(old, new)
    up(new)
    storage.settle()
    active(new)
    configured(launched)
    report.line(f'an interface that is renamed to {new} has its unit', State().complaints(launched), describe)
    rename(new, old)
    up(old)
    storage.settle()
    active(old)
    configured(launched)
    report.line('an interface that has its old name again has its unit', State().complaints(launched), describe)


def there_and_back(report, launched):
    name = names()[launched[1].mac]
    for n in range(TIMES):
        rename(name, 'away')
        if n % 2:
            sh('udevadm', 'settle')
        rename('away', name)
        up(name)
        storage.settle()
        active(name)
        sh('systemctl', 'reset-failed', unit_of(name))
        configured(launched)
        report.line(f'rename {n + 1} of an interface and back at once: its unit is there', State().complaints(launched), describe)


def main():
    report, launched = Report(), enis()
    report.line('(every interface has its routes and rules)', State().complaints(launched), describe)
    by_hand(report, launched)
    odd_name(report, launched)
    there_and_back(report, launched)
    report.finish(volumes_used=True)


if __name__ == '__main__':
    try:
        main()
    except (storage.Problem, OSError, KeyError, ValueError) as e:
        broken = Report()
        broken.line('the test runs to its end', [f'{type(e).__name__}: {e}'], describe)
        broken.finish(volumes_used=True)
