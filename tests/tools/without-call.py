#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: without-call.py NUMBER ERRNO COMMAND...
Runs COMMAND on a kernel that answers this system call with ERRNO (38: an older one; 1: a container's filter), by a seccomp filter as
seccomp(2) describes it. Only for calls from 424 on, whose numbers all architectures share. Exit 77 where no filter can be set."""
import ctypes, os, struct, sys

number, errno, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06                  # linux/bpf_common.h
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x50000, 0x7fff0000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
assert number >= 424
code = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, SECCOMP_RET_ERRNO | errno), (RETURN, 0, 0, SECCOMP_RET_ALLOW)]
instructions = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
program = ctypes.create_string_buffer(struct.pack("H0QQ", len(code), ctypes.addressof(instructions)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
    print("skip: no seccomp filter can be set here:", os.strerror(ctypes.get_errno()), file=sys.stderr)
    sys.exit(77)
os.execvp(command[0], command)
