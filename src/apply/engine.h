/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The run as a whole: for apply.c, task.c, work.c, files.c, wait-budget.c and units/, and for executors that
 * read other tasks. */
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
        sd_event *event;        /* made for the first task that needs it */
        Bus *bus;               /* of units/ */
        Job *files;             /* the current job of files.c; or NULL */
        sd_event_source *files_timer;
        bool files_swept;       /* or tried: a retry would hang on the same directory */
        bool files_announced;   /* in the manifest */
        Pruning *pruning;       /* of manifest.c, while no job has it */
        Job *jobs;              /* of work.c: abandoned jobs */
        size_t *threads_left;   /* Results.threads_left */
        int *turn_fd;           /* Results.turn_fd */
        json_t *waited;         /* of wait-budget.c; NULL: no wait failed */
        int *kept; size_t n_kept;       /* descriptors that storage steps left open */
        int progress_fd;        /* -1: not opened yet */
};

/* How a task goes on after its check; many types share one. */
typedef struct Course {
        int (*start)(Task *t);          /* work goes on in the event loop */
        char *(*waiting)(Task *t);      /* for the deadline message; a new string */
        Cause (*late)(const Task *t);   /* overdue per task; or NULL */
        void (*cancel)(Task *t);        /* deadline or signal: withdraw the request */
        void (*release)(Task *t);       /* frees data */
} Course;

/* One row for each ActionType. Files have stage() and publish() instead of check() and start(), to share one
 * wait for the disk. Both run on a thread (files.c) and may call work_fail(). A function that fails has
 * called task_fail() and returns a negative errno. */
struct Executor {
        bool host_only;                 /* skipped below another root */
        bool in_turn;                   /* one at a time, in plan order, e.g. dependent sysctls */
        bool waits;                     /* a wait or check: both phases share its time */
        Cause overdue;                  /* cause of a missed deadline; none: CAUSE_DEADLINE */
        const char *missed;             /* code of a lenient warning; NULL: the action type */
        int (*stage)(Work *w, RootTmp *ret); /* 0: unchanged, 1: staged */
        int (*publish)(Work *w, RootTmp *tmp); /* NULL: root_tmp_publish() */
        int (*check)(Task *t);          /* CHECK_*, or it has ended the task; NULL: CHECK_NEEDED */
        const Course *course;           /* NULL: check() does all */
        int (*work)(Work *w);           /* on its own thread: work.h */
        char **(*given)(const Task *t); /* becomes Work.given; or NULL */
};

extern const Executor executors[_ACTION_MAX];
_must_check_ _nonnull_ int apply_with(const Executor *table, const Root *root, const Plan *plan, Results *ret,
                                      Diag *diag);

/* task.c */
_must_check_ _nonnull_ uint64_t task_limit(const Task *t);        /* in µs */
/* Have all dependencies ended as required? taken_too: a file may be staged with its dependencies, as
 * publishing keeps the order. */
_must_check_ _nonnull_ bool task_ready(const Task *t, bool taken_too);
_malloc_ _nonnull_ char *task_broken_text(const Action *before);
_must_check_ _nonnull_ bool task_skip_if_broken(Task *t);
/* Starts the deadline, unless it counts from the end of another task. */
_must_check_ _nonnull_ int task_arm(Task *t);
/* Makes a task and a result for each action of a->plan. < 0: the plan is wrong, and the diag says why.
 * tasks_done() frees the tasks in any case. */
_must_check_ _nonnull_ int tasks_make(Apply *a, Results *results);
_nonnull_ void tasks_done(Apply *a);
/* Frees what ended tasks hold, and starts deadlines that count from their end. Call it where no task code is
 * on the stack. */
_nonnull_ void tasks_release(Apply *a);

_must_check_ _nonnull_ int apply_event(Apply *a, sd_event **ret);
/* Records a pending stop signal in a->interrupted. For waits outside of the event loop. */
_nonnull_ int apply_stopping(Apply *a);
_must_check_ _nonnull_ bool task_in_flight(const Task *t);

/* wait-budget.c */
/* Records for the run phase how long the devices phase waited in vain. */
_nonnull_ void waited_write(const Root *root, const Plan *plan, const Results *results);
_nonnull_ void waited_take(Apply *a);
/* Shortens the deadline by that time, unless something has changed since. */
_nonnull_ void waited_grant(Task *t);

/* files.c */
/* Collects written files and starts a job for ready ones; true: there were any. One job runs at a time. */
_must_check_ _nonnull_ bool files_apply(Apply *a);
_nonnull_ void files_stop(Apply *a);

/* work.c: jobs without a task */
/* Runs function on a thread, or here if there is none, with files and a->pruning, which done frees. */
_must_check_ _nonnull_ int job_start(Apply *a, const Action *first, Files *files, int (*function)(Work *w),
                                     void (*done)(Work *w), Job **ret);
/* Waits until that instant; true: it has ended, and its Work belongs to the caller. */
_must_check_ _nonnull_ bool job_ended(Job *j, uint64_t instant);
_must_check_ _nonnull_ Work *job_work(Job *j);
_must_check_ _nonnull_ char *job_at(Job *j, const Action **ret);
/* Leaves the job to its thread, which frees it; work_at() is false there from then on. false: it has just
 * ended. */
_must_check_ _nonnull_ bool job_leave(Job *j, Apply *a);
Job *job_free(Job *j);
_nonnull_ void work_wait(Apply *a);
