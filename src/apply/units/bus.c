/* SPDX-License-Identifier: Apache-2.0
 * Calls to systemd (sd-bus, asynchronous) and their replies. Opened for the first unit action. */
#include "apply/units/unit.h"

#include "base/log.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#define NEVER_USEC (3600 * USEC_PER_SEC)     /* the action has the deadline, not the bus (25 s) */
#define PATIENCE_USEC (3 * USEC_PER_SEC)     /* at the end of the run */
#define PAUSE_USEC (50 * USEC_PER_MSEC)

#define PRIVATE_SOCKET "unix:path=/run/systemd/private"

bool bus_is_open(const Bus *b) {
        return sd_bus_is_open(b->bus) > 0;
}

static bool task_is_unit(const Task *t) {
        return task_in_flight(t) && t->data && action_is(t->action, ACTION_OF_UNITS);
}

static void bus_broken(Apply *a, const char *why) {
        a->bus->broken = true;
        for (size_t i = 0; i < a->n; i++)
                if (task_is_unit(&a->tasks[i]) && a->tasks[i].state == TASK_WATCHED)
                        task_end(&a->tasks[i], OUTCOME_DONE);
                else if (task_is_unit(&a->tasks[i]))
                        (void)task_fail(&a->tasks[i], -ECONNRESET, CAUSE_BUS,
                                        "lost the connection to systemd and could not reconnect (%s); "
                                        "journalctl _PID=1 shows what happened to systemd",
                                        why);
}

static int bus_renew(Apply *a);

static int on_disconnected(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Apply *a = userdata;
        if (a->n > 0 && sd_bus_message_get_bus(m) == a->bus->bus)       /* else the run is over */
                (void)bus_renew(a);
        return 0;
}

static int on_subscribed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        const sd_bus_error *error = sd_bus_message_get_error(m);
        Apply *a = userdata;
        if (error && !bus_is_open(a->bus))
                return 0;                       /* on_disconnected() follows */
        a->bus->lost_usec = 0;
        if (error && !sd_bus_error_has_name(error, SYSTEMD ".AlreadySubscribed"))
                bus_broken(a, error->message ?: error->name);
        return 0;
}

/* The last properties came earlier and still name the job. */
static void unit_job_removed(Unit *u, const char *result) {
        if (u->state.job && streq(u->state.job, u->job))
                *u->state.job = 0;
        RENEW(u->job, NULL);
        RENEW(u->job_result, xstrdup(result));
        u->kind->ended(u);
}

static int on_job_removed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Apply *a = userdata;
        const char *job, *unit, *result;
        uint32_t id;
        if (sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0)
                return 0;
        for (size_t i = 0; i < a->n; i++) {
                Unit *u = task_is_unit(&a->tasks[i]) ? a->tasks[i].data : NULL;
                /* several tasks may wait for one job */
                if (u && u->job && streq(u->job, job))
                        unit_job_removed(u, result);
        }
        return 0;
}

Bus *bus_free(Bus *b) {
        if (!b)
                return NULL;
        if (b->left && bus_is_open(b)) {
                /* systemd answers in order, so the pending calls are answered before this one */
                uint64_t end = now_usec() + PATIENCE_USEC;
                sd_bus_message *call = NULL;
                int r = sd_bus_message_new_method_call(b->bus, &call, SYSTEMD, MANAGER_PATH,
                                                       "org.freedesktop.DBus.Peer", "Ping");
                THEN(r, sd_bus_call(b->bus, call, PATIENCE_USEC, NULL, NULL));
                while (r > 0 && now_usec() < end)
                        r = sd_bus_process(b->bus, NULL);
                sd_bus_message_unref(call);
        }
        sd_bus_flush_close_unref(b->bus);
        FREE_ALL(b->own_unit, b);
        return NULL;
}
DEFINE_CLEANUP(Bus *, bus_free)

/* The private socket works before dbus.service and during its restart. The configuration phase runs before
 * sysinit.target: activating the bus would wait for this phase. */
static int bus_connect(Apply *a, Bus *b, uint64_t until_usec) {
        int r = 0;
        for (;;) {
                r = sd_bus_new(&b->bus);
                THEN(r, sd_bus_set_address(b->bus, PRIVATE_SOCKET));
                THEN(r, sd_bus_start(b->bus));
                if (r >= 0)
                        return 0;
                b->bus = sd_bus_unref(b->bus);
                if ((r != -ECONNREFUSED && r != -ENOENT) || now_usec() >= until_usec || apply_stopping(a) ||
                    sd_booted() <= 0)
                        break;
                usleep(PAUSE_USEC);     /* bus_renew(): systemd is about to listen again */
        }
        b->sender = SYSTEMD;
        return sd_bus_open_system(&b->bus);
}

/* Matches precede calls on the same connection, so no signal is missed. On a bus systemd needs a
 * subscription. */
static int bus_begin(Apply *a, Bus *b, uint64_t until_usec) {
        sd_event *event = NULL;
        int r = apply_event(a, &event);
        THEN(r, bus_connect(a, b, until_usec));
        THEN(r, sd_bus_set_method_call_timeout(b->bus, NEVER_USEC));
        THEN(r, sd_bus_attach_event(b->bus, event, SD_EVENT_PRIORITY_NORMAL));
        if (r >= 0)
                r = sd_bus_match_signal_async(b->bus, NULL, "org.freedesktop.DBus.Local",
                                              "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                              "Disconnected", on_disconnected, NULL, a);
        THEN(r, sd_bus_match_signal_async(b->bus, NULL, b->sender, MANAGER_PATH, MANAGER, "JobRemoved",
                                          on_job_removed, NULL, a));
        THEN(r, sd_bus_call_method_async(b->bus, NULL, SYSTEMD, MANAGER_PATH, MANAGER, "Subscribe",
                                         on_subscribed, a, ""));
        return r;
}

static int bus_fail(Unit *u, int r) {
        const Apply *a = u->task->apply;
        if (a->interrupted)             /* during the connect */
                return task_fail(u->task, -EINTR, CAUSE_INTERRUPTED, "stopped by %s",
                                 stop_name(a->interrupted));
        return task_fail(
                u->task, r, CAUSE_BUS,
                "nodestrap cannot reach systemd: %m; run it as root, on a machine that runs systemd");
}

static void unit_forget_call(Unit *u) {
        u->call = sd_bus_slot_unref(u->call);
        u->message = sd_bus_message_unref(u->message);
}

void unit_leave_call(Unit *u) {
        (void)sd_bus_slot_set_userdata(u->call, NULL);
        if (sd_bus_slot_set_floating(u->call, true) >= 0)       /* the bus owns it until the reply */
                u->task->apply->bus->left = true;
        unit_forget_call(u);
}

int unit_call(Unit *u, const char *path, const char *interface, const char *member,
              sd_bus_message_handler_t reply, const char *types, ...) {
        sd_bus *bus = u->task->apply->bus->bus;
        va_list ap;
        unit_forget_call(u);
        int r = sd_bus_message_new_method_call(bus, &u->message, SYSTEMD, path, interface, member);
        va_start(ap, types);
        THEN(r, sd_bus_message_appendv(u->message, types, ap));
        va_end(ap);
        u->reply = reply;
        if (r >= 0 && bus_is_open(u->task->apply->bus)) /* else after bus_renew() */
                r = sd_bus_call_async(bus, &u->call, u->message, reply, u, 0);
        return r < 0 ? bus_fail(u, r) : 0;
}

/* "" selects properties of unit and service. */
int unit_get_all(Unit *u, sd_bus_message_handler_t reply) {
        return unit_call(u, u->path, "org.freedesktop.DBus.Properties", "GetAll", reply, "s", "");
}

void unit_tell(Unit *u, const char *member, const char *name) {
        (void)sd_bus_call_method_async(u->task->apply->bus->bus, NULL, SYSTEMD, MANAGER_PATH, MANAGER, member,
                                       NULL, NULL, "s", name);
}

void job_cancel(sd_bus *bus, const char *job) {
        (void)sd_bus_call_method_async(bus, NULL, SYSTEMD, job, SYSTEMD ".Job", "Cancel", NULL, NULL, "");
}

int unit_reply(Unit *u, sd_bus_message *m) {
        const sd_bus_error *error = sd_bus_message_get_error(m);
        if (error && !bus_is_open(u->task->apply->bus))
                return -ENOTCONN;       /* bus_renew() calls again */
        unit_forget_call(u);
        if (!error)
                return 0;
        int r = -sd_bus_message_get_errno(m);
        if (sd_bus_error_has_name(error, SYSTEMD ".NoSuchUnit"))
                return task_fail(u->task, r, CAUSE_UNIT_MISSING, "%s does not exist on this machine",
                                 u->name);
        bool ours = startswith(error->name, SYSTEMD ".");
        return task_fail(u->task, r, ours ? unit_cause(u->name) : CAUSE_BUS, "systemd refused %s for %s: %s",
                         u->method ?: "the call", u->name, error->message ?: error->name);
}

/* type: of D-Bus, or 'j' for a job "(uo)", whose object path is kept. */
static const struct Property { const char *name; char type; size_t offset; } properties[] = {
        { "Id",              's', offsetof(UnitState, id)        },
        { "LoadState",       's', offsetof(UnitState, load)      },
        { "ActiveState",     's', offsetof(UnitState, active)    },
        { "SubState",        's', offsetof(UnitState, sub)       },
        { "Result",          's', offsetof(UnitState, result)    },
        { "Type",            's', offsetof(UnitState, type)      },
        { "UnitFileState",   's', offsetof(UnitState, file)      },
        { "Job",             'j', offsetof(UnitState, job)       },
        { "NRestarts",       'u', offsetof(UnitState, restarts)  },
        { "ActiveEnterTimestampMonotonic", 't', offsetof(UnitState, since) },
        { "ExecMainCode",    'i', offsetof(UnitState, code)      },
        { "ExecMainStatus",  'i', offsetof(UnitState, status)    },
        { "ConditionResult", 'b', offsetof(UnitState, condition) },
        { "RemainAfterExit", 'b', offsetof(UnitState, remains)   },
};

static bool is_text(const struct Property *p) {
        return p->type == 's' || p->type == 'j';
}

void unit_state_done(UnitState *s) {
        for (size_t i = 0; i < ARRAY_SIZE(properties); i++)
                if (is_text(&properties[i]))
                        free(*(char **)(void *)((char *)s + properties[i].offset));
        *s = (UnitState){};
}

static int property_read(sd_bus_message *m, const struct Property *p, UnitState *s) {
        void *field = (char *)s + p->offset;
        const char contents[] = { p->type, 0 };
        const char *text = "";
        uint32_t id = 1;
        int r, truth;
        if (is_text(p)) {
                r = p->type == 'j' ? sd_bus_message_read(m, "v", "(uo)", &id, &text)
                                   : sd_bus_message_read(m, "v", "s", &text);
                if (r >= 0)
                        RENEW(*(char **)field, xstrdup(id == 0 ? "" : text));
        } else if (p->type == 'b') {
                r = sd_bus_message_read(m, "v", contents, &truth);
                if (r >= 0)
                        *(bool *)field = truth;
        } else
                r = sd_bus_message_read(m, "v", contents, field);
        return r;
}

static int state_read(sd_bus_message *m, UnitState *s) {
        const char *name;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0) {
                const struct Property *p = NULL;
                r = sd_bus_message_enter_container(m, 'e', "sv");
                if (r <= 0)
                        break;
                r = sd_bus_message_read(m, "s", &name);
                if (r < 0)
                        break;
                for (size_t i = 0; i < ARRAY_SIZE(properties) && !p; i++)
                        if (streq(properties[i].name, name))
                                p = &properties[i];
                r = p ? property_read(m, p, s) : sd_bus_message_skip(m, "v");
                THEN(r, sd_bus_message_exit_container(m));
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int on_changed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        const char *interface;
        if (!u->state.active || sd_bus_message_read(m, "s", &interface) < 0)
                return 0;                       /* no reply yet */
        if (state_read(m, &u->state) >= 0 && u->kind->changed)
                u->kind->changed(u);
        return 0;
}

static int unit_listen(Unit *u) {
        Bus *b = u->task->apply->bus;
        u->changed = sd_bus_slot_unref(u->changed);
        return sd_bus_match_signal_async(b->bus, &u->changed, b->sender, u->path,
                                         "org.freedesktop.DBus.Properties", "PropertiesChanged", on_changed,
                                         NULL, u);
}

/* systemd accepts each alias in calls, but sends signals only for the primary name
 * (systemd:src/core/dbus-unit.c:bus_unit_send_change_signal()). */
static int unit_follow(Unit *u) {
        if (!*u->state.id)
                RENEW(u->state.id, xstrdup(u->name));
        if (streq(u->state.id, u->name))
                return 0;
        free(TAKE_PTR(u->path));
        int r = sd_bus_path_encode(UNIT_PATH, u->state.id, &u->path);
        return r >= 0 && u->changed ? unit_listen(u) : r;
}

int unit_read_all(Unit *u, sd_bus_message *m) {
        int r = unit_reply(u, m);
        if (r < 0)
                return r;
        unit_state_done(&u->state);
        r = state_read(m, &u->state);
        for (size_t i = 0; i < ARRAY_SIZE(properties); i++) {
                char **field = (char **)(void *)((char *)&u->state + properties[i].offset);
                if (is_text(&properties[i]) && !*field)
                        *field = xstrdup(""); /* e.g. a mount has no Type */
        }
        THEN(r, unit_follow(u));
        return r < 0 ? task_fail(u->task, r, CAUSE_BUS, "the answer from systemd about %s cannot be read: %m",
                                 u->name)
                     : 0;
}

/* The job may have ended unseen; the state of the unit shows the result. */
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

static int call_again(Unit *u) {
        sd_bus *bus = u->task->apply->bus->bus;
        sd_bus_message *old = TAKE_PTR(u->message);
        int r = sd_bus_message_new_method_call(bus, &u->message, SYSTEMD, sd_bus_message_get_path(old),
                                               sd_bus_message_get_interface(old),
                                               sd_bus_message_get_member(old));
        THEN(r, sd_bus_message_seal(old, 1, 0));
        if (r == -EPERM)                /* it was sent */
                r = 0;
        THEN(r, sd_bus_message_rewind(old, true));
        THEN(r, sd_bus_message_copy(u->message, old, true));
        THEN(r, sd_bus_call_async(bus, &u->call, u->message, u->reply, u, 0));
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

/* An update of the package systemd runs systemctl daemon-reexec, which closes connections but keeps jobs and
 * units. Unanswered calls are repeated; all are idempotent, except a restart. */
static int bus_renew(Apply *a) {
        Bus *b = a->bus;
        int r = -ETIMEDOUT;
        b->lost_usec = b->lost_usec ?: now_usec();
        while (r < 0 && !apply_stopping(a) && now_usec() < b->lost_usec + BUS_RENEW_USEC) {
                usleep(PAUSE_USEC);
                b->bus = sd_bus_close_unref(b->bus);
                b->sender = NULL;
                r = bus_begin(a, b, b->lost_usec + BUS_RENEW_USEC);
                for (size_t i = 0; r >= 0 && i < a->n; i++)
                        if (task_is_unit(&a->tasks[i]))
                                r = unit_resume(a->tasks[i].data);
        }
        if (r < 0 && !a->interrupted)   /* else the end of the run reports */
                bus_broken(a, strerror(-r));
        return r;
}

int unit_connect(Unit *u, bool signals) {
        Apply *a = u->task->apply;
        int r = 0;
        if (!a->bus) {
                _cleanup_(bus_freep) Bus *b = xcalloc(1, sizeof *b);
                r = bus_begin(a, b, now_usec() + BUS_RENEW_USEC);
                if (r < 0)
                        return bus_fail(u, r);
                (void)sd_pid_get_unit(0, &b->own_unit);
                a->bus = TAKE_PTR(b);
        } else if (!a->bus->broken && !bus_is_open(a->bus))
                r = bus_renew(a);
        if (r >= 0 && a->bus->broken)
                r = -ECONNRESET;
        if (r >= 0 && signals)
                r = unit_listen(u);
        return r < 0 ? bus_fail(u, r) : 0;
}

void unit_disconnect(Unit *u) {
        unit_forget_call(u);
        u->changed = sd_bus_slot_unref(u->changed);
        for (size_t i = 0; i < u->n_blockers; i++)
                u->blockers[i] = sd_bus_slot_unref(u->blockers[i]);
}

char *job_blockers(Unit *u) {
        sd_bus *bus = u->task->apply->bus->bus;
        sd_bus_message *call = NULL, *reply = NULL;
        char **units = NULL, *text = NULL;
        const char *unit;
        int r = sd_bus_message_new_method_call(bus, &call, SYSTEMD, u->job, SYSTEMD ".Job", "GetBefore");
        THEN(r, sd_bus_call(bus, call, ANSWER_USEC, NULL, &reply));
        THEN(r, sd_bus_message_enter_container(reply, 'a', "(usssoo)"));
        while (r >= 0 && sd_bus_message_read(reply, "(usssoo)", NULL, &unit, NULL, NULL, NULL, NULL) > 0)
                strv_add(&units, unit);
        if (units)
                text = strv_join(units, ", ");
        strv_free(units);
        sd_bus_message_unref(call);
        sd_bus_message_unref(reply);
        return text;
}

static int on_blockers(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        Unit *u = userdata;
        const char *own = u->task->apply->bus->own_unit, *unit, *job;
        if (!u->job || sd_bus_message_is_method_error(m, NULL) ||
            sd_bus_message_enter_container(m, 'a', "(usssoo)") < 0)
                return 0;                       /* the job has ended */
        while (sd_bus_message_read(m, "(usssoo)", NULL, &unit, NULL, NULL, &job, NULL) > 0) {
                /* nodestrap-run waits for the devices lock (devices-lock.c), unknown to systemd. */
                if (!(streq(unit, own) ||
                      (streq(own, "nodestrap-devices.service") && streq(unit, "nodestrap-run.service")))) {
                        unit_look_for_deadlock(u, job);
                        continue;
                }
                if (u->foreign && u->task->action->optional) {
                        task_end(u->task, OUTCOME_UNCHANGED);
                        return 0;
                }
                if (!u->foreign)
                        job_cancel(u->task->apply->bus->bus, u->job);
                (void)task_fail(u->task, -EDEADLK, CAUSE_UNIT,
                                "%s would never start: it is ordered after %s, which waits for it; "
                                "remove its After=%s, or the Before=%s in that unit",
                                u->name, unit, unit, u->name);
                return 0;
        }
        return 0;
}

void unit_look_for_deadlock(Unit *u, const char *job) {
        Bus *b = u->task->apply->bus;
        if (!b->own_unit || u->n_blockers >= BLOCKERS_MAX)
                return;
        if (sd_bus_call_method_async(b->bus, &u->blockers[u->n_blockers], SYSTEMD, job, SYSTEMD ".Job",
                                     "GetBefore", on_blockers, u, "") >= 0)
                u->n_blockers++;
}
