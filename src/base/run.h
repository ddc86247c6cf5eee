/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A child process by argument vector, never by a shell: what it printed, how it ended; killed at its
 * deadline. */
#include "base/macro.h"

typedef struct ChildResult {
        int status;             /* its exit status, or 128 + signal as shells count */
        bool timed_out;         /* the deadline passed and the whole process group was killed; status
                                 * is 137 then. A child that the kernel keeps even so, because it
                                 * waits for a device, is left behind after five seconds */
        char *output; size_t size;      /* of stdout, NUL behind it; never more than the limit */
        bool cut;               /* there was more of it, read and thrown away */
        char *errors;           /* the last lines of stderr, for a message; "" if there were none */
} ChildResult;
void child_result_done(ChildResult *r);

/* What may be behind it that a process was killed by this signal, for the end of a sentence: ""; of SIGKILL,
 * that the kernel does so for want of memory, and how that is seen. */
const char *kill_hint(int signal);
/* Runs argv[0] (looked up in PATH unless there is a slash in it) in a process group of its own, stdin empty,
 * signals as they are by default, and keeps up to limit bytes of its output. 0 when it ran, however it ended:
 * look at status. < 0 when it could not be started (-ENOENT: no such program). */
_must_check_ _nonnull_ int child_run(char *const *argv, uint64_t timeout_usec, size_t limit,
                                     ChildResult *ret);
/* The same until an instant (CLOCK_MONOTONIC), or until cancel_fd becomes readable (-1: there is none), which
 * looks like the deadline. */
_must_check_ _nonnull_ int child_run_until(char *const *argv, uint64_t deadline_usec, int cancel_fd,
                                           size_t limit, ChildResult *ret);
/* The same, and stderr is part of the output, in the order in which it was written. */
_must_check_ _nonnull_ int child_run_joined(char *const *argv, uint64_t deadline_usec, int cancel_fd,
                                            size_t limit, ChildResult *ret);
/* The same of a function of ours, in a fork of this process, which has one thread: call writes to
 * STDOUT_FILENO, by write(2), and gives the exit status. For system calls that may never come back. */
_must_check_ _nonnull(1, 5) int child_call(int (*call)(void *), void *argument, uint64_t timeout_usec,
                                           size_t limit, ChildResult *ret);
