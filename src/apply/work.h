/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Slow parts of a task run on a thread, so the loop goes on: programs, mount(2), long writes. The thread may
 * use only what is here, and ends with a value and a message for negative ones. */
#include "plan/plan.h"

typedef struct Task Task;
typedef struct Work Work;
typedef int TaskFunction(Task *t);
typedef int WorkFunction(Work *w);      /* > 0 done, 0 unchanged, < 0 after work_fail() */

struct Work {                           /* owned by the thread, which may outlive the run */
        const Root *root;
        const Plan *plan;       /* referenced by the job */
        const Action *action;   /* of it */
        uint64_t deadline_usec; /* CLOCK_MONOTONIC; of the task in the loop */
        uint64_t waited_usec;   /* in vain by another process of this boot, for messages */
        int cancel_fd;          /* readable when the task is cancelled */
        bool early;             /* the run phase is a later process, user scripts may run now: no reboots */
        char **given;           /* words from the loop; or NULL */
        struct Job *job;        /* of work.c; NULL without a task */
        struct Files *files;    /* of files.c; or NULL */
        struct Pruning *pruning; /* of manifest.c, over all batches; or NULL */
        Cause cause;            /* of a failure */
        char *text;             /* its message, or */
        bool skips;             /* the reason to skip this action and its dependents */
        int turn_fd;            /* for Results.turn_fd, or 0 */
        json_t *found;          /* for Result.found, also after a failure; or NULL */
        Diag warnings;          /* added to the diag of the run */
};

/* Keeps a descriptor open until the last storage step has ended. */
_nonnull_ void work_keep(Work *w, int fd);
/* Sets cause and text, in which %m is the error; returns r. */
int work_fail(Work *w, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);
/* The same; a lenient action gets a warning with this code instead, and 0. */
int work_miss(Work *w, int r, Cause cause, const char *code, const char *format, ...) _nonnull(1, 4, 5)
        _printf_(5, 6);
/* Shortly before the deadline: waits end here themselves, to report what they saw. */
_must_check_ _nonnull_ uint64_t work_patience(const Work *w);
/* Current work, for the deadline message: "waiting for udev to release nvme1n1". false: abandoned; do
 * nothing more. */
bool work_at(Work *w, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* Result if the task is cancelled from here on: found and also (both taken) for result and message, and the
 * cause unless it is CAUSE_NONE. */
_nonnull(1) void work_draft(Work *w, json_t *found, Cause cause, char *also);
/* Waits; false: cancelled, return at once. */
_must_check_ _nonnull_ bool work_pause(Work *w, uint64_t usec);
/* work_at(), and a log message every 10 s per task. */
void work_progress(Work *w, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* A new string vector. */
char **command(const char *word, ...) __attribute__((sentinel, warn_unused_result));
/* work_run() that returns stdout (at most 64 KiB). */
_must_check_ _nonnull(1, 3, 4) int work_ask(Work *w, Cause cause, const char *what, char *const *argv,
                                            char **ret_output);
/* The same with stdout and stderr (at most 1 MiB). */
_must_check_ _nonnull_ int work_hear(Work *w, Cause cause, const char *what, char *const *argv,
                                     char **ret_words);
/* Runs a program until the deadline. 0: success; else work_fail() was called with what, the status and its
 * last words. */
_must_check_ _nonnull_ int work_run(Work *w, Cause cause, const char *what, char *const *argv);
