#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""refusing.py COUNT: takes connections and ends each in one of four ways, in turn: closed, reset, after half a TLS alert, after bytes that are
not TLS. The file COUNT grows by a byte for each. Prints its port."""
import itertools
import socket
import struct
import sys

s = socket.create_server(('127.0.0.1', 0))
print(s.getsockname()[1], flush=True)
for n in itertools.count():
    conn, _ = s.accept()
    with open(sys.argv[1], 'ab') as f:
        f.write(b'.')
    try:
        if n % 4 == 1:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        elif n % 4 == 2:
            conn.sendall(b'\x15\x03\x03\x00\x02\x02')
        elif n % 4 == 3:
            conn.sendall(b'HTTP/1.1 400 Bad Request\r\n\r\n')
    except OSError:
        pass
    conn.close()
