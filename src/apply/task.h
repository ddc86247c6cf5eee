/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An action that is carried out, for those who begin and end it in the loop. A thread needs work.h alone. */
#include "apply/apply.h"
#include "apply/work.h"

#include <systemd/sd-event.h>

typedef struct Apply Apply;
typedef struct Executor Executor;

typedef enum TaskState {
        TASK_PENDING,           /* waits for others */
        TASK_TAKEN,             /* a file that the job of files.c is to write, or is writing */
        TASK_RUNNING,           /* will call task_end(), task_watch() or task_fail() from the event loop */
        TASK_WATCHED,           /* well so far, dependents may go on; still looked at */
        TASK_ENDED,
} TaskState;

struct Task {
        Apply *apply;
        const Action *action;
        const Executor *executor;
        Result *result;
        Task **after; size_t n_after;
        Task **after_any; size_t n_after_any;   /* must have ended, however */
        TaskState state;
        bool satisfied;         /* those that wait for it may begin */
        bool released;          /* what it held, after its end */
        bool lasts;             /* watched, and no longer than others are at work */
        enum { TOLD_NOTHING, TOLD_BEGUN, TOLD_OVER } told;      /* to who looks on */
        sd_event_source *deadline;
        uint64_t limit_usec;    /* in place of the action's; 0: none */
        uint64_t waited_usec;   /* in vain, by another process of this boot */
        void *data;             /* the executor's own */
};

/* LATER: task_checked() will be called */
enum { CHECK_DONE_ALREADY = 0, CHECK_NEEDED = 1, CHECK_LATER = 2 };

/* Ends it as skipped; it keeps why. satisfied: what comes after it goes on. */
_nonnull_ void task_skip(Task *t, char *why, bool satisfied);
_nonnull_ void task_checked(Task *t, bool needed);
/* This and task_fail() set the outcome and nothing else. The first of them counts. All that the task holds is
 * there until the callback has returned. */
_nonnull_ void task_end(Task *t, Outcome outcome);
/* done as far as dependents are concerned */
_nonnull_ void task_watch(Task *t);
/* Ends it as failed, or where the action is lenient with a warning, unless it was interrupted; returns r in
 * any case. The text may have further lines behind the first, which must say all that matters. */
int task_fail(Task *t, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);

/* work.c */
/* Starts function on a thread; the task ends when it returns: > 0 done, 0 unchanged, < 0 failed with what
 * work_fail() said. On a deadline or a signal the task is over at once and programs of the thread are killed.
 * 0, or the task has failed. given: for Work.given, words that only the loop knows; or NULL. It takes over
 * the vector and frees it. */
_must_check_ _nonnull(1, 2) int work_start(Task *t, int (*function)(Work *w), char **given);
/* For Executor.waiting, .cancel and .release of tasks that work_start() was called for, or would have
 * been. */
_malloc_ _nonnull_ char *work_waiting(Task *t);
/* For Executor.late: the cause of work_draft(), or the action's. */
_nonnull_ Cause work_late(const Task *t);
_nonnull_ void work_cancel(Task *t);
_nonnull_ void work_release(Task *t);
