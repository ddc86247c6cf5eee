#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the files of nodeadm on generated nodes (tests/peer-files) with those of this program, byte for byte. Prints TAP.

usage: peer_files.py --nodestrap PATH --manual PAGE [--only 'PATTERN']

The oracle makes the machine of each node below a directory. tests/mock/aws.py is the metadata service and EC2. The program runs
`init --skip run --root DIR`, once with the name nodeadm and once with the name nodestrap. If bytes differ on purpose, a function of
DIFFERENCES turns the file of nodeadm into the expected one. It counts as the row of that name in the table of tests/peer-files/README.md.
A function that no node needs is a failure, and so is another table in the manual.
"""
import argparse
import base64
import difflib
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
PEER = os.path.join(HERE, '../peer-files')
MAC = '0e:49:61:0f:c3:11'
IDENTITY = {'accountId': '123456789012', 'architecture': 'x86_64', 'availabilityZone': 'us-west-2f', 'imageId': 'ami-0mock',
            'instanceId': 'i-1234567890abcdef0', 'privateIp': '172.16.34.43', 'region': 'us-west-2', 'version': '2017-09-30'}
METADATA = {'meta-data/instance-id': 'i-1234567890abcdef0', 'meta-data/mac': MAC, 'meta-data/local-ipv4': '172.16.34.43',
            'meta-data/local-hostname': 'ip-172-16-34-43.us-west-2.compute.internal', 'meta-data/services/domain': 'amazonaws.com',
            'meta-data/placement/region': 'us-west-2', 'meta-data/placement/availability-zone': 'us-west-2f',
            f'meta-data/network/interfaces/macs/{MAC}/device-number': '0',
            f'meta-data/network/interfaces/macs/{MAC}/ipv6s': '2001:db8::1',
            f'meta-data/network/interfaces/macs/{MAC}/local-ipv4s': '172.16.34.43',
            f'meta-data/network/interfaces/macs/{MAC}/vpc-ipv4-cidr-blocks': '172.16.0.0/16'}
TOML, SETTINGS = 'etc/containerd/config.toml', 'etc/kubernetes/kubelet/config.json'
USER_SETTINGS = 'etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf'
ENVIRONMENT, KUBECONFIG = 'etc/eks/kubelet/environment', 'var/lib/kubelet/kubeconfig'
NAMES = ('nodeadm', 'nodestrap')


def put(root, path, data):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def user_data(node):
    return base64.b64decode(node['user_data_b64']) if 'user_data_b64' in node else node['user_data'].encode()


def make_services(directory, node):
    """Writes the files with which the mock answers."""
    shutil.rmtree(directory, ignore_errors=True)
    for path, text in METADATA.items():
        put(directory, 'latest/' + path, text)
    put(directory, 'latest/meta-data/instance-type', node['instance_type'])
    put(directory, 'latest/dynamic/instance-identity/document', json.dumps(IDENTITY | {'instanceType': node['instance_type']}))
    put(directory, 'latest/user-data', user_data(node))


def make_machine(root, node):
    """Makes a machine with 2 CPUs, if the node has no other number, on one NUMA node, and only the files that the program reads."""
    put(root, 'etc/eks/kubelet-version.txt', f'Kubernetes {node["kubelet"]}\n')
    put(root, 'etc/eks/containerd-version.txt', f'containerd github.com/containerd/containerd/v2 {node["containerd"]}\n')
    put(root, 'etc/eks/image-credential-provider/ecr-credential-provider', '')
    for cpu in range(node.get('cpus', 2)):
        put(root, f'sys/devices/system/node/node0/cpu{cpu}/online', '1\n')
        put(root, f'sys/devices/system/cpu/cpu{cpu}/online', '1\n')
    put(root, 'sys/devices/system/cpu/online', f'0-{node.get("cpus", 2) - 1}\n')
    put(root, 'proc/meminfo', f'MemTotal: {node.get("gib", 4) << 20} kB\n')
    if 'gib' in node:                   # memory in blocks of 128 MiB
        put(root, 'sys/devices/system/memory/block_size_bytes', '8000000\n')
        for block in range(node['gib'] * 8):
            put(root, f'sys/devices/system/memory/memory{block}/online', '1\n')
    if node.get('runtime') == 'nvidia':
        put(root, 'usr/bin/nvidia-container-runtime', '')
    if has_gpu(node):
        put(root, 'sys/bus/pci/devices/0000:31:00.0/uevent', 'PCI_CLASS=30200\nPCI_ID=10DE:2237\n')


def has_gpu(node):
    """True for a node with a GPU on its bus. nodeadm looks for a GPU from 1.35 on, so newer nodes were measured without one."""
    return node['instance_type'].startswith(('g5.', 'p5.')) and minor(node) < 35


def minor(node):
    return int(node['kubelet'].split('.')[1])


# ---- differences on purpose: each turns the text of nodeadm into what must be at path, or returns None ----

def max_pods_chosen(node, name, path, want):
    config = json.loads(node['files'].get(USER_SETTINGS, '{}'))
    flags = re.findall(r'--max-pods[= ]"?([0-9]+)', node['files'].get(ENVIRONMENT, ''))
    pods = int(flags[-1]) if flags else config.get('maxPods')
    if path != SETTINGS or pods is None:
        return None
    want = re.sub(r'"maxPods": [0-9]+', f'"maxPods": {pods}', want)
    return re.sub(r'(?<="memory": ")[0-9]+(?=Mi")', str(11 * pods + 255), want)


def cni_bin_dirs(node, name, path, want):
    if path != TOML or not re.match(r'2\.[1-9]|[3-9]', node['containerd']):
        return None
    want = want.replace("\nbin_dir = '/opt/cni/bin'", "\nbin_dirs = ['/opt/cni/bin']")
    return want.replace('\nbin_dir = "/opt/cni/bin"', '\nbin_dirs = ["/opt/cni/bin"]')


def own_plugin(node, name, path, want):
    if path != KUBECONFIG or name == 'nodeadm':
        return None
    words = ['command: aws', 'args:', '  - "eks"', '  - "get-token"'], ['command: /usr/bin/nodestrap', 'args:', '  - "token"']
    theirs, ours = (''.join(f'        {word}\n' for word in w) for w in words)
    return want.replace(theirs, ours)


def stable_gates(node, name, path, want):
    if path != SETTINGS or name == 'nodeadm':
        return None
    for gate, stable_from in (('DynamicResourceAllocation', 34), ('MutableCSINodeAllocatableCount', 36)):
        if minor(node) >= stable_from:
            want = want.replace(f'        "{gate}": true,\n', '')
    return want


def yields_to_mirrors(node, name, path, want):
    registry = "[plugins.'io.containerd.grpc.v1.cri'.registry"
    if path != TOML or name == 'nodeadm' or f'{registry}.mirrors]' not in want:
        return None
    return re.sub(r"(?<=\.registry\]\n)config_path = .*\n\n", '', want)


def gpu_label(node, name, path, want):
    if path != ENVIRONMENT or name == 'nodeadm' or minor(node) < 33 or not has_gpu(node):
        return None
    return re.sub(r'(?= --runtime-cgroups=)', ' --node-labels=nvidia.com/gpu.present=true', want, count=1)


DIFFERENCES = {'max-pods': max_pods_chosen, 'cni-bin-dirs': cni_bin_dirs, 'plugin': own_plugin, 'gates': stable_gates,
               'mirrors': yields_to_mirrors, 'gpu-label': gpu_label}


def expected(node, name, path, want):
    """What must be at path, and the rows of the table that say so."""
    rows = []
    for row, change in DIFFERENCES.items():
        changed = change(node, name, path, want)
        if changed is not None and changed != want:
            want, rows = changed, rows + [row]
    return want, rows


def refused(name, said):
    """The row of the table for an init that fails, or None. RAID10 with too few disks: nodeadm fails later, in the run phase. A setting or a
    feature gate of the user with which kubelet exits: nodeadm writes it."""
    if name == 'nodestrap' and re.search(r'at plan: .* (exits with|does not know) the feature gate', said):
        return 'user-gates'
    if name == 'nodestrap' and re.search(r'at plan: .*; as it is, kubelet would not start', said):
        return 'user-settings'
    return 'raid10' if 'localStorage.strategy: RAID10 needs at least four' in said else None


# ---- running ----

class Services:
    def __init__(self, directory, eni):
        command = [sys.executable, os.path.join(HERE, '../mock/aws.py'), '--imds', directory, '--ec2-listen', '127.0.0.1:0']
        for name, limits in eni.items():
            command += ['--eni', f'{name}={limits["enis"]},{limits["ipv4"]}']
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addresses = [self.process.stdout.readline().split()[1] for _ in range(2)]

    def environment(self):
        own = {k: v for k, v in os.environ.items() if not k.startswith('AWS_') and not k.lower().endswith('_proxy')}
        return own | {'AWS_EC2_METADATA_SERVICE_ENDPOINT': f'http://{self.addresses[0]}', 'AWS_ENDPOINT_URL_EC2': f'http://{self.addresses[1]}'}

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def run(program, root, services):
    done = subprocess.run([program, 'init', '--skip', 'run', '--root', root], env=services.environment(),
                          capture_output=True, text=True, errors='replace', timeout=60)
    return done.returncode, done.stderr


def read(root, path):
    try:
        with open(os.path.join(root, path), 'rb') as f:
            return f.read().decode()
    except FileNotFoundError:
        return None


def compare(node, name, root, status, said):
    """Returns the complaints and the rows of the table that were needed."""
    complaints, rows = [], set()
    if status != 0:
        row = refused(name, said)
        return ([] if row else [f'exit {status}'] + said.splitlines()[-3:]), {row} - {None}
    for path, want in node['files'].items():
        got = read(root, path)
        want, used = expected(node, name, path, want)
        rows.update(used)
        if got is None:
            complaints.append(f'{path} is missing')
        elif got != want:
            complaints += difflib.unified_diff(want.splitlines(), got.splitlines(), f'nodeadm {path}', f'ours {path}', lineterm='', n=2)
            if want.splitlines() == got.splitlines():
                complaints.append(f'{path}: ends in {want[-5:]!r} at nodeadm, in {got[-5:]!r} here')
    return complaints, rows


def load():
    with open(os.path.join(PEER, 'nodes.json')) as f:
        nodes = json.load(f)
    for node in nodes:
        for path, name in node['files'].items():
            with open(os.path.join(PEER, 'files', name), newline='') as f:
                node['files'][path] = f.read()
    return nodes


def table_rows(page):
    """The names of the rows, in the README or in the manual."""
    with open(page) as f:
        text = f.read().replace('\\-', '-')
    if '.SH FILES THAT DIFFER' in text:
        text = text.split('.SH FILES THAT DIFFER')[1].split('.SH ')[0]
        return re.findall(r'^\.TP\n\\fB([a-z0-9-]+)\\fR$', text, re.M)
    return re.findall(r'^\| ([a-z0-9-]+) \| (?!file)', text, re.M)


class Tap:
    def __init__(self):
        self.count = self.bad = 0

    def line(self, what, complaints):
        self.count, self.bad = self.count + 1, self.bad + bool(complaints)
        print(f'{"not " * bool(complaints)}ok {self.count} - {what}')
        for line in complaints:
            print('#', line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--nodestrap', required=True)
    parser.add_argument('--manual', required=True)
    parser.add_argument('--only', default='*')
    options = parser.parse_args()
    nodes, needed, tap = load(), set(), Tap()
    with tempfile.TemporaryDirectory() as tmp:
        services = Services(os.path.join(tmp, 'imds'), {n['instance_type']: n['eni'] for n in nodes if 'eni' in n})
        for name in NAMES:
            program = os.path.join(tmp, name)
            os.symlink(os.path.realpath(options.nodestrap), program)
            for node in fnmatch.filter([n['name'] for n in nodes], options.only):
                node = next(n for n in nodes if n['name'] == node)
                root = os.path.join(tmp, 'root')
                shutil.rmtree(root, ignore_errors=True)
                make_services(os.path.join(tmp, 'imds'), node)
                make_machine(root, node)
                complaints, rows = compare(node, name, root, *run(program, root, services))
                needed |= rows
                tap.line(f'{name} has the expected result on node {node["name"]}{": " * bool(rows)}{", ".join(sorted(rows))}', complaints)
        services.close()
    table, manual = table_rows(os.path.join(PEER, 'README.md')), table_rows(options.manual)
    tap.line('README.md and the manual have the same table of differences', [f'{t} / {m}' for t, m in zip(table, manual) if t != m] + [f'{len(table)}, {len(manual)} rows'] * (table != manual or not table))
    if options.only == '*':
        applied = set(DIFFERENCES) | {'raid10', 'user-gates', 'user-settings'}
        tap.line('each difference that the oracle applies is a row of the table', sorted(applied - set(table)))
        tap.line('a node needs each difference that the oracle applies', sorted(applied - needed))
    print(f'1..{tap.count}')
    return tap.bad > 0


if __name__ == '__main__':
    sys.exit(main())
