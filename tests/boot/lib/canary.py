#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: canary.py SCHEMA DIRECTORY
Writes NodeConfigs in which each free-form leaf of the schema has a word of its own. A leaf that is neither in FREE nor in STRUCTURED
is an error, so that the author of a new field decides. whole.yaml is for a node that boots; broken.yaml, on top of it, is for one
whose containerd fails and quotes what it has read. canaries has the words, one a line."""
import json
import os
import sys

NUMBER = 730515731      # in an expression there are no words


def toml():
    cri = 'plugins."io.containerd.grpc.v1.cri".registry'
    return f'''[{cri}.headers]
X-Meta = ["CANARY-toml-header"]
[{cri}.configs."r.example".auth]
username = "CANARY-toml-user"
password = "CANARY-toml-password"
[stream_processors."x"]
accepts = ["CANARY-toml-media"]
returns = "x"
path = "true"
args = ["--url=https://u:CANARY-toml-url@h.example"]
env = ["secret_key=CANARY-toml-env"]
'''


FREE = {
    'kubelet.config': {'staticPodURL': 'http://u:CANARY-kubelet-url@h.example/x', 'staticPodURLHeader': {'X': ['CANARY-kubelet-header']},
                       'volumePluginDir': 'CANARY-kubelet-word'},
    'kubelet.flags': ['--manifest-url-header=X:CANARY-flag-header', '--cert-dir', 'CANARY-flag-word', '--node-labels=a.example/b=CANARY-label',
                      '--hostname-override=CANARY-name', '--provider-id=aws:///x/CANARY-provider', '--register-with-taints=a.example/t=CANARY-taint:NoSchedule'],
    'kubelet.maxPodsExpression': f'110 + 0 * {NUMBER}',
    'containerd.config': toml(),
    'containerd.baseRuntimeSpec': {'process': {'env': ['A=CANARY-spec-env']}, 'annotations': {'a': 'CANARY-spec-annotation'},
                                   'hooks': {'poststart': [{'path': '/bin/true', 'args': ['true', '--token=CANARY-spec-hook']}]}},
    'instance.environment': {'default': {'HTTPS_PROXY': 'http://me:CANARY-env-proxy@127.0.0.1:9', 'NO_PROXY': '127.0.0.1,169.254.169.254',
                                         'WORD': 'CANARY-env-default', 'NOT-A-NAME': 'CANARY-env-refused'},
                             'containerd': {'WORD': 'CANARY-env-containerd'}, 'kubelet': {'WORD': 'CANARY-env-kubelet'}},
    'instance.sysctl': {'net.ipv4.ip_forward': '1'},
}
# A sysctl that a container has for itself and that takes only a few words; and a file that containerd does not find.
BROKEN = {'instance': {'sysctl': {'net.ipv4.tcp_congestion_control': 'CANARY-sysctl'}},
          'containerd': {'config': 'imports = ["/CANARY-broken.toml"]\n'}}
# Addresses, paths, sizes and names, which are checked, or say where a node is rather than what it knows.
STRUCTURED = ('cluster.', 'containerd.prePull', 'instance.localStorage.', 'instance.storage.volumes', 'instance.hugePages.', 'instance.network.',
              'accelerator.nvidia.fabric.timeout', 'accelerator.nvidia.proveTimeout', 'accelerator.nvidia.imex.nodes', 'accelerator.nvidia.mig')


def leaves(node, path=''):
    if 'properties' in node:
        for key, below in node['properties'].items():
            yield from leaves(below, f'{path}.{key}' if path else key)
    elif 'enum' not in node and set(node.get('type', ['?'])) - {'boolean', 'integer', 'null'}:
        yield path


def put(document, path, value):
    *way, last = path.split('.')
    for key in way:
        document = document.setdefault(key, {})
    document[last] = value


def words(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [w for v in value for w in words(v)]
    return [w.strip('"\'@,:]') for w in str(value).replace('@', ' ').replace(':', ' ').replace('=', ' ').replace('"', ' ').split() if 'CANARY' in w]


def main():
    spec = {}
    with open(sys.argv[1]) as f:
        found = set(leaves(json.load(f)['properties']['spec']))
    unknown = [p for p in sorted(found) if p not in FREE and not p.startswith(STRUCTURED)]
    if unknown or set(FREE) - found:
        sys.exit(f'who may read these: {unknown}; these are no more: {sorted(set(FREE) - found)}')
    for path, value in FREE.items():
        put(spec, path, value)
    for name, document in ('whole', spec), ('broken', BROKEN):
        with open(os.path.join(sys.argv[2], name + '.yaml'), 'w') as f:
            json.dump({'apiVersion': 'node.eks.aws/v1alpha1', 'kind': 'NodeConfig', 'spec': document}, f)
        os.chmod(f.name, 0o600)
    with open(os.path.join(sys.argv[2], 'canaries'), 'w') as f:
        print(*words(spec), file=f, sep='\n')


main()
