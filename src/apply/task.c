/* SPDX-License-Identifier: Apache-2.0
 * Tasks from creation to release. The outcome is set at once; the loop frees resources later, with no task
 * code on the stack. */
#include "apply/engine.h"

#include "base/log.h"
#include "base/power.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <signal.h>

#define DEADLINE_DEFAULT_USEC (300 * USEC_PER_SEC)      /* of an action without a deadline */

DEFINE_STRING_TABLE(outcome, Outcome, "pending", "unchanged", "done", "skipped", "failed")

void results_done(Results *r) {
        for (size_t i = 0; i < r->n; i++) {
                free(r->items[i].text);
                json_decref(r->items[i].found);
        }
        free(r->items);
        *r = (Results){};
}

const Result *results_first_failure(const Results *r) {
        const Result *first = NULL;
        for (size_t i = 0; i < r->n; i++)
                if (r->items[i].outcome == OUTCOME_FAILED &&
                    (!first || r->items[i].end_usec < first->end_usec))
                        first = &r->items[i];
        return first;
}

size_t results_count(const Results *r, Outcome outcome) {
        size_t n = 0;
        for (size_t i = 0; i < r->n; i++)
                n += r->items[i].outcome == outcome;
        return n;
}

uint64_t task_limit(const Task *t) {
        return t->limit_usec ?: t->action->deadline_usec ?: DEADLINE_DEFAULT_USEC;
}

static int tasks_find(Apply *a, const json_t *index, size_t i, char *const *ids, Task **to, size_t *n) {
        for (; ids && *ids; ids++) {
                const json_t *at = json_object_get(index, *ids);
                Task *before = &a->tasks[json_integer_value(at)];
                if (!at || before >= &a->tasks[i])
                        return diag_error_at(a->diag, -EINVAL, CAUSE_INTERNAL, NULL, a->tasks[i].action->id,
                                             "it depends on %s, which is not before it in the plan", *ids);
                to[(*n)++] = before;
        }
        return 0;
}

static int task_link(Apply *a, const json_t *index, size_t i) {
        Task *t = &a->tasks[i];
        t->after = xcalloc(strv_length(t->action->after) + i, sizeof(Task *));
        t->after_any = xcalloc(strv_length(t->action->after_any), sizeof(Task *));
        int r = tasks_find(a, index, i, t->action->after, t->after, &t->n_after);
        THEN(r, tasks_find(a, index, i, t->action->after_any, t->after_any, &t->n_after_any));
        if (r < 0)
                return r;
        /* prune-files comes after all writes, or a failed write could lose files. */
        for (size_t k = 0; k < i && t->action->type == ACTION_PRUNE_FILES; k++)
                if (a->tasks[k].executor->stage)
                        t->after[t->n_after++] = &a->tasks[k];
        return 0;
}

int tasks_make(Apply *a, Results *results) {
        a->n = results->n = a->plan->n;
        a->tasks = xcalloc(a->n, sizeof *a->tasks);
        results->items = xcalloc(a->n, sizeof *results->items);
        for (size_t i = 0; i < a->n; i++) {
                results->items[i].action = &a->plan->actions[i];
                a->tasks[i] = (Task){ .apply = a,
                                      .action = &a->plan->actions[i],
                                      .executor = &a->executors[a->plan->actions[i].type],
                                      .result = &results->items[i] };
        }
        _cleanup_(json_decrefp) json_t *index = plan_index(a->plan);
        for (size_t i = 0; i < a->n; i++) {
                int r = task_link(a, index, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

bool task_in_flight(const Task *t) {
        return t->state == TASK_RUNNING || t->state == TASK_WATCHED;
}

/* The caller may still use its data; tasks_release() frees it. */
static void task_close(Task *t, bool satisfied) {
        t->apply->in_flight -= task_in_flight(t);
        t->state = TASK_ENDED;
        t->satisfied = satisfied;
}

void task_end(Task *t, Outcome outcome) {
        if (t->state == TASK_ENDED)
                return;
        if (t->state != TASK_WATCHED) {         /* its time ended when the watch began */
                t->result->outcome = outcome;
                t->result->end_usec = now_usec();
                log_debug("%s: %s", t->action->id, outcome_to_string(outcome));
        }
        if (t->action->type == ACTION_TAKE_TURN)
                waited_take(t->apply);
        task_close(t, outcome == OUTCOME_DONE || outcome == OUTCOME_UNCHANGED);
}

void task_watch(Task *t) {
        t->result->outcome = OUTCOME_DONE;
        t->result->end_usec = now_usec();
        t->satisfied = true;
        t->deadline = sd_event_source_disable_unref(t->deadline);
        t->state = TASK_WATCHED;
}

/* root should not get EPERM, so the kernel error alone does not help. */
static char *tell_of_limits(char *text, int r) {
        size_t n = strcspn(text, "\n");
        _free_ char *first = xstrndup(text, n);
        if ((r != -EPERM && !strstr(first, strerror(EPERM))) || !power_is_limited())
                return text;
        char *whole = xasprintf("%s; this process lacks a root privilege: see SystemCallFilter= and "
                                "CapabilityBoundingSet= in `systemctl cat 'nodestrap-*'`, or the privileges "
                                "of the container%s",
                                first, text + n);
        free(text);
        return whole;
}

int task_fail(Task *t, int r, Cause cause, const char *format, ...) {
        if (t->state == TASK_ENDED)
                return r;
        errno = -r;     /* for %m */
        _free_ char *text = tell_of_limits(FORMATTED(format), r);
        /* hardware that its vendor calls unusable always fails */
        if (t->action->lenient && cause != CAUSE_INTERRUPTED && cause != CAUSE_HEALTH) {
                /* The node works without it, so dependents continue. */
                const char *code = t->executor->missed ?: action_type_to_string(t->action->type);
                diag_warn_at(t->apply->diag, code, NULL, t->action->id, "%.*s", (int)strcspn(text, "\n"),
                             text);
                t->result->missed = true;
                task_end(t, OUTCOME_UNCHANGED);
                return r;
        }
        /* The first line only; the rest, e.g. lines of a unit, goes to status and journal. */
        diag_error_at(t->apply->diag, r, cause, NULL, t->action->id, "%.*s", (int)strcspn(text, "\n"), text);
        RENEW(t->result->text, TAKE_PTR(text));
        t->result->outcome = OUTCOME_FAILED;
        t->result->cause = cause;
        t->result->end_usec = now_usec();
        task_close(t, false);
        return r;
}

void task_skip(Task *t, char *why, bool satisfied) {
        t->result->outcome = OUTCOME_SKIPPED;
        t->result->text = why;
        task_close(t, satisfied);
}

bool task_ready(const Task *t, bool taken_too) {
        for (size_t i = 0; i < t->n_after; i++)
                if (!t->after[i]->satisfied && !(taken_too && t->after[i]->state == TASK_TAKEN))
                        return false;
        return !ANY(a, t->after_any, t->n_after_any, !(*a)->satisfied && (*a)->state != TASK_ENDED);
}

char *task_broken_text(const Action *before) {
        return xasprintf("%s, its dependency, did not succeed", before->id);
}

bool task_skip_if_broken(Task *t) {
        const Task *broken =
                PICK(a, t->after, t->n_after, (*a)->state == TASK_ENDED && !(*a)->satisfied, *a, NULL);
        if (broken)
                task_skip(t, task_broken_text(broken->action), false);
        return broken;
}

static int on_stop_signal(_unused_ sd_event_source *s, const struct signalfd_siginfo *info, void *userdata) {
        Apply *a = userdata;
        a->interrupted = (int)info->ssi_signo;
        return 0;
}

int apply_event(Apply *a, sd_event **ret) {
        if (!a->event) {
                _cleanup_(sd_event_unrefp) sd_event *e = NULL;
                sigset_t signals;
                int r = sd_event_new(&e);
                stop_signals(&signals);
                for (int n = 1; r >= 0 && n < SIGRTMIN; n++)
                        if (sigismember(&signals, n) == 1) {
                                /* Important priority: the loop takes the signal before apply_stopping() sees
                                 * it, and other sources may wait long (bus_renew()). */
                                sd_event_source *source = NULL;
                                r = sd_event_add_signal(e, &source, n, on_stop_signal, a);
                                THEN(r, sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT));
                                THEN(r, sd_event_source_set_floating(source, true));
                                sd_event_source_unref(source);
                        }
                if (r < 0)
                        return r;
                a->event = TAKE_PTR(e);
        }
        *ret = a->event;
        return 0;
}

int apply_stopping(Apply *a) {
        sigset_t set;
        stop_signals(&set);
        int signal = sigtimedwait(&set, NULL, &(struct timespec){});
        if (signal > 0 || stop_signal())       /* arrived before signals were blocked */
                a->interrupted = signal > 0 ? signal : stop_signal();
        return a->interrupted;
}

static int on_deadline(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Task *t = userdata;
        const Course *c = t->executor->course;
        _free_ char *waiting = c && c->waiting ? c->waiting(t) : xstrdup(t->action->target);
        uint64_t limit = task_limit(t) + t->waited_usec;
        if (c && c->cancel)
                c->cancel(t);
        Cause cause = c && c->late ? c->late(t) : t->executor->overdue;
        (void)task_fail(t, -ETIMEDOUT, cause ?: CAUSE_DEADLINE, "not done after %g s; %s",
                        usec_seconds(limit), waiting);
        return 0;
}

int task_arm(Task *t) {
        const char *id = t->action->timed_from;
        const Task *from = id ? FIND(o, t->apply->tasks, t->apply->n, streq(o->action->id, id)) : NULL;
        sd_event *event = NULL;
        int r = apply_event(t->apply, &event);
        if (r >= 0 && (!from || from->state == TASK_ENDED))
                r = sd_event_add_time_relative(event, &t->deadline, CLOCK_MONOTONIC, task_limit(t),
                                               USEC_PER_MSEC, on_deadline, t);
        return r < 0 ? task_fail(t, r, CAUSE_INTERNAL, "cannot set a timer for its deadline: %m") : 0;
}

void tasks_release(Apply *a) {
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (t->state == TASK_RUNNING && !t->deadline)
                        (void)!task_arm(t);
                if (t->state == TASK_ENDED && !t->released) {
                        t->deadline = sd_event_source_disable_unref(t->deadline);
                        if (t->executor->course && t->executor->course->release)
                                t->executor->course->release(t);
                        t->data = NULL;
                        t->released = true;
                }
        }
}

void task_checked(Task *t, bool needed) {
        if (!needed)
                task_end(t, OUTCOME_UNCHANGED);
        else
                (void)t->executor->course->start(t);
}

void tasks_done(Apply *a) {
        for (size_t i = 0; i < a->n; i++)
                if (a->tasks[i].state != TASK_ENDED)
                        task_skip(&a->tasks[i], xstrdup("the run ended before this action began"), false);
        tasks_release(a);
        for (size_t i = 0; i < a->n; i++)
                FREE_ALL(a->tasks[i].after, a->tasks[i].after_any);
        RENEW(a->tasks, NULL);
        a->n = 0;
}
