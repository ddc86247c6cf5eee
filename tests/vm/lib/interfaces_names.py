# SPDX-License-Identifier: Apache-2.0
"""usage: interfaces_names.py BOOTS [SEED]

Boot after boot with other names for the same interfaces, and metadata that lags in another way each time. The last two interfaces came after
the marker of the first boot.
"""
import os
import random
import sys

import storage
from interfaces import LINKS, State, call, complaints_boot, complaints_kept, configured, decided, describe, enis, lag, names, plug, reveal
from storage import HERE, Report, read, sh, write

OTHERS = 2
LAGS = ('', '404 */network-card 2 mac', '=0 */device-number 3x', '404 * 4 list', '503 /latest/meta-data/* 2', 'down * 12', '404 */local-ipv4s 3 mac',
        '503 api/token 2x')


def rename(all_of, choice):
    """Kernel names, or other names in any order."""
    for file in os.listdir(LINKS):
        if file.startswith('10-') and file.endswith('.link'):
            os.unlink(LINKS + file)
    if choice.random() < 0.25:
        return 'of the kernel'
    words = [f'lan{n}' for n in range(len(all_of))]
    choice.shuffle(words)
    for eni, word in zip(all_of, words):
        call(eni, word)
    return ' '.join(words)


def main(boots, seed='1'):
    report, all_of, boot = Report(), enis(), int(os.environ['VMTEST_BOOT'])
    networkd, cni = all_of[:-OTHERS], all_of[-OTHERS:]
    there = networkd if boot == 1 else all_of
    told = read(HERE + '/told', 'first boot')
    report.line(f'{told}: every interface has its routes and rules', State().complaints(networkd, [] if boot == 1 else cni), describe)
    report.line(f'{told}: boot-hook ends before the configuration phase, and no unit fails', complaints_boot(there), describe)
    report.line(f'{told}: nodestrap keeps the decisions', complaints_kept(networkd, [] if boot == 1 else cni), describe)
    if boot == 1:
        for eni in cni:
            reveal(eni)
            decided(plug(eni))
        configured(networkd)
        report.line('(two interfaces come after the marker)', State().complaints(networkd, cni), describe)
    if boot == int(boots):
        report.finish(volumes_used=True)
    choice = random.Random(f'{seed} {boot}')
    was = names()
    rules = choice.choice(LAGS)
    lag(rules)
    write(HERE + '/told', f'boot {boot + 1}, names {rename(all_of, choice)} (were {" ".join(was[e.mac] for e in all_of)}), lag "{rules}"')
    sh('sync')
    sh('systemctl', '--no-block', 'reboot')


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (storage.Problem, OSError, KeyError, ValueError) as e:
        broken = Report()
        broken.line(f'boot {os.environ["VMTEST_BOOT"]} runs to its end', [f'{type(e).__name__}: {e}'], describe)
        broken.finish(volumes_used=True)
