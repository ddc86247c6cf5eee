/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Child processes by argument vector, without a shell and with a deadline. */
#include "base/macro.h"

typedef struct ChildResult {
        int status;             /* exit status, or 128 + signal */
        bool timed_out;         /* killed at its deadline, status 137; abandoned after 5 s more */
        char *output; size_t size;      /* stdout up to the limit, NUL-terminated */
        bool cut;               /* the rest was thrown away */
        char *errors;           /* the last lines of stderr, or "" */
} ChildResult;
void child_result_done(ChildResult *r);

/* The end of a sentence about a process that this signal killed: for SIGKILL the likely cause, else "". */
const char *kill_hint(int signal);
/* Runs argv[0] (from PATH) in its own process group, with an empty stdin and default signals. 0: it ran, look
 * at status; < 0: it did not start (-ENOENT: no such program). */
_must_check_ _nonnull_ int child_run(char *const *argv, uint64_t timeout_usec, size_t limit,
                                     ChildResult *ret);
/* The same until an instant (CLOCK_MONOTONIC), with this stdin. */
_must_check_ _nonnull_ int child_run_fed(char *const *argv, int in, uint64_t deadline_usec, size_t limit,
                                         ChildResult *ret);
/* Same without stdin, or until cancel_fd (-1: none) is readable: timed_out. */
_must_check_ _nonnull_ int child_run_until(char *const *argv, uint64_t deadline_usec, int cancel_fd,
                                           size_t limit, ChildResult *ret);
/* The same with stderr in the output. */
_must_check_ _nonnull_ int child_run_joined(char *const *argv, uint64_t deadline_usec, int cancel_fd,
                                            size_t limit, ChildResult *ret);
/* The same for a function in a fork of this single-threaded process: it write(2)s to STDOUT_FILENO and
 * returns the exit status. For system calls that may never return. */
_must_check_ _nonnull(1, 5) int child_call(int (*call)(void *), void *argument, uint64_t timeout_usec,
                                           size_t limit, ChildResult *ret);
