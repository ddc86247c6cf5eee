/* SPDX-License-Identifier: Apache-2.0
 * reload-manager, restart-unit, start-unit and stop-unit: asynchronous calls to systemd
 * (org.freedesktop.systemd1(5)). A start ends with its job: JobRemoved is matched before the call, without
 * polling.
 *
 * With Type=notify, dbus, forking and oneshot the job ends when the service is ready. With simple, exec and
 * idle it ends with the fork, even if the program exits at once. So such a unit is watched for one more
 * second; dependents continue meanwhile, and only the end of the run waits. */
#include "apply/units/unit.h"
#include "apply/file.h"
#include "apply/storage.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define SETTLE_USEC (1 * USEC_PER_SEC)
#define RUNTIME_FACTOR 3        /* containerd may answer and then fail */

/* Between starts of a unit that is retried; the last pause repeats. Fabric manager waits 30 s for GPUs and
 * exits (pytorch/ci-infra#552). */
static const unsigned pauses_sec[] = { 5, 10, 20, 30 };

static int on_settled(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Unit *u = userdata;
        u->timer = sd_event_source_disable_unref(u->timer);
        if (u->asks)
                u->task->lasts = state_runs(&u->state);
        else
                task_end(u->task, OUTCOME_DONE);
        return 0;
}

bool state_runs(const UnitState *s) {
        return ONE_OF(s->active, "active", "reloading", "refreshing");
}

bool state_is_busy(const UnitState *s) {
        return *s->job || ONE_OF(s->active, "activating", "deactivating") || strstr(s->sub, "auto-restart");
}

static bool state_ended_well(const UnitState *s) {
        return streq(s->type, "oneshot") && !s->remains && streq(s->active, "inactive") &&
               streq(s->result, "success");
}

static int unit_loaded(Unit *u) {
        const UnitState *s = &u->state;
        if (streq(s->load, "not-found"))
                return task_fail(u->task, -ENOENT, CAUSE_UNIT_MISSING,
                                 "%s does not exist on this machine; install its package, or use an AMI "
                                 "that has it",
                                 u->name);
        if (streq(s->load, "masked"))
                return task_fail(u->task, -EPERM, CAUSE_UNIT, "%s is masked; run systemctl unmask %s%s",
                                                              u->name,
                                 streq(s->file, "masked-runtime") ? "--runtime " : "", u->name);
        if (!streq(s->load, "loaded"))
                return task_fail(u->task, -EINVAL, CAUSE_UNIT,
                                 "%s cannot be loaded (%s); systemd-analyze verify %s shows why", u->name,
                                 s->load, u->name);
        return 0;
}

/* Only a running unit has old settings. The record is written in any case, as a later start reads the new
 * ones. */
static int restart_needed(Unit *u) {
        bool runs = state_runs(&u->state) || streq(u->state.active, "activating");
        u->method = "RestartUnit";
        if (runs)
                return !record_same(u);
        if (streq(u->state.load, "not-found"))
                diag_warn_at(u->task->apply->diag, "unit-missing", NULL, u->task->action->id,
                             "%s does not exist here, so its settings have no effect", u->name);
        else if (!record_same(u))
                record_write(u);
        return 0;
}

static bool is_left_out(Unit *u) {
        const Action *a = u->task->action;
        bool masked = streq(u->state.load, "masked");
        if (!a->optional || (!masked && !streq(u->state.load, "not-found")))
                return false;
        diag_warn_at(u->task->apply->diag, "unit-missing", NULL, a->id, "%s %s, so it is not started",
                     u->name, masked ? "is masked" : "does not exist here");
        return true;
}

/* kubelet would exit and restart every few seconds; with Type=simple unit and boot would count as
 * successful. */
static int kernel_suits(Unit *u) {
        const Action *a = u->task->action;
        _cleanup_(kernel_done) KernelState k = {};
        if (!a->unit.no_swap && !a->unit.defaults)
                return 0;
        kernel_read(u->task->apply->root, &k);
        _free_ char *swap = a->unit.no_swap ? kernel_swap_fault(&k) : NULL,
                    *settings = a->unit.defaults ? kernel_settings_fault(&k, NULL) : NULL;
        return swap || settings ? task_fail(u->task, -EINVAL, CAUSE_UNIT, "%s", swap ?: settings) : 0;
}

static int start_needed(Unit *u) {
        if (is_left_out(u))
                return 0;
        int r = unit_loaded(u);
        if (r < 0)
                return r;
        bool runs = state_runs(&u->state), begun = runs || streq(u->state.active, "activating");
        bool same = record_same(u) || (begun && unit_reads_nothing(u->task->action));
        if (same && (runs || state_ended_well(&u->state)))
                return 0;
        r = kernel_suits(u);
        if (r < 0)
                return r;
        /* joins a start in progress */
        u->method = !same && begun ? "RestartUnit" : "StartUnit";
        return 1;
}

/* "failed" counts as stopped. So does a queued start: it waits for this run, or reads its results. */
static int stop_needed(Unit *u) {
        u->method = "StopUnit";
        return !streq(u->state.active, "inactive") && !streq(u->state.active, "failed");
}

/* A oneshot of that name is a stand-in without a process. */
static bool is_runtime(const Unit *u) {
        return u->task->action->type == ACTION_START_UNIT && streq(u->name, "containerd.service") &&
               !streq(u->state.type, "oneshot");
}

static int on_checked(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        int r = unit_read_all(u, m);
        if (r < 0)
                return 0;
        ActionType type = u->task->action->type;
        r = type == ACTION_STOP_UNIT      ? stop_needed(u)
            : type == ACTION_RESTART_UNIT ? restart_needed(u)
                                          : start_needed(u);
        u->same = r == 0 && is_runtime(u);
        u->restarts_before = u->state.restarts;
        if (u->same)
                cri_ask(u);
        else if (r >= 0)
                task_checked(u->task, r > 0);
        return 0;
}

static bool is_stop(const Unit *u) {
        return u->task->action->type == ACTION_STOP_UNIT;
}

static Unit *unit_new(Task *t, const UnitKind *kind) {
        Unit *u = xcalloc(1, sizeof *u);
        *u = (Unit){ .task = t, .kind = kind, .name = t->action->target };
        t->data = u;
        return u;
}

int unit_look(Task *t, const UnitKind *kind, sd_bus_message_handler_t reply) {
        Unit *u = unit_new(t, kind);
        if (sd_bus_path_encode(UNIT_PATH, u->name, &u->path) < 0 || strchr(u->name, '/') || u->name[0] == '.')
                return task_fail(t, -EINVAL, CAUSE_INTERNAL, "it is not a unit name");
        int r = unit_connect(u, true);
        THEN(r, unit_get_all(u, reply));
        return r < 0 ? r : CHECK_LATER;
}

static void stop_ended(Unit *u) {
        if (streq(u->job_result, "done") && !stop_needed(u))
                task_end(u->task, OUTCOME_DONE);
        else
                unit_fail(u);
}

static int on_again(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Unit *u = userdata;
        u->timer = sd_event_source_disable_unref(u->timer);
        (void)!unit_start(u->task);
        return 0;
}

static bool start_again(Unit *u) {
        Task *t = u->task;
        uint64_t end = 0,
                 pause = pauses_sec[MIN((size_t)u->calls, ARRAY_SIZE(pauses_sec)) - 1] * USEC_PER_SEC;
        if (!t->action->retry || unit_was_skipped(u) || sd_event_source_get_time(t->deadline, &end) < 0 ||
            now_usec() + pause >= end)
                return false;
        if (sd_event_add_time_relative(t->apply->event, &u->timer, CLOCK_MONOTONIC, pause, USEC_PER_MSEC,
                                       on_again, u) < 0)
                return false;
        _free_ char *why = unit_failure(u, u->begun_usec);
        log_warning("%s: %s; attempt %u failed; the next one is in %llu s", t->action->id, why, u->calls,
                    pause / USEC_PER_SEC);
        return true;
}

static void start_missed(Unit *u) {
        /* It was up, and ended because nothing needs it: StopWhenUnneeded=true of nvidia-persistenced.service
         * on Ubuntu. */
        const UnitState *s = &u->state;
        if (u->task->action->lenient && streq(u->job_result, "done") && s->condition &&
            s->restarts == u->restarts_before && streq(s->result, "success") &&
            (streq(s->active, "inactive") || streq(s->active, "deactivating")))
                task_end(u->task, OUTCOME_DONE);
        else
                unit_fail(u);
}

/* containerd is watched until all else is done: the start of kubelet may stop it (Conflicts=, a drop-in). One
 * that dies each second may have answered before. */
static void unit_started(Unit *u) {
        static const char *const begun_is_ready[] = { "simple", "exec", "idle", NULL };
        bool settles = !u->same && strv_contains((char *const *)begun_is_ready, u->state.type);
        if (!settles && !u->asks) {
                task_end(u->task, OUTCOME_DONE);
                return;
        }
        task_watch(u->task);
        if (u->same)
                u->task->result->outcome = OUTCOME_UNCHANGED;
        u->task->lasts = !settles;
        if (settles && sd_event_add_time_relative(u->task->apply->event, &u->timer, CLOCK_MONOTONIC,
                                                  (u->asks ? RUNTIME_FACTOR : 1) * SETTLE_USEC, USEC_PER_MSEC,
                                                  on_settled, u) < 0)
                task_end(u->task, OUTCOME_DONE);
}

/* systemd sends changed properties before JobRemoved (bus_job_send_removed_signal() in dbus-job.c), so
 * u->state is the result. A later query could miss it: an ended unit is unloaded. */
static void start_ended(Unit *u) {
        const UnitState *s = &u->state;
        bool up = state_runs(s) || (state_ended_well(s) && s->condition);
        if (!streq(u->job_result, "done") || !up || s->restarts > u->restarts_before) {
                u->calls++;
                if (!start_again(u))
                        start_missed(u);
                return;
        }
        record_write(u);
        if (is_runtime(u))
                cri_ask(u);
        else
                unit_started(u);
}

/* systemd may have restarted it between our starts (Restart=, as in EKS images for fabric manager:
 * awslabs/amazon-eks-ami#2871). */
static bool started_meanwhile(Unit *u) {
        if (u->task->state != TASK_RUNNING || !u->timer || !state_runs(&u->state) || *u->state.job)
                return false;
        u->timer = sd_event_source_disable_unref(u->timer);
        u->restarts_before = u->state.restarts;
        RENEW(u->job_result, xstrdup("done"));
        start_ended(u);
        return true;
}

/* A watch has no deadline until containerd is down. */
static void watch_limit(Task *t, bool limited) {
        if (!limited)
                t->deadline = sd_event_source_disable_unref(t->deadline);
        else if (!t->deadline)
                (void)!task_arm(t);
}

static void start_changed(Unit *u) {
        if (!u->asks && started_meanwhile(u))
                return;
        bool watched = u->task->state == TASK_WATCHED, runs = state_runs(&u->state);
        /* a restart by a script lasts until its job ends, or hangs */
        if (u->asks && u->state.restarts == u->restarts_before && (runs || *u->state.job)) {
                u->task->lasts = watched && runs && !u->timer;
                if (watched)
                        watch_limit(u->task, !runs);
                return;
        }
        bool left = !runs || u->state.restarts > u->restarts_before;
        if ((!watched && !u->asks) || !left)
                return;
        unit_forget_record(u);
        start_missed(u);
}

int unit_on_queued(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        const char *job;
        if (!u) {
                if (!sd_bus_message_is_method_error(m, NULL) && sd_bus_message_read(m, "o", &job) >= 0)
                        job_cancel(sd_bus_message_get_bus(m), job);
                return 0;
        }
        int r = unit_reply(u, m);
        if (r < 0)
                return 0;
        r = sd_bus_message_read(m, "o", &job);
        if (r >= 0) {
                u->job = xstrdup(job);
                unit_look_for_deadlock(u, job);
        } else
                (void)task_fail(u->task, r, CAUSE_BUS, "the answer from systemd about %s is invalid",
                                u->name);
        return 0;
}

static const UnitKind start_kind = {
        .ended = start_ended, .changed = start_changed, .serves = unit_started, .failed = "did not stay up"
};
static const UnitKind stop_kind = { .ended = stop_ended, .failed = "did not stop" };
static const UnitKind reload_kind = {};

int unit_check(Task *t) {
        /* are its files to be moved? */
        int looked = t->action->type == ACTION_STOP_UNIT ? storage_check(t) : CHECK_NEEDED;
        if (looked != CHECK_NEEDED)
                return looked;
        int r = unit_look(t, t->action->type == ACTION_STOP_UNIT ? &stop_kind : &start_kind, on_checked);
        if (r >= 0 && !is_stop(t->data))
                inputs_find(t->apply->root, t->action, ((Unit *)t->data)->inputs);
        return r;
}

/* Restarts not to count as failures. systemd resets the count at a manual start, unless it is about to
 * restart the unit itself. A start then joins or triggers that restart, which counts. A restart continues the
 * count (until v252). */
static uint32_t restarts_granted(const Unit *u) {
        const UnitState *s = &u->state;
        bool start = streq(u->method, "StartUnit"), begun = state_runs(s) || streq(s->active, "activating");
        if (startswith(s->sub, "auto-restart"))
                return s->restarts + (start && streq(s->sub, "auto-restart"));
        return begun && start ? s->restarts : 0;
}

int unit_start(Task *t) {
        Unit *u = t->data;
        u->restarts_before = restarts_granted(u);
        u->begun_usec = now_usec();
        /* earlier failures would count for the start limit */
        if (!is_stop(u) && streq(u->state.active, "failed"))
                unit_tell(u, "ResetFailedUnit", u->name);
        if (!is_stop(u))        /* unknown until the end of the job */
                unit_forget_record(u);
        return unit_call(u, MANAGER_PATH, MANAGER, u->method, unit_on_queued, "ss", u->name, "replace");
}

char *unit_waiting(Task *t) {
        Unit *u = t->data;
        if (!u)
                return xstrdup(t->action->target);
        if (t->action->type == ACTION_RELOAD_MANAGER)
                return xstrdup("systemd had not finished reloading; see its messages with journalctl _PID=1");
        if (t->state == TASK_WATCHED)
                return xasprintf("another process is stopping or restarting %s, but that hangs (%s, %s); see "
                                 "systemctl list-jobs and journalctl -u %s",
                                 u->name, u->state.active, u->state.sub, u->state.id);
        if (u->asks)
                return xasprintf("%s did not say whether it serves CRI; see journalctl -u %s", u->name,
                                 u->state.id);
        if (u->timer)
                return unit_failure(u, t->result->begin_usec);
        if (u->call || !u->state.active)
                return xasprintf("systemd sent no answer about %s", u->name);
        _free_ char *others = u->job ? job_blockers(u) : NULL;
        const char *method = u->method ?: "", *type = streq(method, "StartUnit")     ? "start "
                                                      : streq(method, "RestartUnit") ? "restart "
                                                      : streq(method, "StopUnit")    ? "stop "
                                                                                     : "";
        if (others)
                return xasprintf("the %sjob for %s was waiting for %s; systemctl list-jobs shows more", type,
                                 u->name, others);
        return xasprintf("the %sjob for %s was running, and the unit was %s (%s); see journalctl -u "
                         "%s",
                         type, u->name, u->state.active, u->state.sub, u->name);
}

/* A start must not happen after we gave up. A restart continues, as cancelling it could leave a running unit
 * stopped. A job that is not yet known is cancelled with its reply. */
void unit_cancel(Task *t) {
        Unit *u = t->data;
        if (!u || (u->method && streq(u->method, "RestartUnit")))
                return;
        if (u->job && !u->foreign)
                job_cancel(t->apply->bus->bus, u->job);
        else if (u->call && u->reply == unit_on_queued)
                unit_leave_call(u);
}

Cause unit_late(const Task *t) {
        const Unit *u = t->data;
        Cause cause = u && u->asks && t->state != TASK_WATCHED ? CAUSE_CRI : unit_cause(t->action->target);
        return cause == CAUSE_UNIT ? CAUSE_DEADLINE : cause;
}

void unit_release(Task *t) {
        Unit *u = t->data;
        if (!u)
                return;
        u->timer = sd_event_source_disable_unref(u->timer);
        u->io = sd_event_source_disable_unref(u->io);
        unit_disconnect(u);
        unit_state_done(&u->state);
        FREE_ALL(u->path, u->job, u->job_result, u);
}

static int on_reloaded(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_reply(u, m) < 0)
                return 0;
        if (root_remove(u->task->apply->root, RELOAD_WANTED) < 0)
                log_debug("%s stays; the next run reloads again", RELOAD_WANTED);
        task_end(u->task, OUTCOME_DONE);
        return 0;
}

/* Files changed since systemd read them; see manager_expect(). At power-on all are read. */
int reload_check(Task *t) {
        (void)unit_new(t, &reload_kind);
        return root_exists(t->apply->root, RELOAD_WANTED) != 0 ? CHECK_NEEDED : CHECK_DONE_ALREADY;
}

/* Reload also reads DefaultEnvironment= of system.conf.d; running units keep their environment. */
int reload_start(Task *t) {
        Unit *u = t->data;
        int r = unit_connect(u, false);
        return r < 0 ? r : unit_call(u, MANAGER_PATH, MANAGER, "Reload", on_reloaded, "");
}
