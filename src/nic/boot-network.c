/* SPDX-License-Identifier: Apache-2.0
 * The primary interface, from the snapshot or the metadata service → the links of systemd-networkd, until
 * all are as plan/links.c wants them. udev-net-manager decides meanwhile. */
#include "base/lock.h"
#include "base/str.h"
#include "base/time.h"
#include "nic/plan/links.h"

#include <errno.h>

/* for the metadata service, before rereading the snapshot */
#define TRY_USEC     (5 * USEC_PER_SEC)
#define PAUSE_USEC   (500 * USEC_PER_MSEC)
#define SETTLED_USEC (6 * USEC_PER_SEC) /* a second more than udev-net-manager waits for an address */

typedef struct Boot {
        const Root *root;
        uint64_t begin_usec, deadline_usec;
        char *instance_id, *primary;
        Diag *diag;                  /* of a failure */
        Diag warnings;               /* of the last look */
        char **unready, *configured; /* of the last look: sentences, names */
        bool looked;
        Mend mend;                   /* of networkd, once for the whole wait */
        int reload_fd;               /* NETWORKD_RELOAD_LOCK; -1: not held */
} Boot;

static void boot_done(Boot *b) {
        FREE_ALL(b->instance_id, b->primary, b->configured);
        diag_done(&b->warnings);
        strv_free(b->unready);
        close_fd(&b->reload_fd);
}

static bool boot_recall(Boot *b) {
        _cleanup_(snapshot_done) Snapshot snapshot = {};
        snapshot_read(b->root, &snapshot, &b->warnings);
        if (!snapshot.enis.instance_id || !snapshot.enis.primary)
                return false;
        b->instance_id = TAKE_PTR(snapshot.enis.instance_id);
        b->primary = TAKE_PTR(snapshot.enis.primary);
        return true;
}

static int boot_ask(Boot *b, Diag *diag) {
        uint64_t now = now_usec();
        _cleanup_(imds_freep) Imds *imds =
                imds_new(MIN(TRY_USEC, b->deadline_usec > now ? b->deadline_usec - now : 1));
        _free_ char *id = NULL, *mac = NULL;
        int r = imds_get(imds, "meta-data/instance-id", &id, NULL, diag);
        THEN(r, imds_get(imds, "meta-data/mac", &mac, NULL, diag));
        if (r < 0)
                return r;
        b->instance_id = str_strip(id);
        _free_ char *stripped = str_strip(mac);
        b->primary = str_lower(stripped);       /* as the kernel has it */
        return 0;
}

static int boot_stopped(const Boot *b) {
        return diag_error(b->diag, -EINTR, CAUSE_INTERRUPTED, "%s ended the wait for the network",
                          stop_name(stop_signal()));
}

/* The primary interface may get its address late. Until then each question for metadata fails, and logs
 * that. */
static int boot_find_primary(Boot *b) {
        for (;;) {
                _cleanup_(diag_done) Diag failure = {};
                if (boot_recall(b) || boot_ask(b, &failure) >= 0)
                        return 0;
                if (stop_wait(-1, MIN(now_usec() + PAUSE_USEC, b->deadline_usec)) == -EINTR)
                        return boot_stopped(b);
                if (now_usec() < b->deadline_usec)
                        continue;
                const Diagnostic *error = diag_first_error(&failure);
                return diag_error(
                        b->diag, -ETIMEDOUT, CAUSE_LINK,
                        "the primary interface is not known: %s; `networkctl` and journalctl -u "
                        "systemd-networkd show whether it has an address",
                        error ? error->text
                              : "the metadata service has not returned the instance id and MAC");
        }
}

static char *name_configured(const Links *links) {
        _strv_ char **names = NULL;
        for (size_t i = 0; i < links->n; i++)
                if (streq(links->items[i].setup, "configured"))
                        strv_add(&names, links->items[i].name);
        return strv_join(names, ", ");
}

/* Reads everything again each time, because it may have changed. */
static int boot_look(const Links *links, void *userdata) {
        Boot *b = userdata;
        _cleanup_(snapshot_done) Snapshot snapshot = {};
        _cleanup_(interfaces_done) Interfaces interfaces = {};
        _cleanup_(decisions_done) Decisions decisions = {};
        uint64_t now = now_usec();
        bool settled = now >= b->begin_usec + SETTLED_USEC;

        diag_done(&b->warnings);
        snapshot_read(b->root, &snapshot, &b->warnings);
        RENEW(snapshot.enis.primary, xstrdup(b->primary));
        int r = interfaces_read(b->root, &interfaces, b->diag);
        THEN(r, decisions_read(b->root, b->instance_id, &decisions, &b->warnings));
        if (r < 0)
                return r;
        const LinkFacts facts = { .links = links,
                                  .interfaces = &interfaces,
                                  .decisions = &decisions,
                                  .enis = &snapshot.enis,
                                  .settled = settled,
                                  .settled_usec = settled ? now - SETTLED_USEC : 0 };
        strv_free(b->unready);
        b->unready = links_find_unready(&facts);
        RENEW(b->configured, name_configured(links));
        b->looked = true;
        if (b->unready)         /* the other process may need it to reload these links */
                close_fd(&b->reload_fd);
        _strv_ char **foreign = links_find_foreign(&facts);
        STRV_FOREACH(sentence, foreign)
                diag_warn(&b->warnings, "foreign-network-file", "%s", *sentence);
        return !b->unready;
}

/* While another process reloads or restarts networkd, its answers may change. So the last look holds the
 * lock. */
static int boot_wait(Boot *b) {
        for (;;) {
                int r = networkd_wait(boot_look, b, &b->mend, b->deadline_usec, b->diag);
                if (r < 0 || b->reload_fd >= 0 || !root_exists(b->root, NETWORKD_RELOAD_LOCK))
                        return r;
                _cleanup_(diag_done) Diag failure = {};
                b->reload_fd = lock_take(b->root, NETWORKD_RELOAD_LOCK, b->deadline_usec, &failure);
                if (b->reload_fd < 0)
                        return b->reload_fd == -EINTR
                                       ? -EINTR
                                       : diag_error(b->diag, b->reload_fd, CAUSE_LINK,
                                                    "all links were ready, but a reload of "
                                                    "systemd-networkd has not finished and may change "
                                                    "them: %s",
                                                    diag_first_error(&failure)->text);
        }
}

static int boot_fail(const Boot *b, int r) {
        if (r == -EINTR)
                (void)boot_stopped(b);
        else if (r == -ETIMEDOUT && !b->looked)
                (void)diag_error(
                        b->diag, r, CAUSE_LINK,
                        "systemd-networkd lists its links neither on D-Bus nor in `networkctl list "
                        "--json=pretty`; see `systemctl status systemd-networkd`");
        STRV_FOREACH(sentence, b->unready)
                (void)diag_error(b->diag, r, CAUSE_LINK, "%s", *sentence);
        return r;
}

int boot_network_wait(const Root *root, uint64_t begin_usec, uint64_t deadline_usec, char **ret_configured,
                      Diag *diag) {
        _cleanup_(boot_done) Boot b = { .root = root,
                                        .begin_usec = begin_usec,
                                        .deadline_usec = deadline_usec,
                                        .diag = diag,
                                        .reload_fd = -1 };
        int r = boot_find_primary(&b);
        if (r < 0)
                return r;
        r = boot_wait(&b);
        diag_move(diag, &b.warnings);
        if (r < 0)
                return boot_fail(&b, r);
        *ret_configured = TAKE_PTR(b.configured);
        return 0;
}
