# SPDX-License-Identifier: Apache-2.0
"""usage: interfaces_bad.py

A boot at which the metadata service is down for 30 s; then interfaces that go while nodestrap asks for them, or that the service does
not list yet, several events for one at the same time, and rubbish in saved files.
"""
import os
import subprocess
import threading
import time

import interfaces
import storage
from interfaces import MACS, MARKER, NETWORK, SNAPSHOT, UNIT, State, complaints_boot, configured, decided, decision_path, decisions, describe, enis, names, \
    plug, props, requests, reveal, unplug, wait
from storage import Report, read, sh, write

LAUNCHED = 3
DOWN = 30                       # seconds (boot.sh)


def manager(action, name):
    return subprocess.Popen(['nodestrap', 'udev-net-manager', '--action', action, '--interface', name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, errors='replace')


def run(action, name):
    """-> exit status, what it said"""
    process = manager(action, name)
    said = process.communicate(timeout=interfaces.PATIENCE)[1]
    return process.returncode, said


def said_of(unit, *words):
    journal = sh('journalctl', '-b', '-o', 'cat', '--no-pager', '-u', unit)
    return [f'no "{word}" in: {journal[-1500:]}' for word in words if word not in journal]


def metadata_late(report, launched):
    began = interfaces.booted() + int(props('mock-imds.service', 'ExecMainStartTimestampMonotonic')['ExecMainStartTimestampMonotonic']) / 1e6
    first = min((when for when, _ in requests(interfaces.booted())), default=0)
    report.line('(the metadata service is down at first)', [] if first > began + DOWN - 1 else [began, first])
    report.line(f'{DOWN} s without metadata: every interface has its routes and rules', State().complaints(launched), describe)
    report.line('boot-hook ends before the configuration phase, and systemd drops no job', complaints_boot(launched), describe)


def asked_about(eni):
    """Waits until nodestrap has asked twice for an interface that the metadata service does not list yet."""
    unit, before = UNIT.format(f'lan{eni.index}'), len(requests())
    wait(f'{unit} does not run', lambda: props(unit, 'ActiveState')['ActiveState'] == 'activating')
    wait('nobody asks for the list', lambda: sum(path.rstrip('/') == MACS.removeprefix(interfaces.IMDS).rstrip('/') for _, path in requests()[before:]) > 1)


def goes_meanwhile(report, launched, new):
    os.unlink(MARKER)           # as at a boot
    before, name = decisions(), plug(new)
    asked_about(new)
    unplug(new)
    unit = UNIT.format(name)
    # Only if the interface goes in the second before a restart, the restart waits 90 s for the device, and systemd leaves the unit at auto-restart.
    dropped = f"Job {unit}/start failed with result 'dependency'"
    wait('its unit is still running', lambda: props(unit, 'ActiveState')['ActiveState'] in ('inactive', 'failed') or dropped in sh('journalctl', '-b', '-o', 'cat', '-u', unit))
    sh('systemctl', 'stop', unit)
    report.line('an interface that goes while nodestrap asks for its metadata leaves nothing', State().complaints(launched), describe)
    report.line('nodestrap decides nothing for an interface that goes meanwhile', [decisions()] if decisions() != before else [])
    report.line('the journal of its unit names an interface that goes meanwhile', said_of(unit, name))
    code, text = run('add', name)
    wrong = code != 32 or name not in text or 'EINTERFACE' not in text
    report.line('udev-net-manager add exits with 32 EINTERFACE if the interface is gone', [code, text] * wrong)
    report.line('udev-net-manager add leaves nothing of an interface that is gone', State().complaints(launched) + [decisions()] * (decisions() != before), describe)
    code, text = run('remove', name)
    report.line('udev-net-manager remove succeeds for an interface that is gone', [] if code == 0 else [code, text])


def known_late(report, launched, new):
    name = plug(new)
    asked_about(new)
    report.line('nodestrap decides nothing while the metadata service does not list the interface', [decisions()] if decision_path(name) in decisions() else [])
    reveal(new)
    decided(name)
    configured([*launched, new])
    report.line('networkd configures an interface once the metadata service lists it', State().complaints([*launched, new]), describe)


class Watch(threading.Thread):
    """Reads the file again and again: it must be whole, or missing."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.seen, self.ended = path, set(), False

    def run(self):
        while not self.ended:
            self.seen.add(read(self.path, 'none'))
            time.sleep(0.005)

    def end(self, whole):
        self.ended = True
        self.join()
        return [f'seen: {text}' for text in self.seen if text not in ('none', whole)]


def at_once(report, managed, eni):
    name = names()[eni.mac]
    path = f'{NETWORK}70-eks-{name}.network'
    whole, before = read(path), len(requests())
    os.unlink(SNAPSHOT)
    os.unlink(path)
    watch = Watch(path)
    watch.start()
    several = [manager('add', name) for _ in range(4)]
    sh('udevadm', 'trigger', '--action=add', f'/sys/class/net/{name}')
    ended = [(p.communicate(timeout=interfaces.PATIENCE)[1], p.returncode) for p in several]
    report.line('four events of one interface succeed beside a fifth', [e for e in ended if e[1]])
    report.line('the file of the interface is never half-written', watch.end(whole))
    asked = [path for _, path in requests()[before:]]
    report.line('several events of one interface share their metadata requests', [f'{len(asked)}: {asked}'] if len(asked) > 3 * len(managed) + 5 + 4 else [])       # a token each
    storage.settle()
    configured(managed)
    report.line('the interface and its file are the same after several events', State().complaints(managed) + [f'now {read(path)}'] * (read(path) != whole), describe)
    several = [manager(action, name) for action in ('add', 'remove', 'add', 'remove')]
    for p in several:
        p.communicate(timeout=interfaces.PATIENCE)
    report.line('add and remove of one interface at the same time succeed', [p.returncode for p in several if p.returncode])
    code, text = run('add', name)
    configured(managed)
    report.line('add succeeds after those events and configures the interface', State().complaints(managed) + ([code, text] if code else []), describe)


def rubbish(report, managed, eni):
    name = names()[eni.mac]
    mine = [path for path, text in decisions().items() if eni.mac in path + text or path == decision_path(name)]
    for path in mine:
        write(path, '{"mac": "\0\xff')
    write(SNAPSHOT, '{"enis": [[[')
    code, text = run('add', name)
    report.line('add succeeds if decisions and the snapshot are rubbish', [code, text] if code else [])
    report.line('the message names each decision that is rubbish', [f'no {path} in: {text}' for path in mine if path not in text])
    configured(managed)
    report.line('an interface with a rubbish decision has its routes and rules again', State().complaints(managed), describe)
    report.line('add writes a new decision in place of rubbish', [decisions()] if 'io.systemd.Network' not in read(decision_path(name), '') else [])


def main():
    report, all_of = Report(), enis()
    launched, new = all_of[:LAUNCHED], all_of[LAUNCHED]
    metadata_late(report, launched)
    goes_meanwhile(report, launched, new)
    known_late(report, launched, new)
    at_once(report, all_of[:LAUNCHED + 1], launched[1])
    rubbish(report, all_of[:LAUNCHED + 1], launched[2])
    report.finish(volumes_used=True)


if __name__ == '__main__':
    try:
        main()
    except (storage.Problem, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as e:
        broken = Report()
        broken.line('the test runs to its end', [f'{type(e).__name__}: {e}'], describe)
        broken.finish(volumes_used=True)
