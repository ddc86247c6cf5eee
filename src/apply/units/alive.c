/* SPDX-License-Identifier: Apache-2.0
 * check-unit: a daemon still lives before a step that needs it. A dead one is "active (exited)" with
 * Type=simple and RemainAfterExit=yes, as fabric manager on Bottlerocket. So is a living child of a oneshot:
 * only its processes tell. After a restart it must stay up for a moment. */
#include "apply/units/unit.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define STAY_USEC      (1 * USEC_PER_SEC)
#define RESTARTED_USEC (5 * USEC_PER_SEC)       /* after a restart by systemd, more may follow */
#define DAEMON         "fabricmanager"          /* part of the name nv-fabricmanager */
#define SUBNET_MANAGER "/run/nvidia-fabricmanager/nvlsm.pid"    /* from the vendor unit */
#define CMDLINE_MAX    (64 << 10)

static void alive_look(Unit *u);

static int on_state(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_read_all(u, m) >= 0)
                alive_look(u);
        return 0;
}

static int on_stayed(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Unit *u = userdata;
        u->timer = sd_event_source_disable_unref(u->timer);
        (void)!unit_get_all(u, on_state);
        return 0;
}

/* The unit script on HGX B200 and B300 also starts NVLSM. A missing file proves nothing. */
static bool subnet_manager_died(const Root *root) {
        _free_ char *pid = NULL, *path = NULL, *command = NULL;
        size_t size = 0;
        if (root_read_line(root, SUBNET_MANAGER, &pid) < 0 || !*pid || pid[strspn(pid, "0123456789")])
                return false;
        path = xasprintf("/proc/%s/cmdline", pid);
        return root_read(root, path, CMDLINE_MAX, &command, &size) < 0 || !memmem(command, size, "nvlsm", 5);
}

static void alive_stay(Unit *u) {
        uint64_t age = now_usec() - MIN(u->state.since, now_usec()),
                 stay = u->state.restarts > 0 ? RESTARTED_USEC : STAY_USEC;
        bool waits = age < stay && (u->timer || sd_event_add_time_relative(u->task->apply->event, &u->timer,
                                                                           CLOCK_MONOTONIC, stay - age,
                                                                           USEC_PER_MSEC, on_stayed, u) >= 0);
        if (waits)
                return;
        if (!subnet_manager_died(u->task->apply->root))
                return task_end(u->task, OUTCOME_UNCHANGED);
        (void)task_fail(u->task, -ESRCH, unit_cause(u->name),
                        "NVLSM has died since %s started it (its PID was in " SUBNET_MANAGER "), so the "
                        "NVLink switches have no subnet manager. /var/log/nvlsm.log and journalctl -u %s "
                        "show why; systemctl restart %s starts NVLSM again",
                        u->name, u->name, u->name);
}

static int on_processes(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        const char *group, *command;
        uint32_t pid;
        bool found = false;
        if (unit_reply(u, m) < 0)
                return 0;
        if (sd_bus_message_enter_container(m, 'a', "(sus)") >= 0)
                while (!found && sd_bus_message_read(m, "(sus)", &group, &pid, &command) > 0)
                        found = strstr(command, DAEMON);
        if (found)
                alive_stay(u);
        else
                unit_fail(u);
        return 0;
}

static void alive_look(Unit *u) {
        const UnitState *s = &u->state;
        if (u->task->state != TASK_RUNNING || u->call)
                return;
        if (state_is_busy(s))
                u->timer = sd_event_source_disable_unref(u->timer);     /* wait for its end */
        else if (!state_runs(s)) {
                /* systemd unloads a unit that succeeded and forgets its result. */
                if (streq(u->state.active, "inactive") && u->state.code == 0)
                        RENEW(u->job_result, xstrdup("gone"));
                unit_fail(u);
        } else if (streq(s->sub, "exited"))
                (void)!unit_call(u, MANAGER_PATH, MANAGER, "GetUnitProcesses", on_processes, "s", u->name);
        else
                alive_stay(u);
}

int alive_check(Task *t) {
        static const UnitKind kind = { .ended = alive_look, .changed = alive_look,
                                       .failed = "has died since it started", .history = true };
        return unit_look(t, &kind, on_state);
}

char *alive_waiting(Task *t) {
        Unit *u = t->data;
        return u && u->state.active ? unit_failure(u, 0) : unit_waiting(t);
}
