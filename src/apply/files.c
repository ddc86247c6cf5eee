/* SPDX-License-Identifier: Apache-2.0
 * Files that are ready together → staged, synced and published together, on a thread that the loop waits
 * for until their deadline and no longer: a disk that hangs keeps the thread, and the run goes on without it.
 *
 * The thread has a Root, tasks and results of its own, made from the same plan. When it ends in time, the
 * loop takes over what has become of them. A thread that was given up ends what it has in hand, should it
 * come back after all, which may be one more rename or removal, and begins no other. It touches only what is
 * its own and the plan, which it holds, and frees what is its own. */
#include "apply/executor.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define BATCH_MAX 64            /* two descriptors and a thread each */
/* So often it is told what the files wait for. A stop waits as long, and is then looked for so often. */
#define TELL_USEC (10 * USEC_PER_SEC)
#define LOOK_USEC USEC_PER_SEC

enum { FILES_IN_TIME, FILES_ENDED, FILES_GIVEN_UP };

struct Files {
        Apply apply;            /* the thread's: its root, tasks, diag */
        Root *root;
        Plan *plan;
        Results results;
        Diag diag;
        Task announcement;      /* the manifest that also lists the files about to be written; published
                                 * before the first of them */
        bool sweeps, announces; /* still to be done, before the first batch */
        atomic_int state;       /* FILES_* */
        _Atomic(const Action *) at;     /* what the thread has in hand */
        _Atomic(const char *) doing;    /* and what it does with it */
};

Files *files_free(Files *f) {
        if (!f)
                return NULL;
        tasks_done(&f->apply);
        root_tmp_release(&f->announcement.tmp);
        results_done(&f->results);
        diag_done(&f->diag);
        root_free(f->root);
        plan_free(f->plan);
        free(f);
        return NULL;
}

static int files_new(const Apply *a, Files **ret) {
        Files *f = xcalloc(1, sizeof *f);
        *f = (Files){ .plan = plan_ref(a->plan),
                      .sweeps = !a->files_lost,         /* not again: it would hang at the same directory */
                      .announces = true,
                      .announcement.tmp = { .dir_fd = -1, .fd = -1 } };
        int r = root_new(root_path(a->root), &f->root);
        if (r >= 0) {
                f->apply = (Apply){ .root = f->root, .plan = f->plan, .diag = &f->diag, .files = f };
                r = tasks_make(&f->apply, &f->results);
        }
        if (r < 0)
                files_free(f);
        else
                *ret = f;
        return r;
}

/* ---- in the thread ---- */

/* Notes what comes next, for the deadline's message. false: the thread was given up, do nothing more. */
static bool files_at(Files *f, const Action *at, const char *doing) {
        atomic_store(&f->doing, doing);
        atomic_store(&f->at, at);
        return atomic_load(&f->state) != FILES_GIVEN_UP;
}

bool file_at(const Task *t, const char *doing) {
        return files_at(t->apply->files, t->action, doing);
}

/* Before anything is staged; under the lock no other run can be staging. Those of the devices' phase may be
 * another's until it is our turn, so until they are taken. A failure to look is told by staging itself. */
static void sweep(Files *f, bool first) {
        for (size_t i = 0; i < f->apply.n; i++) {
                const Task *t = &f->apply.tasks[i];
                bool devices = t->action->phase == PHASE_DEVICES;
                if (task_executor(t)->stage && (devices ? t->state == TASK_TAKEN : first) &&
                    files_at(f, t->action, "looking for what an earlier run has left beside it") &&
                    root_tmp_sweep(f->root, t->action->target) > 0)
                        log_debug("%s: removed what a run that was killed had left beside it",
                                  t->action->target);
        }
}

static void announcement_stage(Files *f) {
        for (size_t i = 0; i < f->apply.n; i++) {
                Task *t = &f->apply.tasks[i];
                /* ended: with another thread, which its disk has kept */
                if (t->action->type != ACTION_PRUNE_FILES || t->state == TASK_ENDED ||
                    !files_at(f, t->action, "adding to it the files that are about to be written"))
                        continue;
                f->announcement.action = t->action;
                if (manifest_announce(t, &f->announcement.tmp) > 0)
                        f->announcement.state = TASK_STAGED;
        }
}

/* Without a word where it fails: prune-files writes the same file, and its failure is told. */
static void announce(Files *f) {
        Task *t = &f->announcement;
        int r = t->state == TASK_STAGED ? t->synced : 0;
        if (t->state == TASK_STAGED && r >= 0 && files_at(f, t->action, "putting it in its place"))
                r = root_tmp_publish(&t->tmp);
        if (r < 0)
                log_debug("the files to be written could not be announced: %s", strerror(-r));
        t->state = TASK_ENDED;
        root_tmp_release(&t->tmp);
}

static void task_stage(Task *t) {
        t->result->begin_usec = now_usec();
        int r = task_executor(t)->stage(t, &t->tmp);
        if (r == 0)
                task_end(t, OUTCOME_UNCHANGED);
        else if (r > 0)
                t->state = TASK_STAGED;
}

static void *task_sync(void *userdata) {
        Task *t = userdata;
        t->synced = root_tmp_sync(&t->tmp);
        return NULL;
}

/* What is so already takes no place. */
static size_t batch_stage(Files *f) {
        size_t staged = 0;
        for (size_t i = 0; i < f->apply.n && staged < BATCH_MAX; i++) {
                Task *t = &f->apply.tasks[i];
                if (t->state != TASK_TAKEN || task_skip_if_broken(t) ||
                    !files_at(f, t->action, "writing its new content beside it"))
                        continue;
                task_stage(t);
                staged += t->state == TASK_STAGED;
        }
        return staged;
}

/* All at once, a thread for each: a disk answers ten flushes that wait together as fast as one, and each
 * after the other only in ten times that. One syncfs() would be a little faster still, but it waits for all
 * that others have written, which at boot has no bound. */
static void batch_sync(Files *f) {
        static const char doing[] = "waiting for the disk to keep its new content";
        struct { Task *task; pthread_t thread; } syncs[BATCH_MAX + 1];
        size_t n = 0;
        for (size_t i = 0; i <= f->apply.n; i++) {
                Task *t = i < f->apply.n ? &f->apply.tasks[i] : &f->announcement;
                if (t->state != TASK_STAGED)
                        continue;
                assert(n < ARRAY_SIZE(syncs));
                syncs[n].task = t;
                /* the first one is this thread's own */
                if (n > 0 && pthread_create(&syncs[n].thread, NULL, task_sync, t) != 0)
                        task_sync(t);
                else
                        n++;
        }
        if (n > 0 && files_at(f, syncs[0].task->action, doing))
                task_sync(syncs[0].task);
        while (n-- > 1) {
                (void)files_at(f, syncs[n].task->action, doing);
                pthread_join(syncs[n].thread, NULL);
        }
        for (size_t i = 0; i < f->apply.n; i++) {
                Task *t = &f->apply.tasks[i];
                if (t->state == TASK_STAGED && t->synced < 0)
                        (void)file_fail(t, t->synced, "written", t->action->target);
        }
}

/* The files of the configuration belong together: half of them new and half old is what nobody asked for. So
 * none is renamed into its place while one of them cannot be prepared. */
static void batch_withhold(Apply *a) {
        const Task *failed = NULL;
        for (size_t i = 0; i < a->n && !failed; i++)
                if (a->tasks[i].result->outcome == OUTCOME_FAILED &&
                    a->tasks[i].action->phase == PHASE_CONFIG && task_executor(&a->tasks[i])->stage)
                        failed = &a->tasks[i];
        for (size_t i = 0; i < a->n && failed; i++)
                if (a->tasks[i].state == TASK_STAGED && a->tasks[i].action->phase == PHASE_CONFIG)
                        task_skip(&a->tasks[i],
                                  xasprintf("left as it was: the configuration is written whole or not at "
                                            "all, and %s failed",
                                            failed->action->id),
                                  false);
}

static void task_publish(Task *t) {
        const Executor *e = task_executor(t);
        if (task_skip_if_broken(t))
                return;
        int r = e->publish ? e->publish(t) : root_tmp_publish(&t->tmp);
        if (t->state == TASK_ENDED)             /* it failed and said why */
                return;
        if (r < 0)
                (void)file_fail(t, r, "written", t->action->target);
        else
                task_end(t, OUTCOME_DONE);
}

static void batch_write(Files *f) {
        sweep(f, f->sweeps);
        if (f->announces)
                announcement_stage(f);
        f->sweeps = f->announces = false;
        if (batch_stage(f) == 0)
                return;
        batch_sync(f);
        announce(f);
        batch_withhold(&f->apply);
        for (size_t i = 0; i < f->apply.n; i++) {
                Task *t = &f->apply.tasks[i];
                if (t->state == TASK_STAGED && files_at(f, t->action, "putting it in its place"))
                        task_publish(t);
        }
        tasks_release(&f->apply);
}

static void *files_run(void *userdata) {
        Files *f = userdata;
        batch_write(f);
        if (atomic_exchange(&f->state, FILES_ENDED) == FILES_GIVEN_UP)
                files_free(f);
        return NULL;
}

/* ---- in the loop ---- */

/* Takes what is ready, and what will be as soon as that is written. Returns the time that it has, in µs; 0:
 * nothing is ready. */
static uint64_t files_take(Apply *a) {
        uint64_t limit = 0;
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (t->state != TASK_PENDING || !task_executor(t)->stage || !task_ready(t, true))
                        continue;
                t->state = TASK_TAKEN;
                limit = limit == 0 ? task_limit(t) : MIN(limit, task_limit(t));
        }
        return limit;
}

static void files_hand_over(Files *f, const Apply *a) {
        const Action *first = NULL;
        assert(f->apply.n == a->n);
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &f->apply.tasks[i];
                if (!first && a->tasks[i].state == TASK_TAKEN)
                        first = t->action;
                t->state = a->tasks[i].state;
                t->satisfied = a->tasks[i].satisfied;
                f->results.items[i].outcome = a->tasks[i].result->outcome;
        }
        (void)files_at(f, first, "starting to write it");
        atomic_store(&f->state, FILES_IN_TIME);
}

static void files_take_over(Apply *a, Files *f) {
        diag_move(a->diag, &f->diag);
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i], *theirs = &f->apply.tasks[i];
                if (t->state != TASK_TAKEN)
                        continue;
                if (theirs->state == TASK_TAKEN) {
                        t->state = TASK_PENDING;        /* no place was left */
                        continue;
                }
                assert(theirs->state == TASK_ENDED);
                *t->result = *theirs->result;
                theirs->result->text = NULL;
                theirs->result->found = NULL;
                t->satisfied = theirs->satisfied;
                t->state = TASK_ENDED;
        }
}

/* What it has in hand has failed. What else it was to write may be written or not, which is not done. */
static void files_fail(Apply *a, const Action *at, const char *doing, uint64_t begin, uint64_t limit) {
        Task *failed = NULL;
        for (size_t i = 0; i < a->n && !failed; i++)
                if (a->tasks[i].action == at && a->tasks[i].state != TASK_ENDED)
                        failed = &a->tasks[i];
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (!failed && t->state == TASK_TAKEN)
                        failed = t;
                else if (t != failed && t->state == TASK_TAKEN)
                        task_skip(t,
                                  xasprintf("given up with %s; it may be written or not", failed->action->id),
                                  false);
        }
        if (!failed)
                return;
        failed->result->begin_usec = begin;
        if (a->interrupted)
                (void)task_fail(failed, -EINTR, CAUSE_INTERRUPTED, "stopped by %s; %s",
                                stop_name(a->interrupted), doing);
        else
                (void)task_fail(failed, -ETIMEDOUT, CAUSE_FILE,
                                "not done after %g s; %s; dmesg shows whether its disk answers",
                                usec_seconds(limit), doing);
}

static bool joins_until(pthread_t thread, uint64_t usec) {
        const struct timespec instant = { .tv_sec = (time_t)(usec / USEC_PER_SEC),
                                          .tv_nsec = (long)(usec % USEC_PER_SEC * 1000) };
        return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &instant) == 0;
}

/* A disk that answers late is told of, and a stop is obeyed once it is late. false: it has not ended at its
 * deadline, or is not waited for any longer. */
static bool files_join(Apply *a, pthread_t thread, uint64_t begin, uint64_t limit) {
        uint64_t end = begin + limit, tell = begin + TELL_USEC;
        for (uint64_t next = MIN(tell, end); !joins_until(thread, next); next = MIN(next + LOOK_USEC, end)) {
                const Action *at = atomic_load(&a->files->at);
                if (next >= end || apply_stopping(a))
                        return false;
                if (next < tell)
                        continue;
                log_info("%s: still %s after %g s; giving up in %g s; dmesg shows whether its disk "
                         "answers", at->id, atomic_load(&a->files->doing),
                         usec_seconds(next - begin), usec_seconds(end - next));
                tell += TELL_USEC;
        }
        return true;
}

/* true: the thread has ended, and what it has is the loop's again. */
static bool files_await(Apply *a, pthread_t thread, uint64_t limit) {
        Files *f = a->files;
        uint64_t begin = now_usec();
        if (files_join(a, thread, begin, limit))
                return true;
        const Action *at = atomic_load(&f->at);
        const char *doing = atomic_load(&f->doing);
        if (atomic_exchange(&f->state, FILES_GIVEN_UP) == FILES_ENDED) {
                pthread_join(thread, NULL);
                return true;
        }
        pthread_detach(thread);
        a->files = NULL;                /* it may be freed already */
        a->files_lost = true;
        (*a->threads_left)++;
        files_fail(a, at, doing, begin, limit);
        return false;
}

/* The loop stood still meanwhile: what has ended in time must be heard before it counts as late. */
static void deadlines_move(Apply *a, uint64_t usec) {
        for (size_t i = 0; i < a->n; i++) {
                sd_event_source *deadline = a->tasks[i].deadline;
                uint64_t instant = 0;
                if (deadline && sd_event_source_get_time(deadline, &instant) >= 0)
                        (void)!sd_event_source_set_time(deadline, instant + usec);
        }
}

bool files_apply(Apply *a) {
        uint64_t begin = now_usec(), limit = files_take(a);
        pthread_t thread;
        if (limit == 0)
                return false;
        int r = a->files ? 0 : files_new(a, &a->files);
        for (size_t i = 0; i < a->n && r < 0; i++)
                if (a->tasks[i].state == TASK_TAKEN)
                        (void)file_fail(&a->tasks[i], r, "written", a->tasks[i].action->target);
        if (r < 0)
                return true;
        files_hand_over(a->files, a);
        bool ended = true;
        if (pthread_create(&thread, NULL, files_run, a->files) != 0)
                batch_write(a->files);  /* late is better than not at all */
        else
                ended = files_await(a, thread, limit);
        deadlines_move(a, now_usec() - begin);
        if (ended)
                files_take_over(a, a->files);
        return true;
}
