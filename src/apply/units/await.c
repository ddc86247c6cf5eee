/* SPDX-License-Identifier: Apache-2.0
 * await-unit: waits for a unit of the image that may still work. It never starts or stops it: the image
 * decides that. Some units refuse it (RefuseManualStart=yes, as of nvidia-setup.service in
 * awslabs/amazon-eks-ami). A unit that has not begun is not awaited. */
#include "apply/units/unit.h"

#include "base/str.h"

/* A foreign job; each restart by systemd makes another one. */
static void follow(Unit *u) {
        u->foreign = true;
        if (!*u->state.job || (u->job && streq(u->job, u->state.job)))
                return;
        RENEW(u->job, xstrdup(u->state.job));
        unit_look_for_deadlock(u, u->job);
}

static bool is_over(Unit *u) {
        if (state_is_busy(&u->state))
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

/* A restarted unit seems failed briefly in signals (systemd: service_enter_dead() in service.c), but not in a
 * reply. So ask systemd again. */
static void await_look(Unit *u) {
        if (state_is_busy(&u->state))
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
