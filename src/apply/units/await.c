/* SPDX-License-Identifier: Apache-2.0
 * await-unit: a unit of the image may be at work on what comes next. It is waited for, never started or
 * stopped: the image decided whether it runs, and some of them refuse it (RefuseManualStart=yes, as of
 * nvidia-setup.service in awslabs/amazon-eks-ami). What has not begun has nothing to wait for. */
#include "apply/units/unit.h"

#include "base/str.h"

/* Also between two attempts of a unit that systemd restarts; since v254 its state may be "failed" there for a
 * moment. */
static bool is_busy(const UnitState *s) {
        return *s->job || streq(s->active, "activating") || streq(s->active, "deactivating") ||
               strstr(s->sub, "auto-restart");
}

/* The job is somebody else's, and may be another one each time systemd restarts the unit. */
static void follow(Unit *u) {
        u->foreign = true;
        if (!*u->state.job || (u->job && streq(u->job, u->state.job)))
                return;
        RENEW(u->job, xstrdup(u->state.job));
        unit_look_for_deadlock(u, u->job);
}

/* By what systemd answers; false: it is at work, and there is more to wait for. */
static bool is_over(Unit *u) {
        if (is_busy(&u->state))
                return false;
        if (streq(u->state.active, "failed"))
                unit_fail(u);
        else
                task_end(u->task, OUTCOME_UNCHANGED);
        return true;
}

static int on_asked_again(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_read_all(u, m) >= 0 && !is_over(u))
                follow(u);
        return 0;
}

/* A unit that is restarted has failed for an instant, in which its job ends and its properties are sent
 * (systemd: service_enter_dead() in service.c): an answer never falls into that. */
static void await_look(Unit *u) {
        if (is_busy(&u->state))
                follow(u);
        else if (streq(u->state.active, "failed"))
                (void)!unit_get_all(u, on_asked_again);
        else
                (void)is_over(u);
}

static int on_checked(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_read_all(u, m) < 0)
                return 0;
        if (!is_over(u))
                task_checked(u->task, true);
        return 0;
}

int await_check(Task *t) {
        static const UnitKind kind = {
                .ended = await_look, .changed = await_look, .failed = "failed", .history = true
        };
        return unit_look(t, &kind, on_checked);
}

int await_start(Task *t) {
        follow(t->data);
        return 0;
}
