#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instance metadata mock, version 2 only, over a directory of files.

usage: imds.py serve ADDRESS PORT [DIR]     listen (ADDRESS must be up, e.g. 169.254.169.254 on lo of a network namespace);
                                            prints "listening" when it does
       imds.py stdio [DIR]                  one connection on stdin/stdout, for QEMU's guestfwd

DIR/latest/user-data, DIR/latest/meta-data/..., DIR/latest/dynamic/...; a directory is answered by its listing, as IMDS does.
IMDS_DELAY=SECONDS waits before each answer, IMDS_FAIL=N answers 503 to the first N requests (serve only),
IMDS_LOG=FILE gets one line a request, IMDS_TOKEN=optional answers without a token too (an instance whose HttpTokens is
"optional": cloud-init asks that way where the machine does not look like EC2). Nothing is ever written to stderr: QEMU sends that to the guest, inside the HTTP stream.
"""
import http.server
import os
import socketserver
import sys
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


def lookup(path):
    if root is None:
        return {'/latest/meta-data/instance-id': b'i-0123456789abcdef0'}.get(path)
    p = os.path.realpath(root + '/' + path.split('?')[0])
    if p != root and not p.startswith(root + '/'):
        return None
    if os.path.isdir(p):
        return '\n'.join(n + '/' * os.path.isdir(p + '/' + n) for n in sorted(os.listdir(p))).encode()
    if os.path.isfile(p):
        with open(p, 'rb') as f:
            return f.read()
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server_version, sys_version = 'EC2ws', ''

    def answer(self, code, body=b'', headers=()):
        global fails
        time.sleep(float(os.environ.get('IMDS_DELAY', 0)))
        if fails > 0:
            fails, code, body, headers = fails - 1, 503, b'', ()
        if 'IMDS_LOG' in os.environ:
            with open(os.environ['IMDS_LOG'], 'a') as f:
                f.write(f'{time.time():.3f} {self.command} {self.path} {code}\n')
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


if mode == 'serve':
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer.daemon_threads = True
    server = socketserver.ThreadingTCPServer((listen[0], int(listen[1])), Handler)
    print('listening', flush=True)
    server.serve_forever()
else:
    Handler(Stdio(), ('guest', 0), None)
