/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tasks of the loop. Threads need only work.h. */
#include "apply/apply.h"
#include "apply/work.h"

#include <systemd/sd-event.h>

typedef struct Apply Apply;
typedef struct Executor Executor;

typedef enum TaskState {
        TASK_PENDING,           /* waits for others */
        TASK_TAKEN,             /* a file of the current files.c job */
        TASK_RUNNING,           /* will call task_end(), task_watch() or task_fail() from the event loop */
        TASK_WATCHED,           /* done for dependents, still monitored */
        TASK_ENDED,
} TaskState;

struct Task {
        Apply *apply;
        const Action *action;
        const Executor *executor;
        Result *result;
        Task **after; size_t n_after;
        Task **after_any; size_t n_after_any;   /* any outcome */
        TaskState state;
        bool satisfied;         /* dependents may begin */
        bool released;          /* its resources, after its end */
        bool lasts;             /* watched only until all others end */
        enum { TOLD_NOTHING, TOLD_BEGUN, TOLD_OVER } told;      /* in the progress file */
        sd_event_source *deadline;
        uint64_t limit_usec;    /* instead of the action deadline; 0: none */
        uint64_t waited_usec;   /* in vain, by another process of this boot */
        void *data;             /* of the executor */
};

/* LATER: task_checked() will be called */
enum { CHECK_DONE_ALREADY = 0, CHECK_NEEDED = 1, CHECK_LATER = 2 };

/* Takes over why. satisfied: dependents continue. */
_nonnull_ void task_skip(Task *t, char *why, bool satisfied);
_nonnull_ void task_checked(Task *t, bool needed);
/* The first of task_end() and task_fail() counts. Data of the task stays until the callback returns. */
_nonnull_ void task_end(Task *t, Outcome outcome);
_nonnull_ void task_watch(Task *t);
/* Fails the task, or only warns if the action is lenient and the run was not interrupted; returns r. The
 * first line must be sufficient. */
int task_fail(Task *t, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);

/* Starts function on a thread; its end ends the task: > 0 done, 0 unchanged, < 0 failed by work_fail(). A
 * deadline or signal ends the task at once and kills programs of the thread. 0, or the task has failed.
 * given: Work.given or NULL; taken over. */
_must_check_ _nonnull(1, 2) int work_start(Task *t, int (*function)(Work *w), char **given);
/* For Executor, also before work_start(). */
_malloc_ _nonnull_ char *work_waiting(Task *t);
_nonnull_ Cause work_late(const Task *t);
_nonnull_ void work_cancel(Task *t);
_nonnull_ void work_release(Task *t);
