# SPDX-License-Identifier: Apache-2.0
"""Real boots: the nodestrap units are enabled. Run as a program it is ExecStartPre= of both: `natural.py bake` lays down what
an image brings, once; `natural.py before` notes what the run phase finds. As a module: what boots.py and cuts.py judge by.
"""
import json
import os
import pickle
import sys

import storage
from storage import BINDS, CONTAINERD, HERE, KUBELET, PODS, bake, read, sh, write

SANDBOX = 'localhost/kubernetes/pause:latest'
KEPT, BEFORE = HERE + '/kept', HERE + '/before'
FRESH = {'create-raid': 'make', 'make-filesystem': 'make', 'mount': 'make', 'move-files': 'make', 'bind': 'make'}
AGAIN = {'create-raid': 'keep', 'make-filesystem': 'keep', 'mount': 'make', 'move-files': 'make', 'bind': 'make'}


def save(path, what):
    with open(path, 'wb') as f:
        pickle.dump(what, f)
        f.flush()
        os.fsync(f.fileno())


def load(path, default=None):
    try:
        with open(path, 'rb') as f:
            return pickle.load(f)
    except FileNotFoundError:
        return default


def status():
    return json.loads(read('/run/nodestrap/status.json', '{}'))


def bake_image():
    if not os.path.exists(CONTAINERD + '/blobs') and not os.path.exists(HERE + '/baked'):
        for path in BINDS:
            os.makedirs(path, exist_ok=True)
        bake(CONTAINERD, 'baked')
        bake(PODS, 'logs', nasty=False)
        write(KUBELET + '/pki/current.pem', 'key')
        os.makedirs('/etc/eks', exist_ok=True)
        sh('python3', HERE + '/archive.py', '/etc/eks/pause.tar', SANDBOX)
        write(HERE + '/baked', '')


def look():
    """Right before the run phase. plan does not wait for udev, as init does: if udev has not started an array yet, plan once more after it has."""
    words = ['nodestrap', 'plan', '--output', 'json', '-c', 'imds://user-data', '-c', 'file:///etc/eks/nodeadm.d/', '--config-cache', storage.CACHE]
    out = sh(*words, check=False)
    if ' of inactive md' in out:
        sh('udevadm', 'settle')
        out = sh(*words, check=False)
    try:
        plan = json.loads(out[out.index('{'):])
    except ValueError:
        plan = {'failed': '?', 'actions': [], 'text': out}
    save(BEFORE, {'boot': read('/proc/sys/kernel/random/boot_id'), 'plan': plan, 'want': {path: storage.tree(path) for path in BINDS},
                  'tops': {path: storage.entry(path, '', {}) for path in BINDS if os.path.isdir(path)},
                  'etc': storage.Node.look_at_etc(), 'mounts': storage.mounts()})


def start(strategy, n, fs):
    """The node after its boot, and where to report."""
    node, report = storage.Node(imds=False), storage.Report()
    node.configure(strategy, n, fs)
    before = load(BEFORE, {})
    if before.get('boot') != read('/proc/sys/kernel/random/boot_id'):
        return node, report             # of this boot there is nothing to judge
    node.kept = load(KEPT, {})
    node.want = {path: {**node.kept.get(path, {}), **before['want'][path]} for path in BINDS}
    node.etc, node.before = before['etc'], before['mounts']
    code = int(sh('systemctl', 'show', '-P', 'ExecMainStatus', 'nodestrap-run.service'))
    journal = sh('journalctl', '-b', '-o', 'cat', '--no-pager', '-u', 'nodestrap-run.service', '-u', 'nodestrap-config.service')
    node.last = storage.Result(code, journal, before['plan'], [], status())
    return node, report


if __name__ == '__main__':
    {'bake': bake_image, 'before': look}[sys.argv[1]]()
