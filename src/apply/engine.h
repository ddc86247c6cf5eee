/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The run as a whole, for those who work for all tasks: apply.c, task.c, work.c, files.c, wait-budget.c,
 * units/. A few executors, too, look at other tasks than their own. */
#include "apply/task.h"

typedef struct Bus Bus;
typedef struct Job Job;
typedef struct Files Files;
typedef struct Pruning Pruning;

struct Apply {
        const Executor *executors;      /* by ActionType */
        const Root *root;
        const Plan *plan;
        Diag *diag;
        Task *tasks; size_t n;
        size_t in_flight;       /* RUNNING or WATCHED */
        int interrupted;        /* the signal, or 0 */
        sd_event *event;        /* made when the first task needs it */
        Bus *bus;               /* of units/ */
        Job *files;             /* files.c's, that writes some; or NULL */
        sd_event_source *files_timer;
        bool files_swept;       /* or tried: not again, it would hang at the same directory */
        bool files_announced;   /* in the manifest */
        Pruning *pruning;       /* manifest.c's, while no job has it */
        Job *jobs;              /* work.c's: of tasks that were given up */
        size_t *threads_left;   /* Results.threads_left */
        int *turn_fd;           /* Results.turn_fd */
        json_t *waited;         /* of wait-budget.c; NULL: each wait has ended well */
        int *kept; size_t n_kept;       /* work.c's: descriptors that steps of storage have left open */
        int progress_fd;        /* -1: not opened yet */
};

/* One row for each ActionType. Files have stage() and publish() in place of check() and start(): those that
 * are ready together share one wait for the disk. Both run on a thread (files.c), may call work_fail(), and
 * are else said to have written nothing. A function that fails has called task_fail() and returns a negative
 * errno. */
struct Executor {
        bool host_only;                 /* skipped where the root is not the running system's */
        bool in_turn;                   /* one at a time, in the plan's order: one setting changes what
                                         * another shows */
        bool waits;                     /* or looks, or asks the kernel for the same again: the phases of a
                                         * boot share its time */
        Cause overdue;                  /* of a deadline that has passed; none: CAUSE_DEADLINE */
        const char *missed;             /* the code of a warning in place of a failure; NULL: the action's
                                         * type */
        int (*stage)(Work *w, RootTmp *ret); /* 0: is so already, 1: staged */
        int (*publish)(Work *w, RootTmp *tmp); /* NULL: root_tmp_publish() */
        int (*check)(Task *t);          /* CHECK_*, or it has ended the task; NULL: CHECK_NEEDED */
        int (*start)(Task *t);          /* work goes on in the event loop */
        int (*work)(Work *w);           /* or on a thread of its own: work.h */
        char **(*given)(const Task *t); /* for that, as Work.given; or NULL */
        char *(*waiting)(Task *t);      /* what it waits for, for the deadline's message; a new string */
        Cause (*late)(const Task *t);   /* the same where it depends on the task; or NULL */
        void (*cancel)(Task *t);        /* deadline or signal: withdraw what was asked for */
        void (*release)(Task *t);       /* frees data */
};

/* table.c */
extern const Executor executors[_ACTION_MAX];
/* apply.c: apply_plan() with these. */
_must_check_ _nonnull_ int apply_with(const Executor *table, const Root *root, const Plan *plan, Results *ret,
                                      Diag *diag);

/* task.c */
/* How long it may take, in µs. */
_must_check_ _nonnull_ uint64_t task_limit(const Task *t);
/* Has all that it comes after ended as it must? taken_too: a file may be prepared together with those it
 * comes after, since publishing keeps the order. */
_must_check_ _nonnull_ bool task_ready(const Task *t, bool taken_too);
/* The sentence of a task that is skipped because this one, before it, did not end well. */
_malloc_ _nonnull_ char *task_broken_text(const Action *before);
/* Ends it where something that it comes after did not end well: true. */
_must_check_ _nonnull_ bool task_skip_if_broken(Task *t);
/* Its time begins, unless that counts from the end of another one. */
_must_check_ _nonnull_ int task_arm(Task *t);
/* Makes a task of each action of a->plan and a result for each of them; < 0 where the plan is wrong, and the
 * diag has why. tasks_done() ends and frees the tasks, also then. */
_must_check_ _nonnull_ int tasks_make(Apply *a, Results *results);
_nonnull_ void tasks_done(Apply *a);
/* Frees what tasks that have ended hold, and begins the time of those whose time counts from their end. For
 * the top of the loop: nothing of a task is at work there. */
_nonnull_ void tasks_release(Apply *a);

/* the loop, made when first asked for */
_must_check_ _nonnull_ int apply_event(Apply *a, sd_event **ret);
/* Takes a signal that asks to stop, if one came: a->interrupted. For who waits outside of the event loop. */
_nonnull_ int apply_stopping(Apply *a);
/* Running or watched? */
_must_check_ _nonnull_ bool task_in_flight(const Task *t);

/* wait-budget.c */
/* For the run phase, what the devices phase waited for in vain; nothing where the run phase is this process's
 * as well. */
_nonnull_ void waited_write(const Root *root, const Plan *plan, const Results *results);
/* Takes what such a process has left, once it is over. */
_nonnull_ void waited_take(Apply *a);
/* A task that begins: no more than its time less what was waited, unless something has changed since. */
_nonnull_ void waited_grant(Task *t);

/* files.c */
/* Takes what has become of the files that were written, and begins to write those that are ready: true where
 * there were any. One job writes at a time, and is given up at its deadline. */
_must_check_ _nonnull_ bool files_apply(Apply *a);
/* Waits a moment for the job that is at work, and gives it up. */
_nonnull_ void files_stop(Apply *a);

/* work.c: jobs that are no task's */
/* Starts function on a thread, for first to begin with; the Work has files and a->pruning, which done frees
 * with the job. Without a thread it is done here. */
_must_check_ _nonnull_ int job_start(Apply *a, const Action *first, Files *files, int (*function)(Work *w),
                                     void (*done)(Work *w), Job **ret);
/* Has it ended? Waits until that instant. Its Work is the caller's then. */
_must_check_ _nonnull_ bool job_ended(Job *j, uint64_t instant);
_must_check_ _nonnull_ Work *job_work(Job *j);
/* Its last word by work_at(), and about which action. */
_must_check_ _nonnull_ char *job_at(Job *j, const Action **ret);
/* Leaves it to its thread, which frees it: work_at() is false there from then on. false: it has ended just
 * now. */
_must_check_ _nonnull_ bool job_leave(Job *j, Apply *a);
Job *job_free(Job *j);
/* At the end of the run: waits for the threads of tasks that were given up, but not for one that the kernel
 * keeps; see work.c. */
_nonnull_ void work_wait(Apply *a);
