/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap boot-hook`: the end of a boot's network. Waits until systemd-networkd has configured the primary
 * interface and those that were decided for it, and keeps its hands off all others; what of that is missing
 * at the deadline is told, link by link. Decisions are made meanwhile, by udev-net-manager. */
#include "commands/commands.h"
#include "commands/run.h"

#include "aws/aws.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "networkd/networkd.h"
#include "nic/plan/links.h"
#include "nic/snapshot.h"

#include <errno.h>

#define TOTAL_USEC   (60 * USEC_PER_SEC)
#define TRY_USEC     (5 * USEC_PER_SEC) /* of the metadata service, until the snapshot is looked at again */
#define PAUSE_USEC   (500 * USEC_PER_MSEC)
#define SETTLED_USEC (6 * USEC_PER_SEC) /* a second more than udev-net-manager waits for an address */

typedef struct Hook {
        const Run *run;
        uint64_t deadline_usec;
        char *instance_id, *primary;
        Diag *diag;                  /* of a failure */
        Diag warnings;               /* of the last look */
        char **unready, *configured; /* links, at the last look: sentences, names */
        bool looked;
        int reload_fd;               /* the lock of those who have networkd read its files; -1: not held */
} Hook;

static void hook_done(Hook *h) {
        free(h->instance_id);
        free(h->primary);
        diag_done(&h->warnings);
        strv_free(h->unready);
        free(h->configured);
        close_fd(&h->reload_fd);
}

/* ---- who is the primary one ---- */

static bool hook_recall(Hook *h) {
        _cleanup_(snapshot_done) Snapshot snapshot = {};
        snapshot_read(h->run->root, &snapshot, &h->warnings);
        if (!snapshot.enis.instance_id || !snapshot.enis.primary)
                return false;
        h->instance_id = TAKE_PTR(snapshot.enis.instance_id);
        h->primary = TAKE_PTR(snapshot.enis.primary);
        return true;
}

static int hook_ask(Hook *h, Diag *diag) {
        uint64_t now = now_usec();
        _cleanup_(imds_freep) Imds *imds =
                imds_new(MIN(TRY_USEC, h->deadline_usec > now ? h->deadline_usec - now : 1));
        _cleanup_(freep) char *id = NULL, *mac = NULL;
        int r = imds_get(imds, "meta-data/instance-id", &id, NULL, diag);
        if (r >= 0)
                r = imds_get(imds, "meta-data/mac", &mac, NULL, diag);
        if (r < 0)
                return r;
        h->instance_id = str_strip(id);
        _cleanup_(freep) char *stripped = str_strip(mac);
        h->primary = str_lower(stripped);       /* as the kernel has it */
        return 0;
}

static int hook_stopped(const Hook *h) {
        return diag_error(h->diag, -EINTR, CAUSE_INTERRUPTED, "%s came while the network was waited for",
                          stop_name(stop_signal()));
}

/* The primary interface may get its address late, and until then the metadata service is out of reach, which
 * is said each time that it is asked in vain. */
static int hook_find_primary(Hook *h) {
        for (;;) {
                _cleanup_(diag_done) Diag failure = {};
                if (hook_recall(h) || hook_ask(h, &failure) >= 0)
                        return 0;
                if (stop_wait(-1, MIN(now_usec() + PAUSE_USEC, h->deadline_usec)) == -EINTR)
                        return hook_stopped(h);
                if (now_usec() < h->deadline_usec)
                        continue;
                const Diagnostic *error = diag_first_error(&failure);
                return diag_error(
                        h->diag, -ETIMEDOUT, CAUSE_LINK,
                        "which interface is the primary one is not known: %s; see `networkctl` and "
                        "journalctl -u systemd-networkd for whether it has an address",
                        error ? error->text : "the metadata service has not told the instance's id and MAC");
        }
}

/* ---- links ---- */

static char *name_configured(const Links *links) {
        _cleanup_(strv_freep) char **names = NULL;
        for (size_t i = 0; i < links->n; i++)
                if (streq(links->items[i].setup, "configured"))
                        strv_add(&names, links->items[i].name);
        return strv_join(names, ", ");
}

/* All but the links is read again each time, for all of it may have changed. */
static int hook_look(const Links *links, void *userdata) {
        Hook *h = userdata;
        _cleanup_(snapshot_done) Snapshot snapshot = {};
        _cleanup_(interfaces_done) Interfaces interfaces = {};
        _cleanup_(decisions_done) Decisions decisions = {};
        uint64_t now = now_usec();
        bool settled = now >= h->run->begin_usec + SETTLED_USEC;

        diag_done(&h->warnings);
        snapshot_read(h->run->root, &snapshot, &h->warnings);
        free(snapshot.enis.primary);
        snapshot.enis.primary = xstrdup(h->primary);
        int r = interfaces_read(h->run->root, &interfaces, h->diag);
        if (r >= 0)
                r = decisions_read(h->run->root, h->instance_id, &decisions, &h->warnings);
        if (r < 0)
                return r;
        const LinkFacts facts = { .links = links,
                                  .interfaces = &interfaces,
                                  .decisions = &decisions,
                                  .enis = &snapshot.enis,
                                  .settled = settled,
                                  .settled_usec = settled ? now - SETTLED_USEC : 0 };
        strv_free(h->unready);
        h->unready = links_find_unready(&facts);
        free(h->configured);
        h->configured = name_configured(links);
        h->looked = true;
        if (h->unready)         /* they may be what others wait for with a reload */
                close_fd(&h->reload_fd);
        _cleanup_(strv_freep) char **foreign = links_find_foreign(&facts);
        for (char **sentence = foreign; sentence && *sentence; sentence++)
                diag_warn(&h->warnings, "foreign-network-file", "%s", *sentence);
        return !h->unready;
}

/* A networkd that is told to read its files just now, or that is started again for it (systemd 252), is not
 * at its end with what it says: what it has said counts where nobody is doing so. */
static int hook_wait(Hook *h) {
        for (;;) {
                int r = networkd_wait(hook_look, h, h->deadline_usec, h->diag);
                if (r < 0 || h->reload_fd >= 0 || !root_exists(h->run->root, NETWORKD_RELOAD_LOCK))
                        return r;
                _cleanup_(diag_done) Diag failure = {};
                h->reload_fd = lock_take(h->run->root, NETWORKD_RELOAD_LOCK, h->deadline_usec, &failure);
                if (h->reload_fd == -EINTR)
                        return -EINTR;
                if (h->reload_fd < 0)
                        return diag_error(h->diag, h->reload_fd, CAUSE_LINK,
                                          "all links were ready, but a reload of systemd-networkd has not "
                                          "ended, after which they may not be: %s",
                                          diag_first_error(&failure)->text);
        }
}

static int hook_fail(const Hook *h, int r) {
        if (r == -EINTR)
                (void)hook_stopped(h);
        else if (r == -ETIMEDOUT && !h->looked)
                (void)diag_error(
                        h->diag, r, CAUSE_LINK,
                        "systemd-networkd does not tell of its links, neither on D-Bus nor by `networkctl "
                        "list --json=pretty`; see `systemctl status systemd-networkd`");
        for (char **sentence = h->unready; sentence && *sentence; sentence++)
                (void)diag_error(h->diag, r, CAUSE_LINK, "%s", *sentence);
        return r;
}

int command_boot_hook(Run *run) {
        uint64_t span = run->options.timeout_usec ?: TOTAL_USEC;
        _cleanup_(hook_done) Hook h = { .run = run,
                                        .deadline_usec = run->begin_usec + span,
                                        .diag = &run->diag,
                                        .reload_fd = -1 };
        run->step = "network";
        stop_catch();
        int r = hook_find_primary(&h);
        if (r < 0)
                return r;
        r = hook_wait(&h);
        diag_move(&run->diag, &h.warnings);
        if (r < 0)
                return hook_fail(&h, r);
        _cleanup_(freep) char *took = usec_text((int64_t)(now_usec() - run->begin_usec));
        log_info("The network is complete after %s: configured are %s, and all other links are unmanaged.",
                 took, h.configured);
        return 0;
}
