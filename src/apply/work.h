/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The slow part of a task on a thread of its own, so that the event loop goes on with everything else: programs, mount(2), long
 * writes. The thread touches nothing of the task but what stands here; it ends with a value and, if that is negative, a sentence. */
#include "apply/executor.h"

typedef struct Work {                   /* all of it the thread's own: a thread that no signal reaches may outlive the plan */
        const Root *root;
        const Action *action;           /* a copy of what the storage executors need: id, type, target, with, storage.* */
        uint64_t deadline_usec;         /* CLOCK_MONOTONIC; the loop's own deadline for the task */
        int cancel_fd;                  /* becomes readable when the task was given up */
        struct Job *job;                /* work.c's; NULL where a function is called without a task */
        Cause cause;                    /* of a failure */
        char *text;                     /* its sentence */
        Diag warnings;                  /* of one that went well */
} Work;

/* Starts function on a thread; the task ends when it returns: > 0 done, 0 unchanged, < 0 failed with what work_fail() said. On a
 * deadline or a signal the task is over at once and programs of the thread are killed. 0, or the task has failed. */
_must_check_ _nonnull_ int work_start(Task *t, int (*function)(Work *w));
/* For Executor.waiting, .cancel and .release of tasks that work_start() was called for, or would have been. */
_malloc_ _nonnull_ char *work_waiting(Task *t);
_nonnull_ void work_cancel(Task *t);
_nonnull_ void work_release(Task *t);
/* At the end of the run: waits for the threads of tasks that were given up, but not for one that the kernel keeps; see work.c. */
_nonnull_ void work_wait(Apply *a);

/* In the thread: */
/* Leaves a descriptor open until the last step of storage has ended, well or not. */
_nonnull_ void work_keep(Work *w, int fd);
int work_fail(Work *w, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);
/* What it is at, for the deadline's message: "waiting for udev to let go of nvme1n1". */
void work_at(Work *w, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* Runs a program by argument vector until the deadline, at most. 0 if it ended well; else work_fail() was called with `what`,
 * the exit status and its last words. */
_must_check_ _nonnull_ int work_run(Work *w, Cause cause, const char *what, char *const *argv);
