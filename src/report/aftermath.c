/* SPDX-License-Identifier: Apache-2.0
 * A node that must not join costs money until a person looks. A restart may repair failed hardware once.
 * In doubt the machine stays as it is: a loop of reboots is worse. */
#include "report/report.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#define LEDGER_MAX   128
#define EVENT_SEC    60         /* a reboot waits this long for the Event, */
#define EVENTS_SEC   1800       /* a power-off until send-events gives up */
#define POWEROFF_SEC 600        /* time to log in; plus up to SPREAD_SEC, */
#define SPREAD_SEC   300        /* so a rack does not go all at once */

FailurePolicy aftermath_decide(const AftermathFacts *f) {
        bool asked = f->policy == FAILURE_REBOOT || f->policy == FAILURE_POWER_OFF;
        return asked && f->units && !f->later && !f->kubelet && cause_is_hardware(f->cause, f->step)
                       ? f->policy
                       : FAILURE_HOLD;
}

/* An image may carry the ledger of the instance that it was made from. */
char *aftermath_ledger_look(const Root *root, const char *instance_id) {
        _free_ char *text = NULL;
        size_t size = 0;
        if (!instance_id)
                return xstrdup("the instance id is not known");
        int r = root_read(root, REBOOT_LEDGER, LEDGER_MAX, &text, &size);
        if (r == -ENOENT)
                return NULL;
        if (r < 0)
                return xasprintf(REBOOT_LEDGER " cannot be read: %s", strerror(-r));
        size_t n = startswith(text, "i-") ? 2 + strspn(text + 2, "0123456789abcdef") : 0;
        if (n < 3 || n + 1 != size || text[n] != '\n')
                return xstrdup(REBOOT_LEDGER " is damaged, so this instance may have rebooted already");
        text[n] = 0;
        return streq(text, instance_id) ? xstrdup("this instance has used its one reboot (" REBOOT_LEDGER ")")
                                        : NULL;
}

/* NULL: noted. A note in memory would be lost with the reboot. */
static char *ledger_take(const Root *root, const char *instance_id) {
        struct statfs fs = {};
        char *why = aftermath_ledger_look(root, instance_id);
        if (why)
                return why;
        _free_ char *line = xasprintf("%s\n", instance_id);
        int r = root_replace(root, REBOOT_LEDGER, line, strlen(line), 0644);
        _cleanup_(close_fd) int fd = r < 0 ? r : root_open(root, REBOOT_LEDGER, O_RDONLY);
        if (fd < 0 || fstatfs(fd, &fs) < 0)
                return xasprintf(REBOOT_LEDGER " cannot be written: %s", strerror(fd < 0 ? -fd : errno));
        return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC
                       ? xstrdup(REBOOT_LEDGER " is in memory, and a reboot would lose it")
                       : NULL;
}

/* FNV-1a: differs by instance, but stays the same for one. */
static unsigned poweroff_sec(const char *instance_id) {
        uint32_t hash = 2166136261;
        for (const char *c = instance_id ?: ""; *c; c++)
                hash = (hash ^ (uint8_t)*c) * 16777619;
        return POWEROFF_SEC + hash % (SPREAD_SEC + 1);
}

/* A person or a shutdown has stopped this run: neither wants a restart. */
static bool is_interrupted(const Report *report) {
        const Results *r = report->results;
        const Diag *d = report->diag;
        return ANY(i, d->items, d->n, !i->warning && i->cause == CAUSE_INTERRUPTED) ||
               (r && ANY(i, r->items, r->n, i->cause == CAUSE_INTERRUPTED));
}

static AftermathFacts facts_of(const Root *root, const Report *report, bool units) {
        const Result *failed = report->results ? results_first_failure(report->results) : NULL;
        const Diagnostic *error = diag_first_error(report->diag);
        return (AftermathFacts){ .policy = report->config ? report->config->failure_policy : FAILURE_HOLD,
                                .cause = failed  ? failed->cause
                                         : error ? error->cause
                                                 : CAUSE_NONE,
                                .step = failed,
                                .units = units && !is_interrupted(report),
                                .later = streq(report->phases, "devices"),
                                .kubelet = root_exists(root, KUBELET_TURN) != 0 };
}

/* Why not, or NULL; the caller frees it. */
static char *ask(const Root *root, FailurePolicy what, const char *instance_id, unsigned sec) {
        bool reboot = what == FAILURE_REBOOT;
        char *why = reboot ? ledger_take(root, instance_id) : NULL;
        if (why)
                return why;
        _free_ char *line = xasprintf("%s %u %u\n", failure_policy_to_string(what), sec,
                                      reboot ? EVENT_SEC : EVENTS_SEC);
        int r = root_replace_volatile(root, POWER_FILE, line, strlen(line), 0644);
        return r < 0 ? xasprintf(POWER_FILE " cannot be written: %s", strerror(-r)) : NULL;
}

void aftermath_take_back(const Root *root) {
        (void)!root_remove(root, POWER_FILE);
}

char *aftermath_choose(const Root *root, const Report *report, bool units, Diag *diag) {
        AftermathFacts f = facts_of(root, report, units);
        FailurePolicy what = aftermath_decide(&f);
        unsigned sec = what == FAILURE_POWER_OFF ? poweroff_sec(report->instance_id) : 0;
        _free_ char *why = what == FAILURE_HOLD ? NULL : ask(root, what, report->instance_id, sec);
        if ((what == FAILURE_HOLD && !f.later) || why)
                aftermath_take_back(root);
        if (why)
                diag_warn(diag, "failure-policy", "the machine stays as it is: %s", why);
        if (what == FAILURE_HOLD || why)
                return NULL;
        char *then = sec > 0 ? xasprintf("powers off in %u minutes", sec / 60) : xstrdup("reboots now, once");
        diag_warn(diag, "failure-policy", "the machine %s; systemctl stop nodestrap-power keeps it up", then);
        return then;
}
