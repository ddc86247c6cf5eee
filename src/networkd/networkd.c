/* SPDX-License-Identifier: Apache-2.0
 * systemd-networkd over D-Bus (org.freedesktop.network1(5)): reload, and the states of links. Every wait is
 * one of sd-event, so that SIGTERM ends it. No message of ours starts networkd. Early in a boot networkd runs
 * before the bus, which comes after sysinit.target. Then PID 1, which has its own socket, knows whether
 * networkd will come to the bus. Where sysinit.target waits for the network, both must do without a bus. */
#include "networkd/networkd.h"

#include "base/log.h"
#include "base/root.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define NETWORKD    "org.freedesktop.network1"
#define OBJECT      "/org/freedesktop/network1"
#define PROPERTIES  "org.freedesktop.DBus.Properties"
#define PID1_SOCKET "unix:path=/run/systemd/private"
#define PID1        "org.freedesktop.systemd1"
#define UNIT        "systemd-networkd.service"
#define UNIT_OBJECT "/org/freedesktop/systemd1/unit/systemd_2dnetworkd_2eservice"

#define STATES      "/run/systemd/netif/links"  /* a file for each link, by its index */
#define STATE_LIMIT (64U << 10)

#define NEVER_USEC  (3600 * USEC_PER_SEC)       /* a call ends at our deadline, not after 25 s */
#define ANSWER_USEC (5 * USEC_PER_SEC)  /* answers come at once, or a retry */
#define RETRY_USEC  (100 * USEC_PER_MSEC)       /* without an answer */
#define LOOK_USEC   (250 * USEC_PER_MSEC)       /* done() also reads files, which send no signals */
#define PAUSE_USEC  (20 * USEC_PER_MSEC)        /* 32 links that come up make hundreds of signals */
#define BUS_USEC    (2 * USEC_PER_SEC)  /* for a bus that is about to come */
#define TAKEN_USEC  (15 * USEC_PER_SEC) /* DHCP answers at once, or retries after some seconds */
#define OTHER_USEC  USEC_PER_SEC        /* up to systemd 255 a reload ends before its links begin */
/* networkd removes an address in milliseconds, and asks a router again after 4 s (RFC 4861, 10) */
#define STUCK_USEC  (5 * USEC_PER_SEC)
#define OURS        "/70-eks-"          /* in the names of our .network files */
#define LIST_LIMIT  (16U << 20)         /* some kB a link */

/* ActiveState of systemd-networkd.service: its process is ready, or exists. */
#define RUNNING ((const char *const[]){ "active", NULL })
#define PROCESS ((const char *const[]){ "active", "activating", "reloading", NULL })

/* Type of that service if it reloads on a signal: from systemd 253 on. */
#define BY_SIGNAL ((const char *const[]){ "notify-reload", NULL })

#define SIGNALS                                                                                              \
        "type='signal',sender='" NETWORKD "',path_namespace='" OBJECT "',interface='" PROPERTIES "',"        \
        "member='PropertiesChanged'"
#define OWNERS                                                                                               \
        "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"                          \
        "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" NETWORKD "'"

typedef struct Networkd {
        sd_event *event;
        sd_bus *bus;                    /* NULL: none yet */
        sd_event_source *interfaces;
        int interfaces_fd;
        bool changed;                   /* a link has, since the last question */
        bool answers;                   /* it answered the last question */
        bool ready;                     /* all are done except links that get mended */
        Mend *mend;                     /* NULL: mends nothing */
        char held[IF_NAMESIZE];         /* a link that delays the end of the wait */
        uint64_t held_usec;             /* since then */
        ReloadBegins begins;            /* or NULL */
        void *userdata;                 /* of begins() */
} Networkd;

/* Does not flush: that would wait for a daemon that may not come. */
static void networkd_close(Networkd *n) {
        sd_bus_close_unref(n->bus);
        sd_event_source_unref(n->interfaces);
        sd_event_unref(n->event);
        close_fd(&n->interfaces_fd);
}

static int networkd_open(Networkd *n, Diag *diag) {
        int r = sd_event_new(&n->event);
        return r < 0 ? diag_error(diag, r, CAUSE_INTERNAL, "cannot create an event loop: "
                                                           "%s", strerror(-r)) : 0;
}

/* Handles events, or waits for them until then. -EINTR: a signal. */
static int networkd_turn(Networkd *n, uint64_t until_usec) {
        int r = sd_event_prepare(n->event);
        if (r == 0) {
                r = stop_wait(sd_event_get_fd(n->event), until_usec);
                THEN(r, sd_event_wait(n->event, 0));
        }
        return r > 0 ? sd_event_dispatch(n->event) : r;
}

static int networkd_pause(Networkd *n, uint64_t until_usec, uint64_t deadline_usec) {
        int r = 0;
        while (r >= 0 && now_usec() < MIN(until_usec, deadline_usec))
                r = networkd_turn(n, MIN(until_usec, deadline_usec));
        return r >= 0 && now_usec() >= deadline_usec ? -ETIMEDOUT : r;
}

static int on_bus_change(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        ((Networkd *)userdata)->changed = true;
        return 0;
}

/* Sends the matches before any question, so that it misses no change after an answer. */
static int networkd_open_bus(Networkd *n) {
        int r = sd_bus_open_system(&n->bus);
        THEN(r, sd_bus_attach_event(n->bus, n->event, SD_EVENT_PRIORITY_NORMAL));
        THEN(r, sd_bus_add_match_async(n->bus, NULL, SIGNALS, on_bus_change, NULL, n));
        THEN(r, sd_bus_add_match_async(n->bus, NULL, OWNERS, on_bus_change, NULL, n));
        if (r < 0)
                n->bus = sd_bus_close_unref(n->bus);
        return r;
}

/* 1: the bus accepts calls. Its socket may exist before its daemon: waits a moment; the caller retries. */
static int networkd_connect(Networkd *n) {
        uint64_t until = now_usec() + RETRY_USEC;
        int r = 0;
        if (n->bus && sd_bus_is_open(n->bus) <= 0)
                n->bus = sd_bus_close_unref(n->bus);
        if (!n->bus && networkd_open_bus(n) < 0)
                return 0;
        while (r >= 0 && sd_bus_is_open(n->bus) > 0 && sd_bus_is_ready(n->bus) <= 0 && now_usec() < until)
                r = networkd_turn(n, until);
        return r < 0 ? r : sd_bus_is_ready(n->bus) > 0;
}

static int on_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *e) {
        *(sd_bus_message **)userdata = sd_bus_message_ref(m);
        return 0;
}

#define MANAGER         NETWORKD, OBJECT, NETWORKD ".Manager"
#define PID1_MANAGER    PID1, "/org/freedesktop/systemd1", PID1 ".Manager"
#define UNIT_PROPERTIES PID1, UNIT_OBJECT, PROPERTIES

/* *ret, NULL before, may be an error message, even one of sd-bus for a lost connection. */
static int networkd_call(Networkd *n, sd_bus *bus, const char *name, const char *object,
                         const char *interface, const char *member, uint64_t deadline_usec,
                         sd_bus_message **ret, const char *types, ...) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        va_list ap;
        va_start(ap, types);
        int r = sd_bus_message_new_method_call(bus, &call, name, object, interface, member);
        THEN(r, sd_bus_message_appendv(call, types, ap));
        va_end(ap);
        THEN(r, sd_bus_message_set_auto_start(call, 0));
        THEN(r, sd_bus_call_async(bus, &slot, call, on_answer, ret, NEVER_USEC));
        while (r >= 0 && !*ret)
                r = now_usec() < deadline_usec ? networkd_turn(n, deadline_usec) : -ETIMEDOUT;
        return *ret ? 0 : r;
}

/* For a few calls only: it receives all signals of PID 1. */
static int networkd_open_pid1(Networkd *n, sd_bus **ret) {
        int r = sd_bus_new(ret);
        THEN(r, sd_bus_set_address(*ret, PID1_SOCKET));
        THEN(r, sd_bus_start(*ret));
        THEN(r, sd_bus_attach_event(*ret, n->event, SD_EVENT_PRIORITY_NORMAL));
        return r;
}

/* ret has the type of `type`; a string in it belongs to *ret_answer. */
static int service_get(Networkd *n, sd_bus *pid1, const char *interface, const char *name, const char *type,
                       uint64_t deadline_usec, sd_bus_message **ret_answer, void *ret) {
        int r = networkd_call(n, pid1, UNIT_PROPERTIES, "Get", deadline_usec, ret_answer, "ss", interface,
                              name);
        return r < 0 ? r : sd_bus_message_read(*ret_answer, "v", type, ret, NULL);
}

static int service_is(Networkd *n, sd_bus *pid1, const char *interface, const char *name,
                      const char *const *values, uint64_t deadline_usec) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        const char *value = "";
        int r = service_get(n, pid1, interface, name, "s", deadline_usec, &answer, &value);
        return r < 0 ? r : strv_contains((char *const *)values, value);
}

static int service_call(Networkd *n, sd_bus *pid1, const char *member, const char *mode,
                        uint64_t deadline_usec) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        int r = networkd_call(n, pid1, PID1_MANAGER, member, deadline_usec, &answer, mode ? "ss" : "s", UNIT,
                              mode);
        return r < 0 ? r : -sd_bus_message_get_errno(answer);
}

static int networkd_service_is(Networkd *n, const char *interface, const char *name,
                               const char *const *values, uint64_t deadline_usec) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *pid1 = NULL;
        int r = networkd_open_pid1(n, &pid1);
        return r < 0 ? r : service_is(n, pid1, interface, name, values, deadline_usec);
}

/* Is it running? 0 also without a PID 1 to ask. */
static int networkd_runs(Networkd *n, const char *const *states, uint64_t deadline_usec) {
        int r = networkd_service_is(n, PID1 ".Unit", "ActiveState", states, deadline_usec);
        return r < 0 && r != -EINTR && r != -ETIMEDOUT ? 0 : r;
}

/* It is not on the bus (the two daemons use different names for that), or has just left. */
static bool networkd_is_absent(const sd_bus_error *error) {
        return sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                                      SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_DISCONNECTED);
}

static void reload_begins(const Networkd *n) {
        if (n->begins)
                n->begins(n->userdata);
}

/* 1: done. 0: it is not on the bus. */
static int networkd_reload_once(Networkd *n, uint64_t deadline_usec, Diag *diag) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        int r = networkd_connect(n);
        if (r <= 0)
                return r;
        reload_begins(n);
        r = networkd_call(n, n->bus, MANAGER, "Reload", deadline_usec, &answer, "");
        if (r < 0)
                return r == -EINTR || r == -ETIMEDOUT ? r : 0;  /* the bus has gone away */
        const sd_bus_error *error = sd_bus_message_get_error(answer);
        if (error && !networkd_is_absent(error))
                return diag_error(diag, -sd_bus_message_get_errno(answer), CAUSE_BUS,
                                  "systemd-networkd cannot reload the network files: %s",
                                  error->message ?: error->name);
        return !error;
}

static int networkd_fail_reload(int r, Diag *diag) {
        if (r == -EINTR)
                return diag_error(diag, r, CAUSE_INTERRUPTED,
                                  "%s arrived before systemd-networkd had reloaded the network files",
                                  stop_name(stop_signal()));
        return diag_error(diag, r, CAUSE_BUS,
                          "systemd-networkd is running, but does not answer on D-Bus and has not read the "
                          "new "
                          "files; check `systemctl status dbus`, then run `systemctl restart "
                          "systemd-networkd`");
}

/* 1: PID 1 has done it; 0: it failed. */
static int networkd_await_job(Networkd *n, sd_bus *pid1, uint64_t deadline_usec) {
        for (;;) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
                uint32_t job = 0;
                int r = service_get(n, pid1, PID1 ".Unit", "Job", "(uo)", deadline_usec, &answer, &job);
                if (r >= 0 && job == 0)
                        return service_is(n, pid1, PID1 ".Unit", "ActiveState", RUNNING, deadline_usec);
                THEN(r, networkd_pause(n, now_usec() + PAUSE_USEC, deadline_usec));
                if (r < 0)
                        return r;
        }
}

static int service_do(Networkd *n, sd_bus *pid1, const char *job, uint64_t deadline_usec) {
        int r = service_call(n, pid1, job, "replace", deadline_usec);
        return r < 0 ? r : networkd_await_job(n, pid1, deadline_usec);
}

static int service_restart(Networkd *n, sd_bus *pid1, uint64_t deadline_usec) {
        int r = service_call(n, pid1, "ResetFailedUnit", NULL, deadline_usec);
        return r < 0 ? r : service_do(n, pid1, "TryRestartUnit", deadline_usec);
}

/* Without a bus, which may come only after the network: dbus.socket waits for sysinit.target, and on Debian
 * that waits for cloud-init. systemd 257 sends a signal. An older networkd must restart. That keeps addresses
 * and leases (RestartKillSignal= of its unit), and does not count as a failure. */
static int networkd_reload_service(Networkd *n, bool may_restart, uint64_t deadline_usec) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *pid1 = NULL;
        if (networkd_open_pid1(n, &pid1) < 0)
                return 0;
        int r = service_is(n, pid1, PID1 ".Service", "Type", BY_SIGNAL, deadline_usec);
        reload_begins(n);
        if (r == 0 && may_restart)
                r = service_restart(n, pid1, deadline_usec);
        else if (r > 0)
                r = service_do(n, pid1, "ReloadUnit", deadline_usec);
        return r < 0 && r != -EINTR && r != -ETIMEDOUT ? 0 : r;
}

/* 1: done, or nothing to do. Checks for a process last: one that has just started has read the files. */
static int networkd_try_reload(Networkd *n, bool may_restart, uint64_t deadline_usec, Diag *diag) {
        int r = networkd_reload_once(n, deadline_usec, diag);
        if (r != 0)
                return r;
        r = networkd_runs(n, PROCESS, deadline_usec);
        if (r <= 0)
                return r < 0 ? r : 1;
        if (n->bus && !may_restart)
                return 0;
        r = networkd_runs(n, RUNNING, deadline_usec);
        return r > 0 ? networkd_reload_service(n, may_restart, deadline_usec) : r;
}

int networkd_reload(uint64_t deadline_usec, ReloadBegins begins, void *userdata, Diag *diag) {
        _cleanup_(networkd_close) Networkd n = { .interfaces_fd = -1 };
        size_t errors = diag_count(diag, false);
        uint64_t restart = now_usec() + BUS_USEC;
        int r = networkd_open(&n, diag);
        n.begins = begins;
        n.userdata = userdata;
        while (r >= 0) {
                uint64_t retry = now_usec() + RETRY_USEC;
                r = networkd_try_reload(&n, now_usec() >= restart, deadline_usec, diag);
                if (r > 0)
                        return 0;
                THEN(r, networkd_pause(&n, retry, deadline_usec));
        }
        return diag_count(diag, false) > errors ? r : networkd_fail_reload(r, diag);
}

static void add_link_state(const Root *root, const char *name, unsigned index, Links *to) {
        _free_ char *path = xasprintf(STATES "/%u", index), *text = NULL;
        if (root_read(root, path, STATE_LIMIT, &text, NULL) >= 0)
                *APPEND(to->items, to->n) = link_from_state(name, index, text);
}

bool networkd_has(const char *name) {
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(links_done) Links links = {};
        if (root_new("/", &root) >= 0)
                add_link_state(root, name, if_nametoindex(name), &links);
        return links.n > 0 && links.items[0].file;
}

static int on_interfaces(_unused_ sd_event_source *s, int fd, _unused_ uint32_t events, void *userdata) {
        char buffer[8192];
        ssize_t n;
        do
                n = recv(fd, buffer, sizeof buffer, 0);
        while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));       /* ENOBUFS: more than fit */
        ((Networkd *)userdata)->changed = true;
        return 0;
}

/* rtnetlink(7). Without it, the next look finds the change a little later. */
static void networkd_watch_interfaces(Networkd *n) {
        struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
        n->interfaces_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
        if (n->interfaces_fd >= 0 &&
            bind(n->interfaces_fd, (const struct sockaddr *)(const void *)&address, sizeof address) >= 0)
                (void)sd_event_add_io(n->event, &n->interfaces, n->interfaces_fd, EPOLLIN, on_interfaces, n);
}

/* 1: *ret has the answer; 0: none. */
static int networkd_describe(Networkd *n, uint64_t deadline_usec, Links *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        const char *json;
        int r = networkd_connect(n);
        if (r <= 0)
                return r;
        r = networkd_call(n, n->bus, MANAGER, "Describe", deadline_usec, &answer, "");
        THEN(r, sd_bus_message_read(answer, "s", &json));       /* an error reply has its text here */
        if (r > 0)
                return links_parse(json, strlen(json), ret) >= 0;
        return r == -EINTR ? r : 0;
}

/* The state files of systemd:src/libsystemd/sd-network need no bus, and count while networkd runs. */
static int networkd_read_states(Networkd *n, uint64_t deadline_usec, Links *ret) {
        _cleanup_(root_freep) Root *root = NULL;
        _strv_ char **numbers = NULL;
        int r = networkd_runs(n, RUNNING, deadline_usec);
        if (r <= 0 || root_new("/", &root) < 0 || root_list(root, STATES, &numbers) < 0)
                return MIN(r, 0);
        STRV_FOREACH(number, numbers) {
                char name[IF_NAMESIZE];
                uint64_t index = 0;
                if (parse_u64(*number, &index) >= 0 && if_indextoname((unsigned)index, name))
                        add_link_state(root, name, (unsigned)index, ret);
        }
        return 1;
}

/* networkctl of systemd 257 needs no bus. */
static int networkctl_list(uint64_t deadline_usec, Links *ret) {
        static char *const argv[] = { (char *)"networkctl", (char *)"list", (char *)"--json=pretty", NULL };
        _cleanup_(child_result_done) ChildResult result = {};
        if (child_run_until(argv, deadline_usec, -1, LIST_LIMIT, &result) < 0 || result.status != 0)
                return 0;
        return links_parse(result.output, result.size, ret) < 0 ? 0 : 1;
}

static int networkd_reconfigure_link(Networkd *n, int index, uint64_t deadline_usec) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        int r = networkd_call(n, n->bus, MANAGER, "ReconfigureLink", deadline_usec, &answer, "i", index);
        if (r < 0)
                return r;
        return sd_bus_message_is_method_error(answer, NULL) ? -sd_bus_message_get_errno(answer) : 1;
}

/* Is there something to mend that was not tried? Links of other owners may be so on purpose. */
static bool link_wants(const Networkd *n, const Link *l) {
        return n->mend && l->file && strstr(l->file, OURS) &&
               ((l->stuck && !n->mend->restarted) || (l->unrouted && !n->mend->reconfigured));
}

/* If a link starts again between its lease and the address, systemd 252 removes what the kernel does not have
 * yet. It waits for the kernel forever, and sets nothing instead, not even after ReconfigureLink
 * (github.com/systemd/systemd/issues/30876 and 16071). A new process starts clean. */
static int mend_stuck(Networkd *n, const char *link, uint64_t deadline_usec) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *pid1 = NULL;
        log_warning("systemd-networkd has lost an address or a route of %s; restarting it", link);
        int r = networkd_open_pid1(n, &pid1);
        return r < 0 ? r : service_restart(n, pid1, deadline_usec);
}

/* The socket that waits for a router receives from all links until it is bound to its own
 * (systemd:src/libsystemd-network/icmp6-util.c, icmp6_bind()). If thirty links start at once, one may take
 * the answer of another for its own. It never asks then. */
static int mend_unrouted(Networkd *n, const Links *links, uint64_t deadline_usec) {
        int r = networkd_connect(n);
        for (const Link *l = links->items; r > 0 && l < links->items + links->n; l++) {
                if (!link_wants(n, l))
                        continue;
                log_warning("%s has an IPv6 address, but no IPv6 routes; reconfiguring this interface",
                            l->name);
                int e = networkd_reconfigure_link(n, (int)if_nametoindex(l->name), deadline_usec);
                r = e == -EINTR ? e : r;        /* a link that has gone does not stop the others */
        }
        return r;
}

/* done() for links of which none is stuck or unrouted; or for all, once each was tried. */
static int networkd_judge(Networkd *n, const Links *links, LinksDone done, void *userdata,
                          uint64_t deadline_usec) {
        const Link *held = NULL;
        for (const Link *l = links->items; l < links->items + links->n; l++)
                if (link_wants(n, l) && (!held || l->stuck > held->stuck))
                        held = l;
        int r = done(links, userdata);
        if (r < 0 || !held) {
                n->held_usec = 0;
                return r;
        }
        if (n->held_usec == 0 || !streq(n->held, held->name)) {
                (void)snprintf(n->held, sizeof n->held, "%s", held->name);
                n->held_usec = now_usec();
        }
        n->ready = r > 0;
        if (now_usec() < n->held_usec + STUCK_USEC)
                return 0;
        n->held_usec = 0;
        if (held->stuck) {
                n->mend->restarted = true;
                r = mend_stuck(n, held->name, deadline_usec);
        } else {
                r = mend_unrouted(n, links, deadline_usec);
                n->mend->reconfigured = true;
        }
        return r == -EINTR ? r : 0;
}

static int networkd_look(Networkd *n, uint64_t deadline_usec, LinksDone done, void *userdata) {
        _cleanup_(links_done) Links links = {};
        n->changed = n->ready = false;
        int r = networkd_describe(n, deadline_usec, &links);
        n->answers = r > 0;
        if (r == 0)
                r = networkd_read_states(n, deadline_usec, &links);
        if (r == 0)
                r = networkctl_list(deadline_usec, &links);
        if (r == -ETIMEDOUT)            /* of this look only */
                r = 0;
        return r > 0 ? networkd_judge(n, &links, done, userdata, deadline_usec) : r;
}

int networkd_wait(LinksDone done, void *userdata, Mend *mend, uint64_t deadline_usec, Diag *diag) {
        _cleanup_(networkd_close) Networkd n = { .interfaces_fd = -1 };
        int r = networkd_open(&n, diag);
        if (r < 0)
                return r;
        n.mend = mend;
        networkd_watch_interfaces(&n);
        for (;;) {
                r = networkd_look(&n, MIN(now_usec() + ANSWER_USEC, deadline_usec), done, userdata);
                uint64_t now = now_usec(), pause = MIN(now + PAUSE_USEC, deadline_usec),
                         look = MIN(now + (n.answers ? LOOK_USEC : RETRY_USEC), deadline_usec);
                if (r != 0)
                        return MIN(r, 0);
                while (r >= 0 && (now = now_usec()) < look && (!n.changed || now < pause))
                        r = networkd_turn(&n, n.changed ? pause : look);
                if (r < 0)
                        return r;
                if (now >= deadline_usec)
                        return n.ready ? 0 : -ETIMEDOUT;
        }
}

typedef struct Taken { const char *name, *file; uint64_t other_usec; } Taken;

/* Configured by this file. After other_usec another file also counts, which this event need not wait for. */
static int taken_is_configured(const Links *links, void *userdata) {
        const Taken *t = userdata;
        const Link *l = FIND(link, links->items, links->n, streq(link->name, t->name));
        return !l || (streq(l->setup, "configured") &&
                      ((l->file && streq(l->file, t->file)) || now_usec() >= t->other_usec));
}

int networkd_reconfigure(const char *name, const char *file, uint64_t deadline_usec) {
        _cleanup_(networkd_close) Networkd n = { .interfaces_fd = -1 };
        _cleanup_(diag_done) Diag diag = {};
        unsigned index = if_nametoindex(name);
        int r = networkd_open(&n, &diag);
        THEN(r, networkd_service_is(&n, PID1 ".Service", "Type", BY_SIGNAL, deadline_usec));
        if (r > 0)
                r = networkd_connect(&n);
        if (r <= 0 || index == 0)
                return r;
        /* Between a reload and the start of its new DHCP client, networkd would not give an old lease back.
         * An address that it makes again then keeps the kernel route of its subnet
         * (systemd:src/network/networkd-dhcp4.c, link_drop_dhcp4_config()). So this waits for the end. */
        Taken taken = { name, file, now_usec() + OTHER_USEC };
        r = networkd_wait(taken_is_configured, &taken, NULL,
                          MIN(now_usec() + TAKEN_USEC, deadline_usec), &diag);
        if (r >= 0 || r == -ETIMEDOUT)
                r = networkd_reconfigure_link(&n, (int)index, deadline_usec);
        return r;
}
