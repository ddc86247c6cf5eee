#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands before an API server and passes connections on as they are; or answers in its place.

usage: front.py ADDRESS:PORT BEHIND:PORT CERTIFICATE KEY FILE

FILE says what is done with a connection: pass; status=CODE[/CODE…][,retry-after=SECONDS], to its requests in turn, and the last one to all
behind; hang (no answer); close. It is read at each connection, and those that were begun under another word are closed. The code "cut" is
an answer, 201, that breaks off. Prints a line for each answer: CODE METHOD."""
import json
import select
import socket
import ssl
import sys
import threading
import time

listen, behind, certificate, key, file = sys.argv[1:]
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain(certificate, key)


def word():
    with open(file) as f:
        return f.read().strip()


def pass_on(conn, began):
    host, _, port = behind.rpartition(':')
    with socket.create_connection((host, int(port))) as other:
        while word() == began:
            for ready in select.select([conn, other], [], [], 0.2)[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (other if ready is conn else conn).sendall(data)


def answer(conn, began):
    fields = dict(f.split('=') for f in began.split(','))
    codes = fields['status'].split('/')
    with tls.wrap_socket(conn, server_side=True) as conn:
        reader = conn.makefile('rb')
        while word() == began and (line := reader.readline()):
            code = codes.pop(0) if len(codes) > 1 else codes[0]
            print(code, line.split()[0].decode(), flush=True)
            length = 0
            while (line := reader.readline().strip()):
                if line.lower().startswith(b'content-length:'):
                    length = int(line.split(b':')[1])
            reader.read(length)
            if code == 'cut':
                return conn.sendall(b'HTTP/1.1 201 X\r\nContent-Length: 100\r\n\r\n{')
            reason = {'429': 'TooManyRequests', '503': 'ServiceUnavailable'}.get(code, 'InternalError')
            body = json.dumps({'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure', 'message': 'the front says no', 'reason': reason, 'code': int(code)}).encode()
            head = f'HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n' + \
                ''.join(f'Retry-After: {fields[k]}\r\n' for k in fields if k == 'retry-after')
            conn.sendall(head.encode() + b'\r\n' + body)


def serve(conn):
    began = word()
    try:
        with conn:
            if began == 'pass':
                pass_on(conn, began)
            elif began == 'hang':
                while word() == began:
                    time.sleep(0.2)
            elif began != 'close':
                answer(conn, began)
    except OSError as e:
        print(time.time(), began, e, flush=True)


s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
host, _, port = listen.rpartition(':')
s.bind((host, int(port)))
s.listen(128)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
