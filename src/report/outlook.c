/* SPDX-License-Identifier: Apache-2.0
 * status.json, locks and systemd jobs → current work, and can a wait still succeed? The run phase repeats
 * a failed devices phase, and a person may repeat a failed boot. So the last verdict counts only when no
 * init runs. A kubelet that runs anyway may still join. */
#include "report/status.h"

#include "base/json.h"
#include "base/lock.h"
#include "base/time.h"
#include "kube/kube.h"

#include <errno.h>
#include <systemd/sd-bus.h>

#define SYSTEMD "org.freedesktop.systemd1"
#define BUS_USEC (2 * USEC_PER_SEC)

/* Units that run init: ours and those of the EKS image (which may call nodestrap); and kubelet last. */
static const char *const units[] = { "nodestrap-config.service", "nodestrap-devices.service",
                                     "nodestrap-run.service",    "nodeadm-config.service",
                                     "nodeadm-run.service",      "kubelet.service" };
static const struct { const char *unit; int phase; } phase_units[] = {
        { "nodestrap-config.service", ONGOING_CONFIG }, { "nodestrap-devices.service", ONGOING_DEVICES },
        { "nodestrap-run.service", ONGOING_RUN },       { "nodestrap-joined.service", ONGOING_JOIN },
        { "nodeadm-config.service", ONGOING_CONFIG },   { "nodeadm-run.service", ONGOING_RUN },
};

static int call_list(sd_bus *bus, const char *const *names, size_t n, sd_bus_message **ret) {
        sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, SYSTEMD, "/org/freedesktop/systemd1",
                                               SYSTEMD ".Manager", "ListUnitsByNames");
        THEN(r, sd_bus_message_open_container(m, 'a', "s"));
        for (size_t i = 0; i < n; i++)
                THEN(r, sd_bus_message_append_basic(m, 's', names[i]));
        THEN(r, sd_bus_message_close_container(m));
        THEN(r, sd_bus_call(bus, m, BUS_USEC, NULL, ret));
        sd_bus_message_unref(m);
        return r;
}

typedef void UnitSeen(size_t i, const char *unit, const char *active, uint32_t job, void *to);

/* Hands over the units of the machine itself that systemd knows, in the order of names. */
static void see_units(const Root *root, const char *const *names, size_t n, UnitSeen *seen, void *to) {
        sd_bus *bus = NULL;
        sd_bus_message *reply = NULL;
        const char *unit, *active;
        uint32_t job;
        if (root_is_host(root) && sd_bus_open_system(&bus) >= 0 && call_list(bus, names, n, &reply) >= 0 &&
            sd_bus_message_enter_container(reply, 'a', "(ssssssouso)") >= 0)
                for (size_t i = 0; sd_bus_message_read(reply, "(ssssssouso)", &unit, NULL, NULL, &active,
                                                       NULL, NULL, NULL, &job, NULL, NULL) > 0; i++)
                        seen(i, unit, active, job, to);
        sd_bus_message_unref(reply);
        sd_bus_flush_close_unref(bus);
}

typedef struct Work { bool with_kubelet, any; } Work;

/* Does it have a job, or is it at work? init units work while they start, kubelet also once up. By index,
 * since an alias has another name. */
static void see_work(size_t i, _unused_ const char *unit, const char *active, uint32_t job, void *to) {
        Work *work = to;
        bool kubelet = i == ARRAY_SIZE(units) - 1;
        bool works = job > 0 || streq(active, "activating") || (kubelet && streq(active, "active"));
        work->any |= works && (work->with_kubelet || !kubelet);
}

static bool units_have_work(const Root *root, bool with_kubelet) {
        Work work = { .with_kubelet = with_kubelet };
        see_units(root, units, ARRAY_SIZE(units), see_work, &work);
        return work.any;
}

static void see_phase(_unused_ size_t i, const char *unit, const char *active, uint32_t job, void *to) {
        __auto_type row = FIND(one, phase_units, ARRAY_SIZE(phase_units), streq(one->unit, unit));
        if (!row)
                return;
        UnitWork *work = &((UnitWork *)to)[row->phase];
        /* nodestrap-joined is active while it waits. */
        bool works = streq(active, "activating") || (row->phase == ONGOING_JOIN && streq(active, "active"));
        *work = MAX(*work, works ? UNIT_WORKS : job > 0 ? UNIT_WAITS : UNIT_IDLE);
}

/* Current work of units and processes, as far as this user may see it. */
static void outlook_ongoing(const Root *root, Ongoing *ret) {
        const char *names[ARRAY_SIZE(phase_units)];
        *ret = (Ongoing){ .processes = progress_read(root),
                       .now_usec = root_is_host(root) ? (int64_t)now_usec() : 0 };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                names[i] = phase_units[i].unit;
        see_units(root, names, ARRAY_SIZE(names), see_phase, ret->units);
}

void ongoing_done(Ongoing *ongoing) {
        json_decref(ongoing->processes);
        *ongoing = (Ongoing){};
}

static bool locks_are_held(const Root *root) {
        return lock_is_held(root, RUN_LOCK) || lock_is_held(root, DEVICES_LOCK);
}

bool outlook_has_init(const Root *root) {
        return locks_are_held(root) || units_have_work(root, false);
}

/* This boot has failed, or prepares a warm pool, and kubelet has had no turn. */
static bool end_read(const Root *root, Status *ret) {
        _free_ char *boot_id = NULL;
        return root_exists(root, KUBELET_TURN) <= 0 && status_read(root, ret) >= 0 &&
               root_boot_id(root, &boot_id) >= 0 && streq(ret->boot_id, boot_id) &&
               (streq(ret->verdict, "failed") || status_pool(ret));
}

/* Only the first line: output of a unit follows it. */
static void take_end(const Status *s, JoinOutcome *ret) {
        const char *pool = status_pool(s);
        ret->cause = pool ? CAUSE_NONE : CAUSE_INIT;
        if (pool)
                RENEW(ret->text, xstrdup(pool));
        else
                RENEW(ret->text,
              xasprintf("kubelet was not started, because nodestrap init failed (%lld %s at %s): %.*s; "
                        "correct that, then run nodestrap init or reboot; see nodestrap status",
                        (long long)s->exit, s->code, s->step, (int)strcspn(s->text, "\n"), s->text));
}

/* Called once a second, so it asks systemd only after such an end. */
bool outlook_is_lost(const Root *root, JoinOutcome *ret) {
        _cleanup_(status_done) Status before = {}, end = {};
        if (!end_read(root, &before) || locks_are_held(root) || units_have_work(root, true))
                return false;
        /* again: init may have ended and written in between */
        if (!end_read(root, &end))
                return false;
        take_end(&end, ret);
        return true;
}

static bool is_idle(const Ongoing *ongoing) {
        return !ANY(work, ongoing->units, _ONGOING_MAX, *work != UNIT_IDLE) &&
               json_array_size(ongoing->processes) == 0;
}

static int refuse(const Root *root, int r, Diag *diag) {
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_SOURCE, REPORT_STATUS " below %s is missing",
                                  root_path(root));
        if (r == -EACCES)
                return diag_error(diag, r, CAUSE_FILE,
                                  REPORT_STATUS " is readable only by root and the group systemd-journal: "
                                  "run sudo nodestrap status, or join that group");
        return diag_error(diag, r, CAUSE_SOURCE,
                          REPORT_STATUS "%s%s cannot be shown: %s; the next init replaces it",
                          root_is_host(root) ? "" : " below ", root_is_host(root) ? "" : root_path(root),
                          r == -EBADMSG ? "not JSON" : strerror(-r));
}

int status_now(const Root *root, bool any, Status *ret, Diag *diag) {
        _cleanup_(ongoing_done) Ongoing ongoing = {};
        _free_ char *boot_id = NULL;
        int r = status_read(root, ret);
        outlook_ongoing(root, &ongoing);
        if (r == -ENOENT && (any || root_is_host(root) || !is_idle(&ongoing)))
                status_take(ret, json_pack("{ss}", "version", VERSION));
        else if (r < 0)
                return refuse(root, r, diag);
        bool ours = !root_is_host(root) || root_boot_id(root, &boot_id) < 0 || streq(ret->boot_id, boot_id);
        phases_put(ret, ours ? &ongoing : NULL);
        next_put(ret);
        return 0;
}

ExitCode status_exit(const Status *s) {
        const StatusJoin *joined = status_not_joined(s);
        if (joined)
                return joined->exit > 0 && joined->exit < 128 ? (ExitCode)joined->exit : EXIT_INTERNAL;
        if (streq(s->verdict, "ok") || streq(s->verdict, "tainted"))
                return EXIT_DONE;
        if (!streq(s->verdict, "failed"))
                return EXIT_UNFINISHED;
        return s->exit > 0 && s->exit < 128 ? (ExitCode)s->exit : EXIT_INTERNAL;
}
