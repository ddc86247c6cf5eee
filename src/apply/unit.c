/* SPDX-License-Identifier: Apache-2.0
 * reload-manager, restart-unit, start-unit, stop-unit → calls to systemd (org.freedesktop.systemd1(5)), all of them asynchronous. A start
 * is over when the unit's own job is: JobRemoved is matched before the call, nothing is polled.
 *
 * With Type=notify, dbus, forking and oneshot the job ends when the service is ready. With simple, exec and idle it ends when
 * the process was begun, and a program that exits at once has "started": such a unit is looked at for one more second. What
 * waits for it does not wait for that second; only the end of the run does, when nothing else takes as long. */
#include "apply/unit.h"
#include "apply/storage.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTLE_USEC (1 * USEC_PER_SEC)

static int on_settled(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Unit *u = userdata;
        task_end(u->task, OUTCOME_DONE);
        return 0;
}

/* ---- with which inputs was it started last? ---- */

/* By what the plan says of the files, and by which files they are: one that somebody has edited since, or that was written anew over
 * such an edit, is another than the unit has read. */
static void inputs_find(Unit *u) {
        const Action *a = u->task->action;
        Text all = {};
        text_add(&all, "%s\n", a->unit.inputs);
        for (char **path = a->unit.reads; path && *path; path++) {
                struct stat st = {};
                int fd = root_open(u->task->apply->root, *path, O_PATH);
                if (fd >= 0 && fstat(fd, &st) == 0)
                        text_add(&all, "%s %ju %jd %jd.%09ld\n", *path, (uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
                                 st.st_mtim.tv_nsec);
                if (fd >= 0)
                        close(fd);
        }
        sha256_hex(all.data, all.size, u->inputs);
        text_done(&all);
}

static char *record_path(const Unit *u) {
        return xasprintf(STARTED_DIR "/%s", u->name);
}

static bool record_same(const Unit *u) {
        _cleanup_(freep) char *path = record_path(u), *line = NULL;
        return root_read_line(u->task->apply->root, path, &line) >= 0 && streq(line, u->inputs);
}

static void record_write(const Unit *u) {
        _cleanup_(freep) char *path = record_path(u), *line = xasprintf("%s\n", u->inputs);
        int r = root_replace_volatile(u->task->apply->root, path, line, strlen(line), 0644);
        if (r < 0)
                diag_warn(u->task->apply->diag, "record-not-written", NULL, path, "%s; the next run restarts %s once more", strerror(-r), u->name);
}

static void record_remove(const Unit *u) {
        _cleanup_(freep) char *path = record_path(u);
        (void)!root_remove(u->task->apply->root, path);
}

/* ---- is anything to be done? ---- */

static bool state_runs(const UnitState *s) {
        return streq(s->active, "active") || streq(s->active, "reloading") || streq(s->active, "refreshing");
}

/* A oneshot that does not stay active has done its work when it ended well. */
static bool state_ended_well(const UnitState *s) {
        return streq(s->type, "oneshot") && !s->remains && streq(s->active, "inactive") && streq(s->result, "success");
}

static int unit_loaded(Unit *u) {
        const UnitState *s = &u->state;
        if (streq(s->load, "not-found"))
                return task_fail(u->task, -ENOENT, CAUSE_UNIT_MISSING,
                                 "%s does not exist on this machine; install the package it belongs to, or use an AMI that has it", u->name);
        if (streq(s->load, "masked"))
                return task_fail(u->task, -EPERM, CAUSE_UNIT, "%s is masked; systemctl unmask %s", u->name, u->name);
        if (!streq(s->load, "loaded"))
                return task_fail(u->task, -EINVAL, CAUSE_UNIT, "%s cannot be loaded (%s); systemd-analyze verify %s says why", u->name, s->load, u->name);
        return 0;
}

/* Only a running unit has old settings in its memory. The record is written all the same: what starts later reads the new. */
static int restart_needed(Unit *u) {
        bool runs = state_runs(&u->state) || streq(u->state.active, "activating");
        u->method = "RestartUnit";
        if (runs)
                return !record_same(u);
        if (streq(u->state.load, "not-found"))
                diag_warn(u->task->apply->diag, "unit-missing", NULL, u->task->action->id, "%s does not exist here, so its settings have no effect", u->name);
        else if (!record_same(u))
                record_write(u);
        return 0;
}

static int start_needed(Unit *u) {
        int r = unit_loaded(u);
        if (r < 0)
                return r;
        bool same = record_same(u), runs = state_runs(&u->state);
        if (same && (runs || state_ended_well(&u->state)))
                return 0;
        u->method = !same && (runs || streq(u->state.active, "activating")) ? "RestartUnit" : "StartUnit";
        return 1;
}

/* "failed" is stopped as well. A start that is queued does not count: it waits for this run, or reads what the run has left. */
static int stop_needed(Unit *u) {
        u->method = "StopUnit";
        return !streq(u->state.active, "inactive") && !streq(u->state.active, "failed");
}

static int needed(Unit *u) {
        ActionType type = u->task->action->type;
        return type == ACTION_STOP_UNIT ? stop_needed(u) : type == ACTION_RESTART_UNIT ? restart_needed(u) : start_needed(u);
}

static int on_checked(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        int r = unit_read_all(u, m);
        if (r < 0)
                return 0;
        r = needed(u);
        if (r >= 0)
                task_checked(u->task, r > 0);
        return 0;
}

static bool is_stop(const Unit *u) {
        return u->task->action->type == ACTION_STOP_UNIT;
}

static Unit *unit_new(Task *t) {
        Unit *u = xcalloc(1, sizeof *u);
        *u = (Unit){ .task = t, .name = t->action->target };
        t->data = u;
        return u;
}

int unit_check(Task *t) {
        int looked = t->action->type == ACTION_STOP_UNIT ? storage_check(t) : CHECK_NEEDED;     /* does anything of it move? */
        if (looked != CHECK_NEEDED)
                return looked;
        Unit *u = unit_new(t);
        if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", u->name, &u->path) < 0 || strchr(u->name, '/') || u->name[0] == '.')
                return task_fail(t, -EINVAL, CAUSE_INTERNAL, "it is not a unit name");
        inputs_find(u);
        int r = unit_connect(u, true);
        if (r >= 0)
                r = unit_get_all(u, on_checked);
        return r < 0 ? r : CHECK_LATER;
}

/* ---- the job ---- */

static void stop_ended(Unit *u) {
        if (streq(u->job_result, "done") && !stop_needed(u))
                task_end(u->task, OUTCOME_DONE);
        else
                unit_fail(u);
}

/* systemd sends the unit's changed properties before it says that the job is gone (bus_job_send_removed_signal() in its
 * dbus-job.c), so what stands in u->state now is what became of it. Asking again could be too late: a unit that ended is
 * unloaded, and what is loaded anew has never run. */
void unit_job_removed(Unit *u, const char *result) {
        static const char *const begun_is_ready[] = { "simple", "exec", "idle", NULL };
        const UnitState *s = &u->state;
        u->job = (free(u->job), NULL);
        u->job_result = (free(u->job_result), xstrdup(result));
        if (is_stop(u)) {
                stop_ended(u);
                return;
        }
        bool up = state_runs(s) || (state_ended_well(s) && s->condition);
        if (!streq(result, "done") || !up || s->restarts > u->restarts_before) {
                unit_fail(u);
                return;
        }
        record_write(u);
        if (!strv_contains((char *const *)begun_is_ready, s->type)) {
                task_end(u->task, OUTCOME_DONE);
                return;
        }
        task_watch(u->task);
        if (sd_event_add_time_relative(u->task->apply->event, &u->settle, CLOCK_MONOTONIC, SETTLE_USEC, USEC_PER_MSEC, on_settled, u) < 0)
                task_end(u->task, OUTCOME_DONE);
}

void unit_changed(Unit *u) {
        bool left = !state_runs(&u->state) || u->state.restarts > u->restarts_before;
        if (u->task->state != TASK_WATCHED || !left)
                return;
        record_remove(u);
        unit_fail(u);
}

static int on_queued(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        const char *job;
        int r = unit_reply(u, m);
        if (r < 0)
                return 0;
        r = sd_bus_message_read(m, "o", &job);
        if (r < 0) {
                (void)task_fail(u->task, r, CAUSE_BUS, "systemd's answer about %s cannot be read", u->name);
                return 0;
        }
        u->job = xstrdup(job);
        unit_look_for_deadlock(u, job);
        return 0;
}

int unit_start(Task *t) {
        Unit *u = t->data;
        /* systemd counts anew after a start by hand, except where it is about to restart the unit by itself. */
        u->restarts_before = streq(u->state.active, "activating") && streq(u->method, "StartUnit") ? u->state.restarts : 0;
        if (is_stop(u))         /* what it was last started with remains true */
                return unit_call(u, MANAGER_PATH, MANAGER, u->method, on_queued, "ss", u->name, "replace");
        if (streq(u->state.active, "failed"))   /* or the failures before us would count against its start limit */
                unit_tell(u, "ResetFailedUnit", u->name);
        record_remove(u);       /* from here until the end of the job nobody knows which settings it has, should we not see that end */
        return unit_call(u, MANAGER_PATH, MANAGER, u->method, on_queued, "ss", u->name, "replace");
}

char *unit_waiting(Task *t) {
        Unit *u = t->data;
        if (!u)
                return xstrdup(t->action->target);
        if (t->action->type == ACTION_RELOAD_MANAGER)
                return xstrdup("systemd had not finished reloading; look at its messages with journalctl _PID=1");
        if (!u->job)
                return xasprintf("systemd did not answer about %s", u->name);
        const char *type = is_stop(u) ? "stop" : streq(u->method, "RestartUnit") ? "restart" : "start";
        _cleanup_(freep) char *others = job_blockers(u);
        if (others)
                return xasprintf("the %s job of %s was waiting for %s; systemctl list-jobs shows more", type, u->name, others);
        char **lines = journal_tail(u->name, t->result->begin_usec, 1);
        char *text = xasprintf("the %s job of %s was running, the unit %s (%s)%s%s%s", type, u->name, u->state.active, u->state.sub,
                               lines ? "; last said \"" : "; it said nothing", lines ? lines[0] : "", lines ? "\"" : "");
        strv_free(lines);
        return text;
}

/* Or systemd would start it behind our back when we have given up. */
void unit_cancel(Task *t) {
        Unit *u = t->data;
        if (u && u->job)
                job_cancel(u);
}

void unit_release(Task *t) {
        Unit *u = t->data;
        if (!u)
                return;
        u->settle = sd_event_source_disable_unref(u->settle);
        unit_disconnect(u);
        unit_state_done(&u->state);
        free(u->path);
        free(u->job);
        free(u->job_result);
        free(u);
}

/* ---- reload-manager ---- */

static int on_reloaded(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_reply(u, m) < 0)
                return 0;
        if (root_remove(u->task->apply->root, RELOAD_WANTED) < 0)
                log_debug("%s stays; the next run reloads once more", RELOAD_WANTED);
        task_end(u->task, OUTCOME_DONE);
        return 0;
}

/* A reload is wanted by whatever changed a file that systemd has read; see manager_expect(). What was there at power-on is loaded. */
int reload_check(Task *t) {
        (void)unit_new(t);
        return root_exists(t->apply->root, RELOAD_WANTED) != 0 ? CHECK_NEEDED : CHECK_DONE_ALREADY;
}

/* Reload reads unit files and system.conf.d anew, DefaultEnvironment= with it; what already runs keeps its environment. */
int reload_start(Task *t) {
        Unit *u = t->data;
        int r = unit_connect(u, false);
        return r < 0 ? r : unit_call(u, MANAGER_PATH, MANAGER, "Reload", on_reloaded, "");
}
