/* SPDX-License-Identifier: Apache-2.0
 * Plan → Results: the loop. Everything whose predecessors ended well begins at once, through one sd-event
 * loop, each task under its own deadline; files that are ready together are written together (files.c). */
#include "apply/device.h"
#include "apply/executor.h"
#include "apply/storage.h"
#include "apply/work.h"

#include "base/log.h"
#include "base/power.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>

/* Each bind is a thread, and a volume may have thousands of targets. */
#define BINDS_AT_ONCE 64
#define DEADLINE_DEFAULT_USEC (300 * USEC_PER_SEC)      /* of an action whose plan names none */

static int work_check(_unused_ Task *t) {
        return CHECK_NEEDED;
}

static int work_begin(Task *t);

/* What the event loop does with a unit of systemd. */
#define UNIT(c, s, ...) {                                                                                  \
        .host_only = true, .missed = "unit-failed", .check = c, .start = s, .waiting = unit_waiting,       \
        .late = unit_late, .cancel = unit_cancel, .release = unit_release, ##__VA_ARGS__ }
/* A function on a thread, begun where check() says that it is needed. */
#define THREAD(c, s, w, ...) {                                                                             \
        .host_only = true, .check = c, .start = s, .waiting = w, .cancel = work_cancel,                    \
        .release = work_release, ##__VA_ARGS__ }
/* One that looks for itself whether anything is to be done. */
#define WORK(f, c, m, ...) \
        THREAD(work_check, work_begin, work_waiting, .work = f, .overdue = c, .missed = m, ##__VA_ARGS__)

static const Executor executors[_ACTION_MAX] = {
        [ACTION_WRITE_FILE]      = { .stage = file_stage, .publish = file_publish },
        [ACTION_WRITE_BLOCK]     = { .stage = block_stage },
        [ACTION_PRUNE_FILES]     = { .stage = manifest_stage, .publish = manifest_publish },
        [ACTION_RELOAD_MANAGER]  = UNIT(reload_check, reload_start),
        [ACTION_RESTART_UNIT]    = UNIT(unit_check, unit_start),
        [ACTION_START_UNIT]      = UNIT(unit_check, unit_start),
        [ACTION_STOP_UNIT]       = UNIT(unit_check, unit_start),
        [ACTION_MASK_UNIT]       = UNIT(mask_check, mask_start),
        [ACTION_UNMASK_UNIT]     = UNIT(mask_check, mask_start),
        [ACTION_AWAIT_UNIT]      = UNIT(await_check, await_start, .waits = true),
        [ACTION_CHECK_UNIT]      = { .host_only = true, .missed = "unit-failed", .check = alive_check,
                                     .start = alive_start, .waiting = alive_waiting, .late = unit_late,
                                     .release = unit_release },
        [ACTION_CREATE_RAID]     = THREAD(storage_check, raid_start, storage_waiting),
        [ACTION_MAKE_FILESYSTEM] = THREAD(storage_check, filesystem_start, storage_waiting),
        [ACTION_MOUNT]           = THREAD(storage_check, mount_start, storage_waiting),
        [ACTION_GROW_FILESYSTEM] = THREAD(storage_check, grow_start, storage_waiting,
                                          .missed = "filesystem-not-grown"),
        [ACTION_MOVE_FILES]      = THREAD(storage_check, move_start, storage_waiting),
        [ACTION_BIND]            = THREAD(storage_check, bind_start, storage_waiting),
        [ACTION_IMPORT_IMAGE]    = THREAD(image_check, image_start, work_waiting),
        [ACTION_SET_SYSCTL]      = WORK(sysctl_work, CAUSE_SYSCTL, NULL, .in_turn = true),
        [ACTION_RESERVE_PAGES]   = WORK(pages_work, CAUSE_HUGEPAGES, "hugepages-short", .waits = true),
        [ACTION_LOAD_MODULE]     = WORK(module_work, CAUSE_MODULE, NULL),
        [ACTION_CHECK_MACHINE]   = WORK(machine_work, CAUSE_NONE, NULL),
        [ACTION_CHECK_EFA]       = WORK(efa_work, CAUSE_EFA, "efa-missing", .waits = true),
        [ACTION_CHECK_DRIVER]    = WORK(driver_work, CAUSE_DRIVER, NULL, .waits = true),
        [ACTION_CHECK_VERSIONS]  = WORK(versions_work, CAUSE_VERSION, NULL),
        [ACTION_AWAIT_DEVICES]   = WORK(devices_work, CAUSE_NVSWITCH, "devices-missing", .waits = true),
        [ACTION_AWAIT_FABRIC]    = WORK(fabric_work, CAUSE_NVML, "fabric", .waits = true, .late = work_late),
        [ACTION_AWAIT_LICENSE]   = WORK(license_work, CAUSE_LICENSE, "no-license", .waits = true,
                                        .late = work_late),
        [ACTION_CHECK_HEALTH]    = WORK(health_work, CAUSE_NVML, "health", .waits = true, .late = work_late),
        [ACTION_SET_MIG_MODE]    = WORK(mig_mode_work, CAUSE_MIG, NULL),
        [ACTION_PARTITION_GPUS]  = WORK(partition_work, CAUSE_MIG, NULL),
        [ACTION_LIST_GPUS]       = WORK(list_work, CAUSE_NVIDIA_SMI, NULL, .waits = true),
        [ACTION_SET_CLOCKS]      = WORK(clocks_work, CAUSE_NVML, "clocks"),
        [ACTION_GENERATE_CDI]    = WORK(cdi_work, CAUSE_CDI, NULL),
        [ACTION_MAKE_NODES]      = WORK(nodes_work, CAUSE_DRIVER, NULL),
        [ACTION_MAKE_CHANNEL]    = WORK(channel_work, CAUSE_IMEX, NULL),
        [ACTION_AWAIT_IMEX]      = WORK(imex_work, CAUSE_IMEX, NULL, .waits = true),
        [ACTION_CHECK_NODE]      = THREAD(register_check, register_start, work_waiting,
                                          .overdue = CAUSE_API_SILENT),
        [ACTION_TAINT_NODE]      = THREAD(taint_check, taint_start, work_waiting, .overdue = CAUSE_FILE),
        [ACTION_REMOVE_FILE]     = { .check = remove_check },
        [ACTION_LINK_FILE]       = { .check = link_check },
        [ACTION_TAKE_TURN]       = WORK(turn_work, CAUSE_NONE, NULL),
        [ACTION_FORGET_STATE]    = { .check = work_check, .start = work_begin, .work = state_work,
                                     .waiting = work_waiting, .cancel = work_cancel,
                                     .release = work_release, .overdue = CAUSE_FILE },
        [ACTION_RELOAD_NETWORKD] = THREAD(networkd_check, networkd_start, work_waiting,
                                          .overdue = CAUSE_INTERFACE),
};

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

const Executor *task_executor(const Task *t) {
        return &executors[t->action->type];
}

uint64_t task_limit(const Task *t) {
        return t->limit_usec ?: t->action->deadline_usec ?: DEADLINE_DEFAULT_USEC;
}

static int work_begin(Task *t) {
        return work_start(t, task_executor(t)->work);
}

static Task *task_find(Apply *a, const char *id) {
        for (size_t i = 0; i < a->n; i++)
                if (streq(a->tasks[i].action->id, id))
                        return &a->tasks[i];
        return NULL;
}

/* ---- how a task ends ---- */

bool task_in_flight(const Task *t) {
        return t->state == TASK_RUNNING || t->state == TASK_WATCHED;
}

/* What it holds is still in use by whoever calls: tasks_release() comes later. */
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

/* The node can do without it: what comes behind it goes on. */
static void task_miss(Task *t, const char *text) {
        const char *code = task_executor(t)->missed ?: action_type_to_string(t->action->type);
        diag_warn_at(t->apply->diag, code, NULL, t->action->id, "%.*s", (int)strcspn(text, "\n"), text);
        t->result->missed = true;
        task_end(t, OUTCOME_UNCHANGED);
}

/* The word of the kernel's for what root may always do is no help by itself. */
static char *tell_of_limits(char *text, int r) {
        size_t n = strcspn(text, "\n");
        _cleanup_(freep) char *first = xstrndup(text, n);
        if ((r != -EPERM && !strstr(first, strerror(EPERM))) || !power_is_limited())
                return text;
        char *whole = xasprintf("%s; this process may not do all that root may: SystemCallFilter= and "
                                "CapabilityBoundingSet= in `systemctl cat 'nodestrap-*'` say what, or the "
                                "container has too little%s",
                                first, text + n);
        free(text);
        return whole;
}

int task_fail(Task *t, int r, Cause cause, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list ap;
        if (t->state == TASK_ENDED)
                return r;
        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = xstrdup("out of memory");
        va_end(ap);
        text = tell_of_limits(text, r);
        /* hardware that its vendor calls unusable stays so, whoever only wants to be told of it */
        if (t->action->lenient && cause != CAUSE_INTERRUPTED && cause != CAUSE_HEALTH) {
                task_miss(t, text);
                return r;
        }
        /* The first line alone: what follows it (a unit's own words) is for the status and the journal. */
        diag_error_at(t->apply->diag, r, cause, NULL, t->action->id, "%.*s", (int)strcspn(text, "\n"), text);
        free(t->result->text);
        t->result->text = TAKE_PTR(text);
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

/* ---- what comes before ---- */

static const Task *task_broken_dependency(const Task *t) {
        for (size_t i = 0; i < t->n_after; i++)
                if (t->after[i]->state == TASK_ENDED && !t->after[i]->satisfied)
                        return t->after[i];
        return NULL;
}

bool task_ready(const Task *t, bool taken_too) {
        for (size_t i = 0; i < t->n_after; i++)
                if (!t->after[i]->satisfied && !(taken_too && t->after[i]->state == TASK_TAKEN))
                        return false;
        for (size_t i = 0; i < t->n_after_any; i++)
                if (!t->after_any[i]->satisfied && t->after_any[i]->state != TASK_ENDED)
                        return false;
        return true;
}

char *task_broken_text(const Action *before) {
        return xasprintf("%s comes first and did not end well", before->id);
}

static bool task_skip_if_broken(Task *t) {
        const Task *broken = task_broken_dependency(t);
        if (broken)
                task_skip(t, task_broken_text(broken->action), false);
        return broken;
}

/* ---- everything else: one event loop ---- */

static int on_stop_signal(_unused_ sd_event_source *s, const struct signalfd_siginfo *info, void *userdata) {
        Apply *a = userdata;
        a->interrupted = (int)info->ssi_signo;
        return 0;
}

/* Before all else: the loop takes a signal from where apply_stopping() would see it, and what it runs first
 * may wait for long (bus_renew()). */
static int signal_watch(sd_event *e, int signal, Apply *a) {
        sd_event_source *source = NULL;
        int r = sd_event_add_signal(e, &source, signal, on_stop_signal, a);
        if (r >= 0)
                r = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
        return r;
}

int apply_event(Apply *a, sd_event **ret) {
        if (!a->event) {
                _cleanup_(sd_event_unrefp) sd_event *e = NULL;
                sigset_t signals;
                int r = sd_event_new(&e);
                stop_signals(&signals);
                for (int n = 1; r >= 0 && n < SIGRTMIN; n++)
                        if (sigismember(&signals, n) == 1)
                                r = signal_watch(e, n, a);
                if (r < 0)
                        return r;
                a->event = TAKE_PTR(e);
        }
        *ret = a->event;
        return 0;
}

static int on_deadline(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Task *t = userdata;
        const Executor *e = task_executor(t);
        _cleanup_(freep) char *waiting = e->waiting ? e->waiting(t) : xstrdup(t->action->target);
        uint64_t limit = task_limit(t) + t->waited_usec;
        if (e->cancel)
                e->cancel(t);
        Cause cause = e->late ? e->late(t) : e->overdue;
        (void)task_fail(t, -ETIMEDOUT, cause ?: CAUSE_DEADLINE, "not done after %g s; %s",
                        usec_seconds(limit), waiting);
        return 0;
}

/* Not before its time counts. */
static int task_arm(Task *t) {
        const char *id = t->action->timed_from;
        const Task *from = id ? task_find(t->apply, id) : NULL;
        sd_event *event = NULL;
        int r = apply_event(t->apply, &event);
        if (r >= 0 && (!from || from->state == TASK_ENDED))
                r = sd_event_add_time_relative(event, &t->deadline, CLOCK_MONOTONIC, task_limit(t),
                                               USEC_PER_MSEC, on_deadline, t);
        return r < 0 ? task_fail(t, r, CAUSE_INTERNAL, "no timer for its deadline: %s", strerror(-r)) : 0;
}

static void task_release(Task *t) {
        t->deadline = sd_event_source_disable_unref(t->deadline);
        if (task_executor(t)->release)
                task_executor(t)->release(t);
        t->data = NULL;
        t->released = true;
}

void tasks_release(Apply *a) {
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (t->state == TASK_RUNNING && !t->deadline)
                        (void)!task_arm(t);
                if (t->state == TASK_ENDED && !t->released)
                        task_release(t);
        }
}

void task_checked(Task *t, bool needed) {
        if (!needed)
                task_end(t, OUTCOME_UNCHANGED);
        else
                (void)task_executor(t)->start(t);
}

static void task_begin(Task *t) {
        const Executor *e = task_executor(t);
        if (e->host_only && !root_is_host(t->apply->root)) {
                task_skip(t, xstrdup("--root is not the running system"), true);
                return;
        }
        waited_grant(t);
        t->result->begin_usec = now_usec();
        t->state = TASK_RUNNING;
        t->apply->in_flight++;
        int r = e->check(t);
        if (r == CHECK_DONE_ALREADY)
                task_end(t, OUTCOME_UNCHANGED);
        /* the timer comes first: it brings the loop with it */
        else if (r > 0 && task_arm(t) >= 0 && r == CHECK_NEEDED)
                task_checked(t, true);
}

/* Those before it in the plan that are ready have begun. */
static bool task_has_turn(const Task *t) {
        const Apply *a = t->apply;
        if (t->action->type == ACTION_BIND && a->in_flight >= BINDS_AT_ONCE)
                return false;
        for (size_t i = 0; i < a->n && task_executor(t)->in_turn; i++)
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
                else if (!task_executor(t)->stage && task_ready(t, false) && task_has_turn(t)) {
                        task_begin(t);
                        progress = true;
                }
        }
        return files_apply(a) || progress;
}

/* ---- signals: held back, so that nothing is left half done ---- */

int apply_stopping(Apply *a) {
        sigset_t set;
        stop_signals(&set);
        int signal = sigtimedwait(&set, NULL, &(struct timespec){});
        if (signal > 0 || stop_signal())       /* the latter came before they were held back */
                a->interrupted = signal > 0 ? signal : stop_signal();
        return a->interrupted;
}

static void apply_interrupt(Apply *a) {
        files_stop(a);
        for (size_t i = 0; i < a->n; i++) {
                Task *t = &a->tasks[i];
                const Executor *e = task_executor(t);
                if (t->state == TASK_WATCHED)
                        task_end(t, OUTCOME_DONE);
                else if (t->state == TASK_RUNNING) {
                        if (e->cancel)
                                e->cancel(t);
                        (void)task_fail(t, -EINTR, CAUSE_INTERRUPTED, "stopped by %s",
                                        stop_name(a->interrupted));
                }
        }
        if (!diag_first_error(a->diag) && a->n > 0)
                (void)diag_error(a->diag, -EINTR, CAUSE_INTERRUPTED,
                                 "stopped by %s before the plan was carried out", stop_name(a->interrupted));
        for (size_t i = 0; i < a->n; i++)
                if (a->tasks[i].state == TASK_PENDING)
                        task_skip(&a->tasks[i], xstrdup("stopped by a signal before it began"), false);
}

/* ---- the loop ---- */

static bool tasks_pending(const Apply *a) {
        for (size_t i = 0; i < a->n; i++)
                if (a->tasks[i].state != TASK_ENDED && !a->tasks[i].lasts)
                        return true;
        return false;
}

static int apply_run(Apply *a) {
        for (;;) {
                tasks_release(a);
                if (!tasks_pending(a))
                        break;
                if (apply_stopping(a)) {
                        apply_interrupt(a);
                        return -EINTR;
                }
                if (tasks_begin_ready(a))
                        continue;
                if (a->in_flight == 0 && !a->files)
                        return diag_error(a->diag, -EDEADLK, CAUSE_INTERNAL,
                                          "the plan's actions wait for each other in a circle");
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

static int tasks_find(Apply *a, const json_t *index, size_t i, char *const *ids, Task **to, size_t *n) {
        for (; ids && *ids; ids++) {
                const json_t *at = json_object_get(index, *ids);
                Task *before = &a->tasks[json_integer_value(at)];
                if (!at || before >= &a->tasks[i])
                        return diag_error_at(a->diag, -EINVAL, CAUSE_INTERNAL, NULL, a->tasks[i].action->id,
                                             "it comes after %s, which is not before it in the plan", *ids);
                to[(*n)++] = before;
        }
        return 0;
}

static int task_link(Apply *a, const json_t *index, size_t i) {
        Task *t = &a->tasks[i];
        t->after = xcalloc(strv_length(t->action->after) + i, sizeof(Task *));
        t->after_any = xcalloc(strv_length(t->action->after_any), sizeof(Task *));
        int r = tasks_find(a, index, i, t->action->after, t->after, &t->n_after);
        if (r >= 0)
                r = tasks_find(a, index, i, t->action->after_any, t->after_any, &t->n_after_any);
        if (r < 0)
                return r;
        /* Nothing is removed, and the manifest names no new file, unless everything before it could be
         * written. */
        for (size_t k = 0; k < i && t->action->type == ACTION_PRUNE_FILES; k++)
                if (task_executor(&a->tasks[k])->stage)
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

void tasks_done(Apply *a) {
        for (size_t i = 0; i < a->n; i++)
                if (a->tasks[i].state != TASK_ENDED)
                        task_skip(&a->tasks[i], xstrdup("the run ended before it began"), false);
        tasks_release(a);
        for (size_t i = 0; i < a->n; i++) {
                free(a->tasks[i].after);
                free(a->tasks[i].after_any);
        }
        free(a->tasks);
        a->tasks = NULL;
        a->n = 0;
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

int apply_plan(const Root *root, const Plan *plan, Results *ret, Diag *diag) {
        _cleanup_(apply_done) Apply a = { .root = root,
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
                return diag_error(diag, -errno, CAUSE_INTERNAL, "cannot hold back signals: %s",
                                  strerror(errno));
        r = apply_run(&a);
        progress_tell(&a);
        if (root_is_host(root))
                waited_write(root, plan, ret);
        /* one that came after the last action must not end us before the report is written */
        (void)apply_stopping(&a);
        /* else the process is about to end, and a second signal must not keep it from saying why */
        if (!a.interrupted)
                sigprocmask(SIG_SETMASK, &before, NULL);
        return r < 0 ? r : results_first_failure(ret) ? -EIO : 0;
}
