/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The slow part of a task on a thread of its own, so that the event loop goes on with everything else:
 * programs, mount(2), long writes. The thread touches nothing of the task but what stands here; it ends with
 * a value and, if that is negative, a sentence. */
#include "plan/plan.h"

typedef struct Task Task;
typedef struct Work Work;

struct Work {                           /* all of it the thread's own: a thread that
                                         * no signal reaches may outlive the run */
        const Root *root;
        const Plan *plan;       /* which stays as long as the thread */
        const Action *action;   /* of it */
        uint64_t deadline_usec; /* CLOCK_MONOTONIC; the loop's own deadline for the task */
        uint64_t waited_usec;   /* in vain, by another process of this boot: what is told counts it */
        int cancel_fd;          /* becomes readable when the task was given up */
        bool early;             /* the run phase is another process, and comes later: user scripts may be at
                                 * work, and nothing reboots under them */
        char **given;           /* what the loop told it when it began; or NULL */
        struct Job *job;        /* work.c's; NULL where a function is called without a task */
        struct Files *files;    /* files.c's; or NULL */
        struct Pruning *pruning; /* manifest.c's, from one batch of files to the next; or NULL */
        Cause cause;            /* of a failure */
        char *text;             /* its sentence */
        int turn_fd;            /* for Results.turn_fd, or 0 */
        json_t *found;          /* for Result.found: taken when the thread ends, well or not; or NULL */
        Diag warnings;          /* added to the run's own when it ends */
};

/* In the thread: */
/* Leaves a descriptor open until the last step of storage has ended, well or not. */
_nonnull_ void work_keep(Work *w, int fd);
int work_fail(Work *w, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);
/* The same; but where the action is lenient a warning with this code, and 0: for what is short, and yet the
 * work goes on. */
int work_miss(Work *w, int r, Cause cause, const char *code, const char *format, ...) _nonnull(1, 4, 5)
        _printf_(5, 6);
/* The instant, shortly before the deadline, at which a wait gives up by itself, so that its own cause and
 * what it saw last are told. */
_must_check_ _nonnull_ uint64_t work_patience(const Work *w);
/* What it is at, for the deadline's message: "waiting for udev to let go of nvme1n1". false: a thread that
 * was left to itself, which is to do nothing more. */
bool work_at(Work *w, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* What holds if the task is given up from here on, in place of what was said before: found (taken) for the
 * result, cause unless it is CAUSE_NONE for the deadline's own, and also (taken; NULL is nothing) for its
 * message. */
_nonnull(1) void work_draft(Work *w, json_t *found, Cause cause, char *also);
/* Until the task is given up, at most this long: for what can only be asked again. false: given up, so return
 * at once. */
_must_check_ _nonnull_ bool work_pause(Work *w, uint64_t usec);
/* On the console at most every 10 s of a task, what it waits for; a wait that is short says nothing. Also
 * what work_at() takes. */
void work_progress(Work *w, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* A new string vector of these words, behind which NULL stands. */
char **command(const char *word, ...) __attribute__((sentinel, warn_unused_result));
/* The same as work_run(), and takes what it prints to stdout (at most 64 KiB). */
_must_check_ _nonnull(1, 3, 4) int work_ask(Work *w, Cause cause, const char *what, char *const *argv,
                                            char **ret_output);
/* The same, and takes all that it says, on stdout and stderr (at most 1 MiB). */
_must_check_ _nonnull_ int work_hear(Work *w, Cause cause, const char *what, char *const *argv,
                                     char **ret_words);
/* Runs a program by argument vector until the deadline, at most. 0 if it ended well; else work_fail() was
 * called with `what`, the exit status and its last words. */
_must_check_ _nonnull_ int work_run(Work *w, Cause cause, const char *what, char *const *argv);
