/* SPDX-License-Identifier: Apache-2.0
 * Ready files are staged, synced and published together by one job (work.c) at a time. Meanwhile the loop
 * logs every 10 s what they wait for. It abandons the job at its deadline, so a disk that hangs keeps only
 * that thread.
 *
 * The job shares only the plan with the loop, and tasks take over the outcome of each file after its end. An
 * abandoned job that returns finishes its current rename or removal and begins no other. */
#include "apply/engine.h"
#include "apply/file.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#define BATCH_MAX 64            /* each needs two descriptors and a thread */
#define TELL_USEC (10 * USEC_PER_SEC)
#define STOP_USEC USEC_PER_SEC  /* for the job to end when the run stops */

typedef struct File {
        Task *task;             /* the loop's alone */
        const Action *action;
        const Executor *executor;
        enum { FILE_WAITS, FILE_STAGED, FILE_OVER } state;
        RootTmp tmp;
        int synced;             /* result of its sync */
        int error;              /* also of a lenient failure */
        Result result;          /* for the task */
} File;

struct Files {
        File *items; size_t n;
        File **failures; size_t n_failures;     /* in the order of failure */
        File announcement;      /* manifest with the new files, published before the first of them; no action:
                                 * none */
        const Action **swept; size_t n_swept;
        const Action *failed;   /* of the configuration, in an earlier batch */
        uint64_t begin_usec, end_usec, tell_usec;       /* of the loop */
};

static void files_done(Work *w) {
        Files *f = w->files;
        for (size_t i = 0; i < f->n; i++) {
                root_tmp_release(&f->items[i].tmp);
                free(f->items[i].result.text);
        }
        root_tmp_release(&f->announcement.tmp);
        w->pruning = pruning_free(w->pruning);
        FREE_ALL(f->items, f->failures, f->swept, f);
}

/* Records the current work for the deadline message. false: the job was abandoned. */
static bool files_at(Work *w, const Action *at, const char *doing) {
        w->action = at;
        return work_at(w, "%s", doing);
}

static void file_over(File *f, Outcome outcome) {
        f->state = FILE_OVER;
        f->result.outcome = outcome;
        f->result.end_usec = outcome == OUTCOME_SKIPPED ? 0 : now_usec();
        root_tmp_release(&f->tmp);
}

/* w has the reason, unless writing failed. */
static void file_failed(Work *w, File *f, int r) {
        if (!w->text)
                (void)file_fail(w, r, "written", f->action->target);
        f->error = r;
        f->result.cause = w->cause;
        f->result.text = TAKE_PTR(w->text);
        file_over(f, f->action->lenient ? OUTCOME_UNCHANGED : OUTCOME_FAILED);
        w->files->failures[w->files->n_failures++] = f;
}

static void file_skip(File *f, char *why) {
        f->result.text = why;
        file_over(f, OUTCOME_SKIPPED);
}

/* This batch only; prune-files needs all. */
static bool file_skip_if_broken(const Files *f, File *file) {
        const Action *a = file->action;
        for (const File *before = f->items; before < file; before++)
                if ((before->result.outcome == OUTCOME_FAILED || before->result.outcome == OUTCOME_SKIPPED) &&
                    (a->type == ACTION_PRUNE_FILES || strv_contains(a->after, before->action->id))) {
                        file_skip(file, task_broken_text(before->action));
                        return true;
                }
        return false;
}

static void *file_sync(void *userdata) {
        File *f = userdata;
        f->synced = root_tmp_sync(&f->tmp);
        return NULL;
}

static size_t batch_stage(Work *w) {
        size_t staged = 0;
        for (File *f = w->files->items; f < w->files->items + w->files->n && staged < BATCH_MAX; f++) {
                if (file_skip_if_broken(w->files, f) ||
                    !files_at(w, f->action, "writing its new content beside it"))
                        continue;
                f->result.begin_usec = now_usec();
                int r = f->executor->stage(w, &f->tmp);
                if (r < 0)
                        file_failed(w, f, r);
                else if (r == 0)
                        file_over(f, OUTCOME_UNCHANGED);
                else
                        f->state = FILE_STAGED;
                staged += f->state == FILE_STAGED;
        }
        return staged;
}

/* In parallel: a disk answers ten waiting flushes as fast as one. syncfs() would be slightly faster, but
 * waits for the data of other programs, without a bound at boot. */
static void batch_sync(Work *w) {
        static const char doing[] = "waiting for new files to reach the disk";
        struct { File *file; pthread_t thread; } syncs[BATCH_MAX + 1];
        Files *files = w->files;
        size_t n = 0;
        for (size_t i = 0; i <= files->n; i++) {
                File *f = i < files->n ? &files->items[i] : &files->announcement;
                if (f->state != FILE_STAGED)
                        continue;
                assert(n < ARRAY_SIZE(syncs));
                syncs[n].file = f;
                if (n > 0 && pthread_create(&syncs[n].thread, NULL, file_sync, f) != 0)
                        file_sync(f);
                else
                        n++;
        }
        if (n > 0 && files_at(w, syncs[0].file->action, doing))
                file_sync(syncs[0].file);
        while (n-- > 1) {
                (void)files_at(w, syncs[n].file->action, doing);
                pthread_join(syncs[n].thread, NULL);
        }
        for (File *f = files->items; f < files->items + files->n; f++)
                if (f->state == FILE_STAGED && f->synced < 0)
                        file_failed(w, f, f->synced);
}

/* Configuration files are published all or none, so that no mixture results. */
static void batch_withhold(Files *files) {
        const Action *failed = files->failed;
        for (size_t i = 0; i < files->n_failures; i++) {
                const Action *a = files->failures[i]->action;
                if (a->phase == PHASE_CONFIG && !a->lenient && (!failed || a < failed))
                        failed = a;
        }
        for (File *f = files->items; failed && f < files->items + files->n; f++)
                if (f->state == FILE_STAGED && f->action->phase == PHASE_CONFIG)
                        file_skip(f, xasprintf("left as it was: all configuration files are written "
                                               "together or not at all, and %s failed",
                                               failed->id));
}

static int files_work(Work *w) {
        Files *files = w->files;
        /* Leftovers go before anything is staged; the lock keeps other runs out. Staging reports read
         * errors. */
        for (size_t i = 0; i < w->files->n_swept; i++) {
                const Action *a = w->files->swept[i];
                if (files_at(w, a, "looking for files of an earlier run beside it") &&
                    root_tmp_sweep(w->root, a->target) > 0)
                        log_debug("%s: removed the temporary file of a run that was killed", a->target);
        }
        File *listed = &w->files->announcement;
        if (listed->action && files_at(w, listed->action, "adding the new files to it") &&
            manifest_announce(w, &listed->tmp) > 0)
                listed->state = FILE_STAGED;
        if (batch_stage(w) == 0)
                return 0;
        batch_sync(w);
        /* Failures are not reported: prune-files writes the same file. */
        int r = listed->state == FILE_STAGED ? listed->synced : 0;
        if (listed->state == FILE_STAGED && r >= 0 && files_at(w, listed->action, "renaming it into place"))
                r = root_tmp_publish(&listed->tmp);
        if (r < 0)
                log_debug("cannot add the new files to the manifest: %s", strerror(-r));
        listed->state = FILE_OVER;
        root_tmp_release(&listed->tmp);
        batch_withhold(files);
        for (File *f = files->items; f < files->items + files->n; f++)
                if (f->state == FILE_STAGED && files_at(w, f->action, "renaming it into place") &&
                    !file_skip_if_broken(files, f)) {
                        r = f->executor->publish ? f->executor->publish(w, &f->tmp)
                                                 : root_tmp_publish(&f->tmp);
                        if (r < 0)
                                file_failed(w, f, r);
                        else
                                file_over(f, OUTCOME_DONE);
                }
        return 0;
}

static void file_take(File *f) {
        Task *t = f->task;
        if (f->state != FILE_OVER) {
                t->state = TASK_PENDING;                /* no place was left */
                return;
        }
        if (f->error < 0)
                (void)task_fail(t, f->error, f->result.cause, "%s", f->result.text);
        else if (f->result.outcome == OUTCOME_SKIPPED)
                task_skip(t, TAKE_PTR(f->result.text), false);
        else
                task_end(t, f->result.outcome);
        t->result->begin_usec = f->result.begin_usec;
        t->result->end_usec = f->result.end_usec;
}

static void files_finish(Apply *a) {
        Work *w = job_work(a->files);
        Files *files = w->files;
        a->files_timer = sd_event_source_disable_unref(a->files_timer);
        a->pruning = TAKE_PTR(w->pruning);
        a->files_announced = files->announcement.state != FILE_STAGED;  /* else before the next batch */
        diag_move(a->diag, &w->warnings);
        for (size_t i = 0; i < files->n_failures; i++)
                file_take(files->failures[i]);
        for (size_t i = 0; i < files->n; i++)
                if (files->items[i].task->state == TASK_TAKEN)
                        file_take(&files->items[i]);
        a->files = job_free(a->files);
}

/* The current file has failed. Others are skipped: they may be written or not. */
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
                                  xasprintf("this file may or may not have its new content: nodestrap "
                                            "stopped at %s",
                                            failed->action->id),
                                  false);
        }
        if (!failed)
                return;
        failed->result->begin_usec = begin;
        if (a->interrupted)
                (void)task_fail(failed, -EINTR, CAUSE_INTERRUPTED, "stopped by %s; %s",
                                stop_name(a->interrupted), doing);
        else
                (void)task_fail(failed, -ETIMEDOUT, CAUSE_STALLED,
                                "not done after %g s; %s; dmesg shows whether the disk responds",
                                usec_seconds(limit), doing);
}

/* Unless it has just ended. The thread then owns what it has. */
static void files_give_up(Apply *a) {
        const Files *files = job_work(a->files)->files;
        uint64_t begin = files->begin_usec, limit = files->end_usec - begin;
        const Action *at;
        _free_ char *doing = job_at(a->files, &at);
        if (!job_leave(a->files, a)) {
                files_finish(a);
                return;
        }
        a->files = NULL;
        a->files_timer = sd_event_source_disable_unref(a->files_timer);
        a->files_announced = false;
        files_fail(a, at, doing, begin, limit);
}

void files_stop(Apply *a) {
        if (a->files && job_ended(a->files, now_usec() + STOP_USEC))
                files_finish(a);
        else if (a->files)
                files_give_up(a);
}

static int on_late(sd_event_source *s, uint64_t usec, void *userdata) {
        Apply *a = userdata;
        Files *files = job_work(a->files)->files;
        const Action *at;
        if (usec >= files->end_usec) {
                files_give_up(a);
                return 0;
        }
        _free_ char *doing = job_at(a->files, &at);
        log_info("%s: still %s after %g s; giving up in %g s; dmesg shows whether the disk "
                 "responds",
                 at->id, doing, usec_seconds(usec - files->begin_usec), usec_seconds(files->end_usec - usec));
        (void)!sd_event_source_set_time(s, MIN(usec + TELL_USEC, files->end_usec));
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static size_t files_take(Apply *a) {
        size_t n = 0;
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (t->state != TASK_PENDING || !t->executor->stage || !task_ready(t, true))
                        continue;
                t->state = TASK_TAKEN;
                n++;
        }
        return n;
}

static Files *files_new(Apply *a, size_t n) {
        Files *f = xcalloc(1, sizeof *f);
        *f = (Files){ .items = xcalloc(n, sizeof *f->items),
                      .failures = xcalloc(n, sizeof(File *)),
                      .swept = xcalloc(a->n, sizeof(Action *)),
                      .announcement.tmp = { .dir_fd = -1, .fd = -1 },
                      .begin_usec = now_usec(),
                      .end_usec = UINT64_MAX };
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                const Executor *e = t->executor;
                if (!e->stage)
                        continue;
                /* another process may still write files of the devices phase */
                if (t->action->phase == PHASE_DEVICES ? t->state == TASK_TAKEN : !a->files_swept)
                        f->swept[f->n_swept++] = t->action;
                /* if ended, a stuck thread has it */
                if (t->action->type == ACTION_PRUNE_FILES && !a->files_announced && t->state != TASK_ENDED)
                        f->announcement.action = t->action;
                if (t->result->outcome == OUTCOME_FAILED && t->action->phase == PHASE_CONFIG && !f->failed)
                        f->failed = t->action;
                if (t->state != TASK_TAKEN)
                        continue;
                f->items[f->n++] = (File){ .task = t, .action = t->action, .executor = e,
                                           .tmp = { .dir_fd = -1, .fd = -1 } };
                f->end_usec = MIN(f->end_usec, f->begin_usec + task_limit(t));
        }
        return f;
}

static int files_start(Apply *a, size_t n) {
        sd_event *event = NULL;
        int r = apply_event(a, &event);
        THEN(r, sd_event_add_time(event, &a->files_timer, CLOCK_MONOTONIC, UINT64_MAX, USEC_PER_MSEC, on_late,
                                  a));
        if (r < 0)
                return r;
        Files *f = files_new(a, n);
        a->files_swept = true;
        r = sd_event_source_set_time(a->files_timer, MIN(f->begin_usec + TELL_USEC, f->end_usec));
        THEN(r, job_start(a, f->items[0].action, f, files_work, files_done, &a->files));
        if (r < 0)
                a->files_timer = sd_event_source_disable_unref(a->files_timer);
        return r;
}

bool files_apply(Apply *a) {
        bool ended = a->files && job_ended(a->files, 0);
        if (a->files && !ended)
                return false;
        if (ended)
                files_finish(a);
        size_t n = files_take(a);
        int r = n > 0 ? files_start(a, n) : 0;
        for (size_t i = 0; i < a->n && r < 0; i++)
                if (a->tasks[i].state == TASK_TAKEN)
                        (void)task_fail_file(&a->tasks[i], r, "written", a->tasks[i].action->target);
        return n > 0 || ended;
}
