/* SPDX-License-Identifier: Apache-2.0
 * mask-unit and unmask-unit: MaskUnitFiles and UnmaskUnitFiles of systemd in /run, so the next boot is
 * unaffected.
 *
 * A file in /etc/systemd/system overrides /run/systemd/system. EKS images have units there, such as that of
 * fabric manager, copied by nvidia-setup.service (awslabs/amazon-eks-ami#2795). CONTROL_DIR overrides both
 * and is volatile; an empty file masks like a link to /dev/null (systemd.unit(5)).
 *
 * A unit is stopped before it is masked, while systemd knows how, and checked again afterwards, as it may
 * have been started meanwhile. */
#include "apply/units/unit.h"
#include "apply/file.h"

#include "base/str.h"

#include <errno.h>

#define STOPS_MAX   2
#define CONTROL_DIR "/run/systemd/system.control"

static bool is_stopped(const UnitState *s) {
        return !*s->job && (streq(s->active, "inactive") || streq(s->active, "failed"));
}

static bool is_masked(const UnitState *s) {
        return streq(s->load, "masked");
}

static void mask_or_unmask_step(Unit *u);

static int on_looked(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_read_all(u, m) >= 0)
                mask_or_unmask_step(u);
        return 0;
}

static int on_reloaded(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_reply(u, m) >= 0)
                (void)!unit_get_all(u, on_looked);
        return 0;
}

static int reload(Unit *u) {
        return unit_call(u, MANAGER_PATH, MANAGER, "Reload", on_reloaded, "");
}

static int on_written(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_reply(u, m) >= 0)
                (void)!reload(u);
        return 0;
}

static int mask_write(Unit *u) {
        u->method = "MaskUnitFiles";
        u->written++;
        return unit_call(u, MANAGER_PATH, MANAGER, u->method, on_written, "asbb", 1, u->name, true, false);
}

static int stop(Unit *u) {
        u->method = "StopUnit";
        u->calls++;
        return unit_call(u, MANAGER_PATH, MANAGER, u->method, unit_on_queued, "ss", u->name, "replace");
}

/* A file in /etc hides the first mask. */
static int mask_write_over(Unit *u) {
        _free_ char *path = xasprintf(CONTROL_DIR "/%s", u->name);
        int r = root_replace_volatile(u->task->apply->root, path, "", 0, 0644);
        u->written++;
        return r < 0 ? task_fail_file(u->task, r, "written", path) : reload(u);
}

static void mask_step(Unit *u) {
        bool stopped = is_stopped(&u->state);
        if (!stopped && u->calls < STOPS_MAX)
                (void)stop(u);
        else if (!stopped)
                unit_fail(u);
        else if (is_masked(&u->state)) {
                /* A failed unit should leave systemctl --failed, e.g. IMEX without a node list. It may also
                 * fail during the stop, which its last properties may not show yet. */
                if (u->calls > 0 || streq(u->state.active, "failed"))
                        unit_tell(u, "ResetFailedUnit", u->name);
                task_end(u->task, OUTCOME_DONE);
        } else if (u->written == 0)
                (void)mask_write(u);
        else if (u->written == 1)
                (void)mask_write_over(u);
        else {
                diag_warn_at(u->task->apply->diag, "unit-not-masked", NULL, u->task->action->id,
                             "%s is not running, but may start again: a file overrides every runtime mask; "
                             "systemctl cat %s shows it",
                             u->name, u->name);
                task_end(u->task, u->calls > 0 ? OUTCOME_DONE : OUTCOME_UNCHANGED);
        }
}

static int unmask_write(Unit *u) {
        _free_ char *path = xasprintf(CONTROL_DIR "/%s", u->name);
        int r = root_remove(u->task->apply->root, path);
        if (r < 0)
                return task_fail_file(u->task, r, "removed", path);
        u->method = "UnmaskUnitFiles";
        u->written++;
        return unit_call(u, MANAGER_PATH, MANAGER, u->method, on_written, "asb", 1, u->name, true);
}

static void unmask_step(Unit *u) {
        if (!is_masked(&u->state))
                task_end(u->task, OUTCOME_DONE);
        else if (u->written > 0 || !streq(u->state.file, "masked-runtime"))
                (void)task_fail(u->task, -EPERM, unit_cause(u->name),
                                "the plan starts %s, but it is permanently masked; run systemctl "
                                "unmask %s",
                                u->name, u->name);
        else
                (void)unmask_write(u);
}

static void mask_or_unmask_step(Unit *u) {
        if (u->task->action->type == ACTION_MASK_UNIT)
                mask_step(u);
        else
                unmask_step(u);
}

static int on_checked(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_read_all(u, m) < 0)
                return 0;
        bool mask = u->task->action->type == ACTION_MASK_UNIT, missing = streq(u->state.load, "not-found");
        task_checked(u->task, mask ? !(missing || is_masked(&u->state)) || !is_stopped(&u->state)
                                   : is_masked(&u->state));
        return 0;
}

int mask_check(Task *t) {
        static const UnitKind kind = { .ended = mask_step, .failed = "did not stop" };
        return unit_look(t, &kind, on_checked);
}

int mask_start(Task *t) {
        mask_or_unmask_step(t->data);
        return 0;
}
