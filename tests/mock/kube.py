#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The API server of a cluster, as far as a node meets it: real TLS with a CA of its own, tokens that are looked into as
aws-iam-authenticator and STS do, one collection of Nodes that can be listed, watched, made and patched.

usage: kube.py pki DIR                makes in DIR, with openssl: ca.crt; and NAME.crt with NAME.key for each NAME of --tls
       kube.py serve DIR [OPTION]...

Prints "kube ADDRESS:PORT" (and "proxy ADDRESS:PORT") when it listens, then serves until killed.
  --listen A:P          (127.0.0.1:0)
  --tls NAME            which certificate: good (default; for localhost, kube.test, 127.0.0.1, ::1), expired, future, other-name, other-ca
                        (the same names, another CA); or none: plain HTTP; or hang: no handshake; or full: takes no connection at all
  --key ID:SECRET[:SESSION-TOKEN]   whose signatures count; may be given often
  --cluster NAME        what tokens must have been made for (training)
  --node NAME           who a good token is: user system:node:NAME, group system:nodes (default: whoever it asks for)
  --has NAME            a Node that is there from the start, and Ready
  --unmapped            no good token is anybody
  --clock SECONDS       how far this server's clock is ahead
  --play WORDS          what a watch shows, in the place of the Nodes: the first watch the first --play, later ones the next, then the
                        last again. Words, with commas between them: registered (no network plugin yet), ready, old (ready, for 50 s;
                        registered 100 s ago), stale (ready, of another boot), unknown (kubelet stopped reporting), deleted, gone (an ERROR event), rubbish, end (of the watch);
                        behind the last word the watch goes on, without events. registered=MESSAGE for another message
  --boot-id FILE        of the Nodes that --play shows (/proc/sys/kernel/random/boot_id)
  --fault KIND[=VALUE][*COUNT]      of COUNT requests (all), in the order given: status=CODE   hang (no answer)   reset (after the request)
                        close (in the middle of the answer)   slow (byte by byte)   garbage (no HTTP)   retry-after=SECONDS (with 429)
  --proxy A:P           also a proxy that leads there, whatever host it is asked for
  --proxy-status CODE   what it answers instead
  --log FILE            a line for each request: SECONDS CONNECTION METHOD PATH STATUS TOKEN, where TOKEN is "ok", "none" or what is wrong
"""
import argparse
import email.utils
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

import credential

lock = threading.Condition()
NAMES = 'DNS:localhost,DNS:kube.test,IP:127.0.0.1,IP:::1'
NO_NETWORK = 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: ' \
             'cni plugin not initialized'


# ---- certificates ----
def openssl(*words):
    done = subprocess.run(['openssl', *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)


def pki(folder):
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name)
    day = lambda days: time.strftime('%y%m%d%H%M%SZ', time.gmtime(time.time() + 86400 * days))
    for ca in ('ca', 'other'):
        openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', path(ca + '.key'), '-out', path(ca + '.crt'),
                '-subj', f'/CN=mock-{ca}', '-days', '3650', '-addext', 'keyUsage=critical,keyCertSign,cRLSign')
    for name, ca, names, begin, end in (('good', 'ca', NAMES, -1, 3650), ('expired', 'ca', NAMES, -20, -10), ('future', 'ca', NAMES, 10, 3650),
                                        ('other-name', 'ca', 'DNS:elsewhere.test', -1, 3650), ('other-ca', 'other', NAMES, -1, 3650)):
        with open(path('openssl.conf'), 'w') as f:
            f.write(f'[ca]\ndefault_ca=a\n[a]\ndatabase={path("db")}\nnew_certs_dir={folder}\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n'
                    f'unique_subject=no\n[p]\ncommonName=supplied\n[e]\nsubjectAltName={names}\nbasicConstraints=CA:FALSE\n')
        open(path('db'), 'w').close()
        openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', path(name + '.key'), '-out', path('csr'),
                '-subj', f'/CN=mock-{name}')
        openssl('ca', '-batch', '-notext', '-config', path('openssl.conf'), '-extensions', 'e', '-cert', path(ca + '.crt'), '-keyfile', path(ca + '.key'),
                '-in', path('csr'), '-out', path(name + '.crt'), '-startdate', day(begin), '-enddate', day(end))


def now():
    return time.time() + options.clock


# ---- Nodes ----
nodes, changes, version = {}, [], 1     # changes: (version, type, Node), for those who watch


def stamp(ago=0):
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(now() - ago))


def status(code, reason, message):
    return code, {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'message': message, 'reason': reason, 'code': code}


def merge(into, patch):
    """A strategic merge, as far as Nodes need it: conditions by their type."""
    for key, value in patch.items():
        if key == 'conditions':
            merged = {c['type']: c for c in into.get(key, [])}
            for c in value:
                merged[c['type']] = {**merged.get(c['type'], {}), **c}
            into[key] = list(merged.values())
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def store(kind, node):
    global version
    version += 1
    node['metadata']['resourceVersion'] = str(version)
    changes.append((version, kind, json.loads(json.dumps(node))))
    lock.notify_all()


def make_node(name, word):
    word, _, message = word.partition('=')
    with open(options.boot_id) as f:
        boot = f.read().strip()
    posting = ('True', 'KubeletReady', 'kubelet is posting ready status')
    ready = {'ready': posting, 'old': posting, 'stale': posting,
             'unknown': ('Unknown', 'NodeStatusUnknown', 'Kubelet stopped posting node status.')}.get(word, ('False', 'KubeletNotReady', message or NO_NETWORK))
    return {'kind': 'Node', 'apiVersion': 'v1', 'metadata': {'name': name, 'creationTimestamp': stamp(100 if word == 'old' else 0), 'resourceVersion': '7'},
            'status': {'nodeInfo': {'bootID': 'e6f6a5b1-0000-4000-8000-000000000000' if word == 'stale' else boot},
                       'conditions': [{'type': 'MemoryPressure', 'status': 'False', 'reason': 'KubeletHasSufficientMemory'},
                                      {'type': 'Ready', 'status': ready[0], 'reason': ready[1], 'message': ready[2], 'lastTransitionTime': stamp(50 if word == 'old' else 0)}]}}


watches = 0


def play(name):
    """The events of one watch; None: nothing for now."""
    global watches
    with lock:
        words = options.play[min(watches, len(options.play) - 1)].split(',')
        watches += 1
    kind = 'ADDED'
    for word in words:
        if word == 'end':
            return
        if word == 'rubbish':
            yield b'<html>\n'
        elif word == 'gone':
            yield json.dumps({'type': 'ERROR', 'object': status(410, 'Expired', 'too old resource version: 7 (9)')[1]}).encode() + b'\n'
        elif word == 'deleted':
            yield json.dumps({'type': 'DELETED', 'object': make_node(name, 'ready')}).encode() + b'\n'
            kind = 'ADDED'
        elif word:
            yield json.dumps({'type': kind, 'object': make_node(name, word)}).encode() + b'\n'
            kind = 'MODIFIED'
    while True:
        yield None


def follow(name):
    event = lambda kind, node: json.dumps({'type': kind, 'object': node}).encode() + b'\n'
    with lock:
        seen = version
        found = [json.loads(json.dumps(n)) for n in nodes.values() if not name or n['metadata']['name'] == name]
    for n in found:
        yield event('ADDED', n)
    while True:
        with lock:
            lock.wait(0.2)
            fresh = [c for c in changes if c[0] > seen and (not name or c[2]['metadata']['name'] == name)]
        for number, kind, node in fresh:
            yield event(kind, node)
            seen = number
        yield None


def allowed(name):
    """As the node authorizer: a node sees the Node of its own name."""
    if options.node is None or name == options.node:
        return None
    what = f"read '{name}'" if name else 'read all nodes'
    return status(403, 'Forbidden', f'nodes "{name}" is forbidden: User "system:node:{options.node}" cannot watch resource "nodes" in API group "" at the '
                                    f'cluster scope: node \'{options.node}\' cannot {what}, only its own Node object')


def change(method, name, sub, body):
    with lock:
        if method == 'POST':
            name = body['metadata']['name']
            if name in nodes:
                return status(409, 'AlreadyExists', f'nodes "{name}" already exists')
            body['metadata']['creationTimestamp'] = stamp()
            nodes[name] = {'kind': 'Node', 'apiVersion': 'v1', **body}
            store('ADDED', nodes[name])
            return 201, nodes[name]
        if name not in nodes:
            return status(404, 'NotFound', f'nodes "{name}" not found')
        if method == 'DELETE':
            store('DELETED', nodes.pop(name))
            return 200, status(200, '', '')[1]
        merge(nodes[name], body)
        store('MODIFIED', nodes[name])
        return 200, nodes[name]


DISCOVERY = {
    '/version': {'major': '1', 'minor': '33', 'gitVersion': 'v1.33.4', 'platform': 'linux/amd64'},
    '/api': {'kind': 'APIVersions', 'versions': ['v1'], 'serverAddressByClientCIDRs': []},
    '/apis': {'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': []},
    '/api/v1': {'kind': 'APIResourceList', 'groupVersion': 'v1', 'resources': [
        {'name': 'nodes', 'singularName': 'node', 'namespaced': False, 'kind': 'Node', 'shortNames': ['no'],
         'verbs': ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']}]}}


def answer(method, path, query, body):
    """Status and document; or 200 and the events of a watch."""
    if path in DISCOVERY:
        return 200, DISCOVERY[path]
    if not re.fullmatch(r'/api/v1/nodes(/[^/]+(/status)?)?', path):
        return status(404, 'NotFound', 'the server could not find the requested resource')
    name, _, sub = path.removeprefix('/api/v1/nodes').removeprefix('/').partition('/')
    if not name:
        selector = query.get('fieldSelector', '')
        name = selector.removeprefix('metadata.name=') if selector.startswith('metadata.name=') else ''
    refused = allowed(name) if method == 'GET' else None
    if refused:
        return refused
    if method != 'GET':
        return change(method, name, sub, body)
    if query.get('watch') in ('1', 'true'):
        return 200, play(name) if options.play else follow(name)
    with lock:
        if path != '/api/v1/nodes':
            return (200, nodes[name]) if name in nodes else status(404, 'NotFound', f'nodes "{name}" not found')
        return 200, {'kind': 'NodeList', 'apiVersion': 'v1', 'metadata': {'resourceVersion': str(version)},
                     'items': [n for n in nodes.values() if not name or n['metadata']['name'] == name]}


# ---- HTTP ----
class Fault:
    def __init__(self, text):
        text, _, count = text.partition('*')
        self.kind, _, self.value = text.partition('=')
        self.left = int(count) if count else None


def next_fault():
    with lock:
        for f in options.fault:
            if f.left is None or f.left > 0:
                f.left = f.left - 1 if f.left else f.left
                return f
    return Fault('')


started, connections = time.time(), 0


def log(*words):
    if options.log:
        with lock, open(options.log, 'a') as f:
            print(f'{time.time() - started:.3f}', *words, file=f)


def peer_left(conn):
    try:
        conn.settimeout(0.05)
        return conn.recv(1) == b''
    except (TimeoutError, ssl.SSLWantReadError):
        return False
    finally:
        conn.settimeout(None)


def send_watch(conn, events, seconds):
    end = time.time() + seconds
    for line in events:
        if line:
            conn.sendall(b'%x\r\n%s\r\n' % (len(line), line))
        elif time.time() > end or peer_left(conn):
            break
    conn.sendall(b'0\r\n\r\n')


def reset(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\x01\0\0\0\0\0\0\0')


def serve_one(conn, file, number):
    """One request; whether another one may come."""
    line = file.readline().decode().split()
    if len(line) != 3:
        return False
    method, target = line[:2]
    headers = {}
    while (header := file.readline().decode().strip()):
        key, _, value = header.partition(':')
        headers[key.strip().lower()] = value.strip()
    raw = file.read(int(headers.get('content-length', 0)))
    url = urllib.parse.urlsplit(target)
    kind, _, token = headers.get('authorization', '').partition(' ')
    wrong = 'none' if kind != 'Bearer' else credential.reason_against(token, options.cluster, options.keys, now())
    fault = next_fault()
    if fault.kind == 'status':
        code, found = status(int(fault.value), 'Mock', 'the mock says no')
    elif fault.kind == 'retry-after':
        code, found = status(429, 'TooManyRequests', 'too many requests, please try again later.')
    elif wrong or options.unmapped:
        code, found = status(401, 'Unauthorized', 'Unauthorized')
    else:
        code, found = answer(method, url.path, dict(urllib.parse.parse_qsl(url.query)), json.loads(raw) if raw else None)
    log(number, method, target, code, wrong or 'ok')
    head = f'HTTP/1.1 {code} X\r\nDate: {email.utils.formatdate(now(), usegmt=True)}\r\nContent-Type: application/json\r\n'
    if fault.kind == 'retry-after':
        head += f'Retry-After: {fault.value}\r\n'
    if fault.kind == 'hang':
        time.sleep(3600)
    if fault.kind == 'reset':
        reset(conn)
        return False
    if fault.kind == 'garbage':
        conn.sendall(b'SSH-2.0-mock\r\n')
        return False
    if not isinstance(found, dict):
        conn.sendall(head.encode() + b'Transfer-Encoding: chunked\r\n\r\n')
        if fault.kind == 'close':
            conn.sendall(b'ffff\r\n{"type": "ADD')
            return False
        if fault.kind == 'slow':
            whole, conn = conn, type('Slow', (), {'sendall': lambda _, data: [(whole.sendall(data[i:i + 1])) for i in range(len(data))],
                                                  '__getattr__': lambda _, name: getattr(whole, name)})()
        send_watch(conn, found, float(dict(urllib.parse.parse_qsl(url.query)).get('timeoutSeconds', 60)))
        return True
    data = json.dumps(found).encode() + b'\n'
    conn.sendall(head.encode() + b'Content-Length: %d\r\n\r\n' % len(data) + (b'' if method == 'HEAD' else data))
    return True


def serve_connection(conn, number):
    try:
        if options.tls == 'hang':
            time.sleep(3600)
        if options.tls == 'none':       # as a server of HTTP answers to who speaks TLS
            conn.recv(1)
            conn.sendall(b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
            conn.shutdown(socket.SHUT_WR)
            while conn.recv(65536):     # else what is left of it would reset the connection
                pass
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f'{options.folder}/{options.tls}.crt', f'{options.folder}/{options.tls}.key')
        conn = context.wrap_socket(conn, server_side=True)
        with conn.makefile('rb') as file:
            while serve_one(conn, file, number):
                pass
    except (OSError, ValueError):       # whoever asked has gone, or did not like the certificate
        pass
    finally:
        conn.close()


def serve_proxy(conn, number):
    """CONNECT, and then bytes both ways."""
    with conn.makefile('rb', buffering=0) as file:
        line = file.readline().decode().split()
        while file.readline().strip():
            pass
    code = options.proxy_status or 200
    log(number, *line[:2], code, 'proxy')
    conn.sendall(f'HTTP/1.1 {code} X\r\nContent-Length: 0\r\n\r\n'.encode() if code != 200 else b'HTTP/1.1 200 X\r\n\r\n')
    if code != 200:
        conn.close()
        return
    there = socket.create_connection(listener.getsockname()[:2])

    def copy(source, target):
        try:
            while (data := source.recv(65536)):
                target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    threading.Thread(target=copy, args=(there, conn), daemon=True).start()
    copy(conn, there)


def accept(server, serve):
    global connections
    while True:
        conn, _ = server.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with lock:
            connections += 1
        threading.Thread(target=serve, args=(conn, connections), daemon=True).start()


def listen(name, where):
    address, _, port = where.rpartition(':')
    family = socket.AF_INET6 if address.startswith('[') else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address.strip('[]'), int(port)))
    server.listen(0 if options.tls == 'full' else 512)
    if options.tls == 'full':   # one connection that nobody accepts fills the queue
        options.waiting = socket.create_connection(server.getsockname()[:2])
    print(name, f'{address}:{server.getsockname()[1]}', flush=True)
    return server


parser = argparse.ArgumentParser()
parser.add_argument('command', choices=('pki', 'serve'))
parser.add_argument('folder')
for flag, default in (('--listen', '127.0.0.1:0'), ('--tls', 'good'), ('--cluster', 'training'), ('--node', None), ('--has', None), ('--proxy', None), ('--log', None),
                      ('--boot-id', '/proc/sys/kernel/random/boot_id')):
    parser.add_argument(flag, default=default)
parser.add_argument('--key', action='append', default=[])
parser.add_argument('--play', action='append', default=[])
parser.add_argument('--fault', action='append', default=[], type=Fault)
parser.add_argument('--unmapped', action='store_true')
parser.add_argument('--clock', type=float, default=0)
parser.add_argument('--proxy-status', type=int)
options = parser.parse_args()
options.keys = {k.split(':')[0]: (k.split(':', 2) + [''])[:3] for k in options.key}
if options.has:
    nodes[options.has] = make_node(options.has, 'ready')
if options.command == 'pki':
    pki(options.folder)
    sys.exit()
listener = listen('kube', options.listen)
if options.proxy:
    threading.Thread(target=accept, args=(listen('proxy', options.proxy), serve_proxy), daemon=True).start()
if options.tls == 'full':
    threading.Event().wait()
accept(listener, serve_connection)
