# SPDX-License-Identifier: Apache-2.0
"""usage: any_cuts.py [cuts=2] [seed=1] [calls=0]

The power goes at a random moment of a boot from power-on, with the nodestrap units enabled: so many seconds after power-on, or at the nth
call of a phase that changes something (tests/helpers/fault-tool.c). The boot after it must end with a node, and with all data of the
disks. Then the test prepares the next cut, on the same disks or on blank ones. The test fails if fewer than `calls` of the cuts were at
a call.

  any_cuts.py run PHASE COMMAND…   what the units of the phases execute: COMMAND, or into the cut
  any_cuts.py clock                a unit beside them: the cut at a time
"""
import json
import os
import random
import sys
import time

import boots
import natural
import storage
from storage import HERE, Problem, read, sh, write

NEXT, STATE = HERE + '/next-cut', HERE + '/cuts-state'
CALLS = {True: {'config': 100, 'devices': 15, 'run': 380}, False: {'config': 100, 'devices': 15, 'run': 110}}      # with blank disks and without: about as many calls as a phase makes
TEXT = '<1>VMTEST CUT-HERE\n'   # by the kernel, which prints at once, whatever holds the terminal


def ours():
    """What is to happen in this boot, if anything."""
    plan = json.loads(read(NEXT, '{}'))
    boot = next(w.split('=')[1] for w in read('/proc/cmdline').split() if w.startswith('vmtest.boot='))
    return plan if plan.get('boot') == int(boot) else {}


def run(phase, *command):
    plan = ours()
    if plan.get('phase') == phase:
        command = (HERE + '/fault-tool', '-f', 'cut', '-n', str(plan['call']), *command)
    os.execv(command[0], command)


def clock():
    plan = ours()
    if 'seconds' in plan:
        while float(read('/proc/uptime').split()[0]) < plan['seconds']:
            time.sleep(0.01)
        write('/dev/kmsg', TEXT)


def described(plan):
    return f'{plan["seconds"]:.2f} s after power-on' if 'seconds' in plan else f'at call {plan["call"]} of the {plan["phase"]} phase'


def choose(chance, boot, end, blank):
    if chance.random() < 0.4:
        return {'boot': boot, 'seconds': round(chance.uniform(end * 0.3, end), 2)}
    phase = chance.choices(list(CALLS[blank]), (25, 5, 70))[0]
    return {'boot': boot, 'phase': phase, 'call': chance.randint(1, CALLS[blank][phase])}


def ended():
    """Seconds of this boot until the run phase had ended."""
    return int(sh('systemctl', 'show', '-P', 'ExecMainExitTimestampMonotonic', 'nodestrap-run.service')) / 1e6


def main(*words):
    options = dict(w.split('=', 1) for w in words)
    number = int(os.environ['VMTEST_BOOT'])
    state = natural.load(STATE, {'done': 0, 'calls': 0, 'pending': None, 'missed': 0})
    chance = random.Random(f'{options.get("seed", "1")} {number}')
    plan = ours()
    if plan:                            # it was over before the moment came
        state['missed'] += 1
        state['pending'] = None
    node, report = natural.start('RAID0', len(storage.disks()), 'xfs')
    if state['pending'] and node.last:
        node.want = {path: {**state['want'].get(path, {}), **node.want[path]} for path in storage.BINDS}
    found = node.complaints_up({}, fs='xfs') if node.last else ['nothing was noted before the run phase']
    for unit in ('config', 'devices', 'run'):
        code = sh('systemctl', 'show', '-P', 'ExecMainStatus', f'nodestrap-{unit}.service').strip()
        found += [f'nodestrap-{unit} ended with {code}'] * (code != '0')
    if state['pending']:
        state['done'] += 1
        state['calls'] += ' call ' in state['pending']
    name = f'after a power cut {state["pending"]}, the next boot is a node' if state['pending'] else f'boot {number} is a node without a power cut'
    report.line(f'seed {options.get("seed", "1")}: {name}', found, node.describe)
    if found or state['done'] >= int(options.get('cuts', '2')) or number >= 19:
        if not found:
            missed = [f'{state["missed"]} boots were over before their moment']
            report.line('at least one power cut happened', [] if state['done'] else missed)
            least = int(options.get('calls', '0'))
            report.line(f'at least {least} power cuts were at a call of a phase', [] if state['calls'] >= least else missed)
        print(f'# figure: {state["done"]} power cuts\n# {state["missed"]} boots were over before their moment')
        report.finish()
    boots.user_data(node, f'boot{number}')
    boots.keep(node)
    blank = chance.random() < 0.6
    plan = choose(chance, number + 1, ended(), blank)
    state['pending'] = f'{described(plan)}, with {"blank" if blank else "the same"} disks'
    state['want'] = {}
    if blank:                           # an image with the same content once more
        natural.save(natural.KEPT, {})
        storage.bake(storage.UNDER + storage.CONTAINERD, 'baked')
        storage.bake(storage.UNDER + storage.PODS, 'logs', nasty=False)
        state['want'] = {path: storage.tree(storage.UNDER + path) for path in storage.BINDS}
        write('/dev/ttyS0', 'VMTEST blank-drives\n')
    natural.save(STATE, state)
    write(NEXT, json.dumps(plan))
    os.sync()
    sh('systemctl', '--no-block', 'reboot')


if __name__ == '__main__':
    try:
        {'run': run, 'clock': clock}.get(sys.argv[1] if len(sys.argv) > 1 else '', lambda *words: main(*sys.argv[1:]))(*sys.argv[2:])
    except (Problem, OSError, KeyError) as e:
        storage.Report().line(f'boot {os.environ.get("VMTEST_BOOT")} runs to its end', [f'{type(e).__name__}: {e}'])
        storage.Report().finish()
