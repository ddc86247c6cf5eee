#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instance metadata mock, version 2 only, over a directory of files.

usage: imds.py serve ADDRESS PORT [DIR]     listen (ADDRESS must be up, e.g. 169.254.169.254 on lo of a network namespace);
                                            prints "listening" when it does
       imds.py stdio [DIR]                  one connection on stdin/stdout, for QEMU's guestfwd

DIR/latest/user-data, DIR/latest/meta-data/..., DIR/latest/dynamic/...; a directory is answered by its listing, as IMDS does.
IMDS_DELAY=SECONDS waits before each answer, IMDS_FAIL=N answers 503 to the first N requests (serve only),
IMDS_LOG=FILE gets one line a request, "TIME METHOD PATH STATUS" (STATUS "silent" where none was sent), IMDS_TOKEN=optional answers
without a token too (an instance whose HttpTokens is "optional": cloud-init asks that way where the machine does not look like EC2).
Nothing is ever written to stderr: QEMU sends that to the guest, inside the HTTP stream.

IMDS_LAG=RULE;RULE... is how the service lags behind; IMDS_LAG=/FILE reads them from there, one a line, without it DIR/lag is read
where there is one. A file is read anew for each request, and what counts from the start counts from when it was written last,
if that is later: `echo '404 * 5' >FILE` is five seconds without anything from now on. A rule is
    ANSWER GLOB LENGTH [SINCE]          the first that matches holds
ANSWER  404 (what matches, and what is below it, is in no listing either), another status, =TEXT (that with 200), silent (nothing is
        answered), down (GLOB is *: connections are refused; serve only)
GLOB    of paths below /latest/meta-data/network/interfaces/macs/, or, with a slash in front, of whole ones; * matches slashes, too;
        what is below a match matches. "api/token" is /latest/api/token
LENGTH  seconds, inf for ever, or 3x: the first three requests that match, of each path; with list as SINCE: until three requests for
        .../macs/ were answered
SINCE   start (default), list (the first request for .../macs/), mac (the first about that interface), path (the first for it)
Examples: "404 */network-card 2 mac", "=0 */device-number 3x", "404 0e:f4:9a:2b:91:11 4 list", "503 /latest/meta-data/* 2", "down * 30".
In stdio mode, where each connection is a process, what came first is kept in DIR.state.
"""
import fcntl
import fnmatch
import http.server
import json
import os
import select
import socket
import sys
import threading
import time

TOKEN = 'AQAEAmockTOKEN=='
ANONYMOUS = TOKEN if os.environ.get('IMDS_TOKEN') == 'optional' else None
if sys.argv[1:2] not in (['serve'], ['stdio']):
    sys.exit(__doc__)
mode, listen, tree = sys.argv[1], sys.argv[2:4], sys.argv[4:5]
if mode == 'stdio':
    listen, tree = None, sys.argv[2:3]
root = os.path.realpath(tree[0]) if tree else None
fails = int(os.environ.get('IMDS_FAIL', 0))

MACS = '/latest/meta-data/network/interfaces/macs/'
lock = threading.Lock()
started = time.time()
firsts = {}                             # what → when it was asked for first, or how often a rule has held
states = tree[0].rstrip('/') + '.state' if mode == 'stdio' and tree else None


class Rule:
    def __init__(self, text, start):
        self.text, self.start = text, start
        self.answer, self.glob, length, self.since = (text.split() + ['start'])[:4]
        self.times = int(length[:-1]) if length.endswith('x') else None
        self.seconds = None if length.endswith('x') else float(length)
        if self.glob == 'api/token':
            self.glob = '/latest/' + self.glob
        elif not self.glob.startswith('/'):
            self.glob = MACS + self.glob if self.answer != 'down' else '/*'

    def matches(self, path):
        return fnmatch.fnmatchcase(path, self.glob) or fnmatch.fnmatchcase(path, self.glob + '/*')

    def holds(self, path, asked):
        """asked: this is the answer to a request, which counts."""
        if not self.matches(path):
            return False
        if self.times is not None and self.since == 'list':
            return firsts.get('lists', 0) < self.times
        if self.times is not None:
            key = f'{self.text} {path}'
            firsts[key] = firsts.get(key, 0) + asked
            return firsts[key] <= self.times - (not asked)
        mac = path.removeprefix(MACS).split('/')[0]
        key = {'start': 'start', 'list': 'path ' + MACS.rstrip('/'), 'mac': 'mac ' + mac, 'path': 'path ' + path}[self.since]
        return time.time() < max(firsts.get(key, time.time()), self.start) + self.seconds


def rules():
    text, start = os.environ.get('IMDS_LAG', ''), 0
    file = text if text.startswith('/') else root + '/lag' if root and not text else None
    if file:
        text = ''
        if os.path.isfile(file):
            with open(file) as f:
                text, start = f.read(), os.fstat(f.fileno()).st_mtime
    return [Rule(r, start) for r in text.replace('\n', ';').split(';') if r.split() and not r.lstrip().startswith('#')]


def remember(path):
    """Notes when what was asked for first."""
    firsts.setdefault('start', started)
    firsts.setdefault('path ' + path, time.time())
    if path == MACS.rstrip('/'):
        firsts['lists'] = firsts.get('lists', 0) + 1
    if path.startswith(MACS):
        firsts.setdefault('mac ' + path.removeprefix(MACS).split('/')[0], time.time())


def lag(path):
    """The rule that holds for this request, or None."""
    with lock, open(states or os.devnull, 'a+') as kept:
        if states:
            fcntl.flock(kept, fcntl.LOCK_EX)
            kept.seek(0)
            firsts.update(json.loads(kept.read() or '{}'))
        remember(path)
        found = next((r for r in rules() if r.answer != 'down' and r.holds(path, True)), None)
        if states:
            kept.truncate(0)
            json.dump(firsts, kept)
    return found


def hidden(path):
    with lock:
        return any(r.answer == '404' and r.holds(path, False) for r in rules())


def down():
    with lock:
        firsts.setdefault('start', started)
        return any(r.answer == 'down' and r.holds('/', False) for r in rules())


def lookup(path):
    if root is None:
        return {'/latest/meta-data/instance-id': b'i-0123456789abcdef0'}.get(path)
    path = path.split('?')[0].rstrip('/')
    p = os.path.realpath(root + '/' + path)
    if p != root and not p.startswith(root + '/'):
        return None
    if os.path.isdir(p):
        names = [n for n in sorted(os.listdir(p)) if not hidden(path + '/' + n)]
        return '\n'.join(n + '/' * os.path.isdir(p + '/' + n) for n in names).encode()
    if os.path.isfile(p):
        with open(p, 'rb') as f:
            return f.read()
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server_version, sys_version = 'EC2ws', ''
    wbufsize = 65536                    # head and body in one segment: a second one would wait 40 ms for the delayed ACK of the first

    def note(self, what):
        if 'IMDS_LOG' in os.environ:
            with open(os.environ['IMDS_LOG'], 'a') as f:
                f.write(f'{time.time():.3f} {self.command} {self.path} {what}\n')

    def answer(self, code, body=b'', headers=()):
        global fails
        time.sleep(float(os.environ.get('IMDS_DELAY', 0)))
        rule = lag(path := '/' + self.path.split('?')[0].strip('/'))
        if fails > 0:
            fails, code, body, headers = fails - 1, 503, b'', ()
        elif down() or rule and rule.answer == 'silent':
            self.note('silent')
            while not down() and (rule.times or rule.holds(path, False)) and not select.select([self.connection], [], [], 0.1)[0]:
                pass
            self.close_connection = True
            return
        elif rule and code != 401:
            code, body, headers = (200, rule.answer[1:].encode(), ()) if rule.answer.startswith('=') else (int(rule.answer), b'', ())
        self.note(code)
        self.send_response(code)
        for k, v in headers:
            self.send_header(k, v)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_PUT(self):
        ttl = self.headers.get('X-aws-ec2-metadata-token-ttl-seconds', '')
        if self.path != '/latest/api/token' or not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
            return self.answer(400)
        self.answer(200, TOKEN.encode(), [('X-aws-ec2-metadata-token-ttl-seconds', ttl)])

    def do_GET(self):
        if self.headers.get('X-aws-ec2-metadata-token', ANONYMOUS) != TOKEN:
            return self.answer(401)
        body = lookup(self.path)
        self.answer(404) if body is None else self.answer(200, body)

    def log_message(self, *args):
        pass


class Stdio:
    def makefile(self, mode, *args):
        return sys.stdin.buffer if 'r' in mode else sys.stdout.buffer

    def sendall(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def settimeout(self, t):
        pass

    def setsockopt(self, *args):
        pass

    def fileno(self):
        return sys.stdin.fileno()


def converse(conn, peer):
    try:
        with conn:
            Handler(conn, peer, None)
    except OSError:
        pass


def bind(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((listen[0], port))
    s.settimeout(0.1)
    return s


def tell(port):
    print('listening', port, flush=True)
    if 'NOTIFY_SOCKET' in os.environ:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])


def serve():
    listening = bind(int(listen[1]))
    port = listening.getsockname()[1]
    if not down():
        listening.listen(128)
    tell(port)
    while True:
        while down():                   # bound and not listening: refused
            time.sleep(0.05)
        listening.listen(128)
        while not down():
            try:
                conn, peer = listening.accept()
            except TimeoutError:
                continue
            conn.settimeout(None)
            threading.Thread(target=converse, args=(conn, peer), daemon=True).start()
        listening.close()
        listening = bind(port)


if mode == 'serve':
    serve()
else:
    Handler(Stdio(), ('guest', 0), None)
