/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the loop (apply.c) and the executors (file.c, manifest.c, unit.c, storage.h's, device.h's) of this
 * folder share; nobody else includes it. */
#include "apply/apply.h"
#include "base/journal.h"

#include <systemd/sd-event.h>

typedef struct Apply Apply;
typedef struct Task Task;
typedef struct Bus Bus;
typedef struct Job Job;
typedef struct Work Work;
typedef struct Files Files;
typedef struct Pruning Pruning;

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
        Result *result;
        Task **after; size_t n_after;
        Task **after_any; size_t n_after_any;   /* must have ended, however */
        TaskState state;
        bool satisfied;         /* those that wait for it may begin */
        bool released;          /* what it held, after its end */
        bool lasts;             /* watched, and no longer than others are at work */
        enum { TOLD_NOTHING, TOLD_BEGUN, TOLD_OVER } told;      /* progress.c: to who looks on */
        sd_event_source *deadline;
        uint64_t limit_usec;    /* in place of the action's; 0: none */
        uint64_t waited_usec;   /* in vain, by another process of this boot */
        void *data;             /* the executor's own */
};

struct Apply {
        const Root *root;
        const Plan *plan;
        Diag *diag;
        Task *tasks; size_t n;
        size_t in_flight;       /* RUNNING or WATCHED */
        int interrupted;        /* the signal, or 0 */
        sd_event *event;        /* made when the first task needs it */
        Bus *bus;               /* unit.c's */
        Job *files;             /* files.c's, that writes some; or NULL */
        sd_event_source *files_timer;
        bool files_begun;       /* what comes before the first of them was done */
        bool files_lost;        /* a disk has kept a job */
        Pruning *pruning;       /* manifest.c's, while no job has it */
        Job *jobs;              /* work.c's: of tasks that were given up */
        size_t *threads_left;   /* Results.threads_left */
        int *turn_fd;           /* Results.turn_fd */
        json_t *waited;         /* waited.c's; NULL: nobody has waited in vain */
        int *kept; size_t n_kept;       /* work.c's: descriptors that steps of storage have left open */
        int progress_fd;        /* progress.c's; -1: not opened yet */
};

/* LATER: task_checked() will be called */
enum { CHECK_DONE_ALREADY = 0, CHECK_NEEDED = 1, CHECK_LATER = 2 };

/* One row for each ActionType. Files have stage() and publish() in place of check() and start(): those that
 * are ready together share one wait for the disk. Both run on a thread (files.c), may call work_fail(), and
 * are else said to have written nothing. A function that fails has called task_fail() and returns a negative
 * errno. */
typedef struct Executor {
        bool host_only;                                 /* skipped where the root is
                                                         * not the running system's */
        bool in_turn;                                   /* one at a time, in the plan's order: one
                                                         * setting changes what another shows */
        bool waits;                                     /* or looks, or asks the kernel for the same
                                                         * again: the phases of a boot share its time */
        Cause overdue;                                  /* of a deadline that has passed;
                                                         * none: CAUSE_DEADLINE */
        const char *missed;                             /* the code of a warning in place of a
                                                         * failure; NULL: the action's type */
        int (*stage)(Work *w, RootTmp *ret);            /* 0: is so already, 1: staged */
        int (*publish)(Work *w, RootTmp *tmp);          /* NULL: root_tmp_publish() */
        int (*check)(Task *t);                          /* CHECK_*, or it has ended the task */
        int (*start)(Task *t);                          /* work goes on in the event loop */
        int (*work)(Work *w);                           /* or on a thread of its own: work.h */
        char *(*waiting)(Task *t);                      /* what it waits for, for the
                                                         * deadline's message; a new string */
        Cause (*late)(const Task *t);                   /* the same where it depends on the task; or NULL */
        void (*cancel)(Task *t);                        /* deadline or signal: withdraw what was asked for */
        void (*release)(Task *t);                       /* frees data */
} Executor;

_must_check_ _nonnull_ const Executor *task_executor(const Task *t);
/* How long it may take, in µs. */
_must_check_ _nonnull_ uint64_t task_limit(const Task *t);
/* Has all that it comes after ended as it must? taken_too: a file may be prepared together with those it
 * comes after, since publishing keeps the order. */
_must_check_ _nonnull_ bool task_ready(const Task *t, bool taken_too);
/* What is said of one that is skipped as what comes before it did not end well. */
_malloc_ _nonnull_ char *task_broken_text(const Action *before);
/* Ends it as skipped; it keeps why. satisfied: what comes after it goes on. */
_nonnull_ void task_skip(Task *t, char *why, bool satisfied);
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
_nonnull_ void task_checked(Task *t, bool needed);
/* Running or watched? */
_must_check_ _nonnull_ bool task_in_flight(const Task *t);
/* This and task_fail() set what has become of it, and nothing else: the first of them counts, and what the
 * task holds is there until the callback has returned. */
_nonnull_ void task_end(Task *t, Outcome outcome);
/* done as far as dependents are concerned */
_nonnull_ void task_watch(Task *t);
/* Ends it as failed, or where the action is lenient with a warning, unless it was interrupted; returns r in
 * any case. The text may have further lines behind the first, which must say all that matters. */
int task_fail(Task *t, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);

/* progress.c */
/* What has begun or ended since the last time. */
_nonnull_ void progress_tell(Apply *a);

/* waited.c */
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
/* What it said last by work_at(), and about which action. */
_must_check_ _nonnull_ char *job_at(Job *j, const Action **ret);
/* Leaves it to its thread, which frees it: work_at() is false there from then on. false: it has ended just
 * now. */
_must_check_ _nonnull_ bool job_leave(Job *j, Apply *a);
Job *job_free(Job *j);

/* file.c */
_must_check_ _nonnull_ int file_stage(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int file_publish(Work *w, RootTmp *tmp);
_must_check_ _nonnull_ int block_stage(Work *w, RootTmp *ret);
/* Notes that systemd must reload, if it is one of the files that it reads; call it before the file is written
 * or removed. */
_must_check_ _nonnull_ int manager_expect(const Root *root, const char *path);
/* "/etc/hosts cannot be edited: …; what to do": path is left out where it is the action's own. */
_malloc_ _nonnull_ char *file_failure(const Root *root, const Action *a, int r, const char *verb,
                                      const char *path);
/* Fails with that sentence and CAUSE_FILE; returns r. */
_nonnull_ int file_fail(Work *w, int r, const char *verb, const char *path);
_nonnull_ int task_fail_file(Task *t, int r, const char *verb, const char *path);
/* old (may be empty) with content between our markers: in the place of the old block, at the end where there
 * is none; empty content: without a block. The rest stays byte for byte. */
_malloc_ _nonnull_ char *block_merge(const char *old, size_t old_size, const char *content, size_t *ret_size);
/* A file as it is, and as it is to be with that block; without one it is NULL, and fd is negative. */
typedef struct Block { int fd; char *old, *new; size_t old_size, new_size; } Block;
void block_done(Block *b);
_must_check_ _nonnull_ int block_read(const Root *root, const char *path, const char *content, Block *ret);
/* The same for the file at path: 0 nothing to do, 1 staged. Shared with the manifest, which takes blocks
 * away. */
_must_check_ _nonnull_ int block_prepare(const Root *root, const char *path, const char *content,
                                         RootTmp *ret);

/* manifest.c */
/* The manifest with all that this plan is about to write: 1 staged, 0 if it is listed already. Publish it
 * before the first file. */
_must_check_ _nonnull_ int manifest_announce(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int manifest_stage(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int manifest_publish(Work *w, RootTmp *tmp);
Pruning *pruning_free(Pruning *p);
/* What prune-files would find: how the manifest differs, as root_compare() says it, and the files that would
 * be removed, added to *ret_stale; -EBADMSG where there is something else in its place. */
_must_check_ _nonnull_ int manifest_look(const Root *root, const Plan *plan, const Action *a,
                                         char ***ret_stale);

/* networkd.c */
_must_check_ _nonnull_ int remove_check(Task *t);       /* these two do what they find missing */
_must_check_ _nonnull_ int link_check(Task *t);
_must_check_ _nonnull_ int networkd_check(Task *t);
_must_check_ _nonnull_ int networkd_start(Task *t);

/* What a unit was last started with stands in a file of its name. */
#define STARTED_DIR RUN_DIR "/started"
/* There from before a file that systemd reads is changed until it has read it: a run that ends in between
 * leaves it to the next. */
#define RELOAD_WANTED RUN_DIR "/reload-wanted"

/* unit.c */
_must_check_ _nonnull_ int unit_check(Task *t);
_must_check_ _nonnull_ int unit_start(Task *t);
/* Was it started last with what the files that it reads are now? 1, 0, or -ENOENT: not in this boot. */
_must_check_ _nonnull_ int unit_record(const Root *root, const Action *a);
_must_check_ _nonnull_ bool unit_reads_nothing(const Action *a);
_must_check_ _nonnull_ int reload_check(Task *t);
_must_check_ _nonnull_ int reload_start(Task *t);
_must_check_ _nonnull_ int mask_check(Task *t);         /* mask.c */
_must_check_ _nonnull_ int mask_start(Task *t);
_must_check_ _nonnull_ int await_check(Task *t);        /* await.c */
_must_check_ _nonnull_ int await_start(Task *t);
_must_check_ _nonnull_ int alive_check(Task *t);        /* alive.c */
_must_check_ _nonnull_ int alive_start(Task *t);
_malloc_ _nonnull_ char *alive_waiting(Task *t);
_malloc_ _nonnull_ char *unit_waiting(Task *t);
_nonnull_ Cause unit_late(const Task *t);
_nonnull_ void unit_cancel(Task *t);
_nonnull_ void unit_release(Task *t);
Bus *bus_free(Bus *b);
