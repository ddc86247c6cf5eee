/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* systemd-networkd, over D-Bus (org.freedesktop.network1(5)). */
#include "base/error.h"
#include "base/paths.h"

typedef struct Link {
        char *name;
        char *setup;                    /* "configured", "unmanaged", "pending", …: AdministrativeState */
        char *operational;              /* "routable", "degraded", "no-carrier", … */
        bool stuck;                     /* it wants an address or a route that it is still removing */
        bool unrouted;                  /* it has an IPv6 address, and no routes of that subnet's router */
        char *file;                     /* path of the .network file that it is configured by, or NULL: none,
                                         * or who tells of the link does not tell that */
} Link;
typedef struct Links { Link *items; size_t n; } Links;
void links_done(Links *l);
/* Reads what Manager.Describe answers and `networkctl list --json` prints; -EBADMSG where it is no
 * such text. */
_must_check_ _nonnull_ int links_parse(const char *json, size_t size, Links *ret);
/* The same of one link, from its file in /run/systemd/netif/links. The texts are the caller's. */
_must_check_ _nonnull_ Link link_from_state(const char *name, const char *text);

/* Held by a process for as long as it has networkd read its files again. */
#define NETWORKD_RELOAD_LOCK RUN_DIR "/networkd-reload.lock"

/* Has networkd read its files again. 0 also where it does not run: then it reads them when it starts. One
 * that is starting is waited for until the deadline (now_usec()). Where no bus comes, PID 1 reloads it, or
 * starts it again, if it is one that takes reloads from the bus alone (systemd 252). begins(), or NULL, is
 * called before each request: what was written until the last one will have been read. A failure has a
 * diagnostic: CAUSE_BUS (-ETIMEDOUT: no answer until then), or CAUSE_INTERRUPTED. */
typedef void (*ReloadBegins)(void *userdata);
_must_check_ _nonnull(4) int networkd_reload(uint64_t deadline_usec, ReloadBegins begins, void *userdata,
                                             Diag *diag);
/* Has a networkd that does not do so by itself (from systemd 253 on) take away from a link what another file
 * than this, the present one, has given it, and begin again; for that it is waited until the link is
 * configured, 15 s at most. 1: done; 0: nothing to do, or nobody there to ask, as before there is a bus; or a
 * negative errno, without a diagnostic. */
_must_check_ _nonnull_ int networkd_reconfigure(const char *name, const char *file, uint64_t deadline_usec);
/* Has networkd configured a link of that name, by whatever file? As it has written down itself. */
_must_check_ _nonnull_ bool networkd_has(const char *name);

/* Waits until done() says so of the links, asked anew whenever networkd signals a change or an interface
 * comes or goes, and some times a second, for done() may look at files, too; where networkd is not on the
 * bus, every 100 ms of its state files, or where it does not run, of `networkctl list --json=pretty`.
 * -ETIMEDOUT at the deadline, -EINTR after SIGTERM, without a diagnostic; what done() returns below 0 ends
 * it, too. done: 1 it is so, 0 not yet; it is called where networkd answers. mend, or NULL: where one of
 * our links is stuck for 5 s, networkd is restarted. One that is unrouted is reconfigured. Each is done once
 * for a Mend, and the log says so. */
typedef int (*LinksDone)(const Links *links, void *userdata);
typedef struct Mend { bool restarted, reconfigured; } Mend;
_must_check_ _nonnull(1, 5) int networkd_wait(LinksDone done, void *userdata, Mend *mend,
                                              uint64_t deadline_usec, Diag *diag);
