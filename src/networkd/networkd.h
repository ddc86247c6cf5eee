/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* systemd-networkd, over D-Bus (org.freedesktop.network1(5)). */
#include "base/error.h"
#include "base/paths.h"

typedef struct Link {
        char *name;
        unsigned index;                 /* new for an interface that comes again; 0: not known */
        char *setup;                    /* AdministrativeState: "configured", "unmanaged", "pending", … */
        char *operational;              /* "routable", "degraded", "no-carrier", … */
        bool stuck;                     /* it wants an address or a route that it is still removing */
        bool unrouted;                  /* it has an IPv6 address, and no route from its router */
        char *file;                     /* its .network file; NULL: none, or not known */
} Link;
typedef struct Links { Link *items; size_t n; } Links;
void links_done(Links *l);
/* Reads the answer of Manager.Describe and `networkctl list --json`; else -EBADMSG. */
_must_check_ _nonnull_ int links_parse(const char *json, size_t size, Links *ret);
/* One link, from its file in /run/systemd/netif/links. The caller owns the texts. */
_must_check_ _nonnull_ Link link_from_state(const char *name, unsigned index, const char *text);

/* A process holds it while it has networkd reload its files. */
#define NETWORKD_RELOAD_LOCK RUN_DIR "/networkd-reload.lock"

/* Makes networkd reread its files. 0 also if it does not run: it reads them when it starts. Waits for one
 * that is starting. Without a bus, PID 1 reloads it, or restarts one that takes reloads from the bus alone
 * (systemd 252). Calls begins(), or NULL, before each request: networkd will have read all files up to the
 * last call. A failure has a diagnostic: CAUSE_BUS (-ETIMEDOUT: no answer in time), or CAUSE_INTERRUPTED. */
typedef void (*ReloadBegins)(void *userdata);
_must_check_ _nonnull(4) int networkd_reload(uint64_t deadline_usec, ReloadBegins begins, void *userdata,
                                             Diag *diag);
/* Makes networkd drop what a link has from any file but this one, and configure it again. systemd 253 and
 * later need that after a reload. First it waits 15 s at most until the link is configured. 1: done; 0:
 * nothing to do, or no bus yet; or a negative errno, without a diagnostic. */
_must_check_ _nonnull_ int networkd_reconfigure(const char *name, const char *file, uint64_t deadline_usec);
/* Has networkd configured a link of that name, by any file? Read from its state file. */
_must_check_ _nonnull_ bool networkd_has(const char *name);

/* Waits until done() is true of the links. It looks after each signal of networkd, each change of interfaces,
 * and 4 times a second, as done() may read files. Off the bus it reads the state files every 100 ms, or
 * without networkd `networkctl list --json=pretty`. -ETIMEDOUT at the deadline, -EINTR after SIGTERM, without
 * a diagnostic. done: 1 true, 0 not yet; a negative value ends the wait. mend, or NULL: once restarts
 * networkd if one of our links is stuck for 5 s, and once reconfigures unrouted links, and logs it. */
typedef int (*LinksDone)(const Links *links, void *userdata);
typedef struct Mend { bool restarted, reconfigured; } Mend;
_must_check_ _nonnull(1, 5) int networkd_wait(LinksDone done, void *userdata, Mend *mend,
                                              uint64_t deadline_usec, Diag *diag);
