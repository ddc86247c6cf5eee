/* SPDX-License-Identifier: Apache-2.0
 * A connection to systemd that was lost → another one, on which everything goes on. An update of the
 * package systemd calls systemctl daemon-reexec, which closes all; jobs and what systemd knows of units
 * outlast it. A call that was not answered is made again: none of ours does more the second time, but for a
 * restart. */
#include "apply/unit.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <unistd.h>

#define PAUSE_USEC (50 * USEC_PER_MSEC)

bool bus_is_open(const Bus *b) {
        return sd_bus_is_open(b->bus) > 0;
}

void unit_forget_call(Unit *u) {
        u->call = sd_bus_slot_unref(u->call);
        u->message = sd_bus_message_unref(u->message);
}

void unit_leave_call(Unit *u) {
        (void)sd_bus_slot_set_userdata(u->call, NULL);
        if (sd_bus_slot_set_floating(u->call, true) >= 0)       /* it is the bus's, until the answer */
                u->task->apply->bus->left = true;
        unit_forget_call(u);
}

/* Its job may have ended meanwhile, and nobody tells any more how; the unit's state does. */
static int on_found(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        if (unit_read_all(u, m) < 0)
                return 0;
        if (u->job && !streq(u->job, u->state.job))
                unit_job_removed(u, "done");
        else if (u->kind->changed)
                u->kind->changed(u);
        return 0;
}

/* A message belongs to the connection that it was made for. */
static int call_again(Unit *u) {
        sd_bus *bus = u->task->apply->bus->bus;
        sd_bus_message *old = TAKE_PTR(u->message);
        int r = sd_bus_message_new_method_call(bus, &u->message, SYSTEMD, sd_bus_message_get_path(old),
                                               sd_bus_message_get_interface(old),
                                               sd_bus_message_get_member(old));
        if (r >= 0)
                r = sd_bus_message_seal(old, 1, 0);
        if (r == -EPERM)                /* it was sent */
                r = 0;
        if (r >= 0)
                r = sd_bus_message_rewind(old, true);
        if (r >= 0)
                r = sd_bus_message_copy(u->message, old, true);
        if (r >= 0)
                r = sd_bus_call_async(bus, &u->call, u->message, u->reply, u, 0);
        sd_bus_message_unref(old);
        return r;
}

static int unit_resume(Unit *u) {
        int r = 0;
        for (size_t i = 0; i < u->n_blockers; i++)
                u->blockers[i] = sd_bus_slot_unref(u->blockers[i]);
        u->call = sd_bus_slot_unref(u->call);
        if (u->changed)
                r = unit_listen(u);
        if (r >= 0 && u->message)
                return call_again(u);
        return r >= 0 && u->changed ? unit_get_all(u, on_found) : r;
}

static int units_resume(Apply *a) {
        int r = 0;
        for (size_t i = 0; r >= 0 && i < a->n; i++) {
                Task *t = &a->tasks[i];
                if (task_is_unit(t))
                        r = unit_resume(t->data);
        }
        return r;
}

int bus_renew(Apply *a) {
        Bus *b = a->bus;
        int r = -ETIMEDOUT;
        b->lost_usec = b->lost_usec ?: now_usec();
        while (r < 0 && !apply_stopping(a) && now_usec() < b->lost_usec + BUS_RENEW_USEC) {
                usleep(PAUSE_USEC);
                b->bus = sd_bus_close_unref(b->bus);
                b->sender = NULL;
                r = bus_begin(a, b, b->lost_usec + BUS_RENEW_USEC);
                if (r >= 0)
                        r = units_resume(a);
        }
        if (r < 0 && !a->interrupted)   /* else the run is about to end, and says why */
                bus_broken(a, strerror(-r));
        return r;
}
