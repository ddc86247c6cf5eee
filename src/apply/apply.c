/* SPDX-License-Identifier: Apache-2.0
 * The loop of a run: plan → results. Each task begins when its dependencies have ended well, and has its
 * own deadline. */
#include "apply/engine.h"
#include "apply/file.h"
#include "apply/units/units.h"

#include "base/progress.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <signal.h>

/* A bind takes a thread, and a volume may have thousands of targets. */
#define BINDS_AT_ONCE 64

static void task_begin(Task *t) {
        const Executor *e = t->executor;
        if (e->host_only && !root_is_host(t->apply->root))
                return task_skip(t, xstrdup("--root is not the running system"), true);
        waited_grant(t);
        t->result->begin_usec = now_usec();
        t->state = TASK_RUNNING;
        t->apply->in_flight++;
        int r = e->check ? e->check(t) : CHECK_NEEDED;
        if (r == CHECK_DONE_ALREADY)
                task_end(t, OUTCOME_UNCHANGED);
        /* Timer first: it creates the event loop. */
        else if (r > 0 && task_arm(t) >= 0 && r == CHECK_NEEDED)
                task_checked(t, true);
}

static bool task_has_turn(const Task *t) {
        const Apply *a = t->apply;
        if (t->action->type == ACTION_BIND && a->in_flight >= BINDS_AT_ONCE)
                return false;
        for (size_t i = 0; i < a->n && t->executor->in_turn; i++)
                if (a->tasks[i].state == TASK_RUNNING && a->tasks[i].action->type == t->action->type)
                        return false;
        return true;
}

static bool tasks_begin_ready(Apply *a) {
        bool progress = false;
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (t->state != TASK_PENDING)
                        continue;
                if (task_skip_if_broken(t))
                        progress = true;
                else if (!t->executor->stage && task_ready(t, false) && task_has_turn(t)) {
                        task_begin(t);
                        progress = true;
                }
        }
        return files_apply(a) || progress;
}

static void apply_interrupt(Apply *a) {
        files_stop(a);
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                const Course *c = t->executor->course;
                if (t->state == TASK_WATCHED)
                        task_end(t, OUTCOME_DONE);
                else if (t->state == TASK_RUNNING) {
                        if (c && c->cancel)
                                c->cancel(t);
                        (void)task_fail(t, -EINTR, CAUSE_INTERRUPTED, "stopped by %s",
                                        stop_name(a->interrupted));
                }
        }
        if (!diag_first_error(a->diag) && a->n > 0)
                (void)diag_error(a->diag, -EINTR, CAUSE_INTERRUPTED, "stopped by %s before the last action",
                                 stop_name(a->interrupted));
        for (size_t i = 0; i < a->n; i++)
                if (a->tasks[i].state == TASK_PENDING)
                        task_skip(&a->tasks[i], xstrdup("stopped by a signal before it began"), false);
}

/* Reports tasks that began or ended since the last call. Called before the loop waits: one write for many
 * tasks. */
static void progress_tell(Apply *a) {
        Text t = {};
        for (size_t i = 0; i < a->n; i++) {
                Task *task = &a->tasks[i];
                const Result *r = task->result;
                if ((task->state == TASK_ENDED || task->state == TASK_WATCHED) && task->told != TOLD_OVER) {
                        progress_add(&t, r->end_usec ?: now_usec(), outcome_to_string(r->outcome),
                                     task->action->id);
                        task->told = TOLD_OVER;
                } else if (task->state == TASK_RUNNING && task->told == TOLD_NOTHING) {
                        progress_add(&t, r->begin_usec, "begin", task->action->id);
                        task->told = TOLD_BEGUN;
                }
        }
        progress_write(a->root, &a->progress_fd, &t);
}

static int apply_run(Apply *a) {
        for (;;) {
                tasks_release(a);
                if (!ANY(t, a->tasks, a->n, t->state != TASK_ENDED && !t->lasts))
                        break;
                if (apply_stopping(a)) {
                        apply_interrupt(a);
                        return -EINTR;
                }
                if (tasks_begin_ready(a))
                        continue;
                if (a->in_flight == 0 && !a->files)
                        return diag_error(a->diag, -EDEADLK, CAUSE_INTERNAL,
                                          "the plan has a dependency cycle: report this nodestrap bug");
                progress_tell(a);
                int r = sd_event_run(a->event, UINT64_MAX);
                if (r < 0)
                        return diag_error(a->diag, r, CAUSE_INTERNAL, "the event loop failed: %s",
                                          strerror(-r));
        }
        for (size_t i = 0; i < a->n; i++)
                task_end(&a->tasks[i], OUTCOME_DONE);
        return 0;
}

static void apply_done(Apply *a) {
        files_stop(a);
        tasks_done(a);
        work_wait(a);
        pruning_free(a->pruning);
        a->bus = bus_free(a->bus);
        a->event = sd_event_unref(a->event);
        json_decref(a->waited);
        close_fd(&a->progress_fd);
}

int apply_with(const Executor *table, const Root *root, const Plan *plan, Results *ret, Diag *diag) {
        _cleanup_(apply_done) Apply a = { .executors = table,
                                          .root = root,
                                          .plan = plan,
                                          .diag = diag,
                                          .threads_left = &ret->threads_left,
                                          .turn_fd = &ret->turn_fd,
                                          .progress_fd = -1 };
        sigset_t held, before;
        *ret = (Results){};
        int r = tasks_make(&a, ret);
        if (r < 0)
                return r;
        stop_signals(&held);
        if (sigprocmask(SIG_BLOCK, &held, &before) < 0)
                return diag_error(diag, -errno, CAUSE_INTERNAL, "cannot block signals: %s", strerror(errno));
        r = apply_run(&a);
        progress_tell(&a);
        if (root_is_host(root))
                waited_write(root, plan, ret);
        /* a signal after the last action must not end the process before the report is written */
        (void)apply_stopping(&a);
        /* after an interruption, signals stay blocked until the report is written */
        if (!a.interrupted)
                sigprocmask(SIG_SETMASK, &before, NULL);
        return r < 0 ? r : results_first_failure(ret) ? -EIO : 0;
}
