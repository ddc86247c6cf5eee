#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A proxy before a service, which disturbs its connections; prints its port, then serves until killed.

usage: flapping.py TARGET-PORT SEED
All is well for some seconds. Then for some seconds each connection has one of these fates, or all have the same: it is reset, closed at
once, never answered, answered by half, by bytes that are not HTTP, by an error (500, 503, 401, 429), after a while, or refused.
After SIGUSR1 all is well for good, and the proxy prints the number of connections with another fate.
"""
import random
import signal
import socket
import struct
import sys
import threading
import time

target, fate_of = int(sys.argv[1]), random.Random(int(sys.argv[2]))
FATES = ['reset', 'close', 'silent', 'half', 'garbage', '500', '503', '401', '429', 'slow', 'well', 'well']
now = {'fates': ['well'], 'down': False, 'ill': 0}
calm = threading.Event()


def reset(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    conn.close()


def request(conn):
    data = b''
    while b'\r\n\r\n' not in data:
        piece = conn.recv(65536)
        if not piece:
            return None
        data += piece
    return data


def pump(a, b, least=None):
    try:
        while data := a.recv(65536):
            b.sendall(data[:max(1, len(data) // 2)] if least else data)
            if least:
                break
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def converse(conn, fate):
    try:
        with conn:
            if fate in ('reset', 'close'):
                if fate_of.random() < 0.5:
                    request(conn)
                return reset(conn) if fate == 'reset' else None
            if fate == 'silent':
                return time.sleep(fate_of.uniform(1, 30))
            if fate == 'garbage':
                request(conn)
                return conn.sendall(fate_of.randbytes(fate_of.randrange(1, 3000)))
            if fate.isdigit():
                while request(conn):
                    conn.sendall(f'HTTP/1.1 {fate} X\r\nContent-Length: 0\r\n\r\n'.encode())
                return None
            if fate == 'slow':
                time.sleep(fate_of.uniform(0.1, 3))
            with socket.create_connection(('127.0.0.1', target)) as real:
                back = threading.Thread(target=pump, args=(real, conn, fate == 'half'), daemon=True)
                back.start()
                pump(conn, real)
                back.join()
    except OSError:
        pass


def weather():
    while not calm.is_set():
        kind = fate_of.random()
        now['down'] = kind < 0.1
        now['fates'] = ['well'] if kind > 0.6 else FATES if kind > 0.2 else [fate_of.choice(FATES)]
        calm.wait(fate_of.uniform(0.2, 20 if kind < 0.03 else 4))
    now.update(fates=['well'], down=False)


def listen(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', port))
    s.settimeout(0.1)
    return s


s = listen(0)
port = s.getsockname()[1]
s.listen(64)
signal.signal(signal.SIGUSR1, lambda *_: (calm.set(), print(now['ill'], flush=True)))
print(port, flush=True)
threading.Thread(target=weather, daemon=True).start()
while True:
    if now['down']:
        s.close()
        while now['down']:
            time.sleep(0.05)
        s = listen(port)
        s.listen(64)
    try:
        conn, _ = s.accept()
    except TimeoutError:
        continue
    conn.settimeout(60)
    fate = fate_of.choice(now['fates'])
    now['ill'] += fate != 'well'
    threading.Thread(target=converse, args=(conn, fate), daemon=True).start()
