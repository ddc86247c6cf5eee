/* SPDX-License-Identifier: Apache-2.0
 * A network interface → lock → snapshot → facts → do they suffice?
 *
 * The metadata service may list an interface seconds after it appears, so this asks in rounds. Between them
 * the lock is free: at boot each interface has its own process, and all read what one of them has asked. */
#include "nic/net-event.h"

#include "base/lock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "host/host.h"

#include <errno.h>

/* Of the 30 s until the deadline: after 5 s without an address an interface has none, like EFA-only ones.
 * After 8 s without a network card, on an unknown type, the card is the only one. */
#define ADDRESS_SHARE(span) ((span) / 6)
#define CARD_SHARE(span)    ((span) * 4 / 15)
/* After the first 8 s an answer seldom comes soon. */
#define ROUND_SHARE(span)   CARD_SHARE(span)
#define ROUND_USEC   (500 * USEC_PER_MSEC)
#define LATER_USEC   (2 * USEC_PER_SEC)
/* a complete answer this young is not asked for again */
#define YOUNG_USEC   (60 * USEC_PER_SEC)
#define BUDGET_USEC  (5 * USEC_PER_SEC)         /* of the requests of one process, while the others wait */
/* For this long, one process asks on behalf of the others, which wait. With a slower service each asks for
 * its own interface in parallel: in sequence they would miss their deadline. If many get answers in that
 * time, they wait longer. */
#define PATIENCE_USEC (2500 * USEC_PER_MSEC)
#define MANY          4
#define SLICE_USEC    (500 * USEC_PER_MSEC)     /* then the others see what has come */

#define PRODUCT_NAME "/sys/devices/virtual/dmi/id/product_name"

void net_event_done(NetEvent *e) {
        snapshot_done(&e->snapshot);
        interfaces_done(&e->interfaces);
        decisions_done(&e->decisions);
        strv_free(e->files);
        strv_free(e->drop_ins);
        strv_free(e->early);
        strv_free(e->managed);
        free(e->why);
        free(e->failure);
        imds_free(e->imds);
        lock_release(&e->lock_fd);
}

int net_event_error(NetEvent *e, int r, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        return diag_error(e->diag, r, CAUSE_INTERFACE, "%s: %s", e->name, text);
}

/* Each round finds the same warnings. */
static void take_warnings(NetEvent *e, Diag *found) {
        for (size_t i = 0; i < found->n; i++)
                if (found->items[i].warning &&
                    !ANY(told, e->diag->items, e->diag->n,
                         told->warning && streq(told->text, found->items[i].text)))
                        diag_warn(e->diag, found->items[i].code, "%s", found->items[i].text);
        diag_done(found);
}

int net_event_pass(NetEvent *e, int r, Diag *found) {
        const Diagnostic *error = diag_first_error(found);
        if (r < 0 && error && error->cause == CAUSE_INTERRUPTED)
                (void)diag_error(e->diag, r, CAUSE_INTERRUPTED, "%s", error->text);
        else if (r < 0)
                (void)net_event_error(e, r, "%s", error ? error->text : strerror(-r));
        take_warnings(e, found);
        return r;
}

static int is_there(NetEvent *e, const char *path, bool *ret) {
        int r = root_exists(e->root, path);
        *ret = r > 0;
        return r < 0 ? net_event_error(e, r, "%s cannot be read: %s", path, strerror(-r)) : 0;
}

int net_event_begin(NetEvent *e) {
        _free_ char *type = NULL;
        e->facts = (InterfaceFacts){ .enis = &e->snapshot.enis,
                                     .decisions = &e->decisions,
                                     .interfaces = &e->interfaces };
        if (root_read_line(e->root, PRODUCT_NAME, &type) >= 0)
                e->facts.cards = network_cards_find(type);
        e->type_known = e->facts.cards > 0;
        int r = is_there(e, NO_MANAGE_MARKER, &e->gate);
        return r < 0 ? r : is_there(e, INIT_MARKER, &e->facts.init_ran);
}

int net_event_read_interfaces(NetEvent *e) {
        Diag found = {};
        interfaces_done(&e->interfaces);
        e->facts.interface = NULL;
        int r = net_event_pass(e, interfaces_read(e->root, &e->interfaces, &found), &found);
        if (r < 0)
                return r;
        e->facts.interface = interface_by_name(&e->interfaces, e->name);
        return e->facts.interface
                       ? 0
                       : net_event_error(e, -ENODEV,
                                         "no network interface has this name: it is gone, or udev sends "
                                         "another event for its new name");
}

int net_event_read_decisions(NetEvent *e) {
        Diag found = {};
        decisions_done(&e->decisions);
        int r = decisions_read(e->root, e->snapshot.enis.instance_id, &e->decisions, &found);
        return net_event_pass(e, r, &found);
}

/* Also for other interfaces. Those whose tags are not known count as those of the CNI. */
Manager net_event_manager(const NetEvent *e, const Interface *interface) {
        InterfaceFacts facts = e->facts;
        if (interface != facts.interface)
                facts.no_manage = NO_MANAGE_NOT_ASKED;
        facts.interface = interface;
        return interface_manager(&facts);
}

/* Interfaces of the CNI, of which there may be many, need no questions. */
static char **macs_to_skip(const NetEvent *e) {
        char **macs = NULL;
        for (size_t i = 0; i < e->interfaces.n; i++) {
                const Interface *other = &e->interfaces.items[i];
                if (other->mac && other->driver && net_event_manager(e, other) == MANAGER_CNI)
                        strv_add(&macs, other->mac);
        }
        for (size_t i = 0; i < e->decisions.n; i++) {
                const Decision *d = &e->decisions.items[i];
                if (d->mac && d->manager == MANAGER_CNI && !interface_by_mac(&e->interfaces, d->mac))
                        strv_add(&macs, d->mac);
        }
        return macs;
}

static uint64_t round_usec(const NetEvent *e) {
        return now_usec() < e->begin_usec + ROUND_SHARE(e->span_usec) ? ROUND_USEC : LATER_USEC;
}

/* A question of any process in this round counts. */
static bool worth_asking(const NetEvent *e, Judgement judgement) {
        const Snapshot *s = &e->snapshot;
        const Eni *eni = eni_find(&s->enis, e->facts.interface->mac);
        uint64_t now = now_usec(), asked = eni ? eni->asked_usec : s->listed_usec,
                 young = eni && judgement == JUDGEMENT_DECIDED ? YOUNG_USEC : round_usec(e);
        if (s->failed_usec != 0 && now - s->failed_usec < ROUND_USEC)
                return false;
        return asked == 0 || now - asked >= young;
}

/* For each round; no process waits for one that asks alone. */
static void renew_budget(NetEvent *e) {
        uint64_t now = now_usec(), left = e->deadline_usec > now ? e->deadline_usec - now : 0,
                 budget = MAX(e->alone ? left : MIN(BUDGET_USEC, left), USEC_PER_SEC);
        if (!e->imds)
                e->imds = imds_new(budget);
        imds_renew(e->imds, budget);
        imds_recall(e->imds, NULL); /* the answers may be there now */
}

/* 0: try again in the next round. A permanent failure ends at once. */
static int asked(NetEvent *e, int r, Diag *found) {
        const Diagnostic *error = diag_first_error(found);
        free(e->failure);
        e->failure = r < 0 ? xstrdup(error ? error->text : strerror(-r)) : NULL;
        if (r >= 0) {
                take_warnings(e, found);
                return 0;
        }
        if (r == -EINTR || r == -EPERM || r == -EINVAL)
                return net_event_pass(e, r, found);
        diag_done(found);
        return 0;
}

/* With so many answers the other processes need not ask themselves. */
static bool many_come(const NetEvent *e) {
        const Enis *enis = &e->snapshot.enis;
        uint64_t now = now_usec();
        size_t n = 0;
        for (size_t i = 0; i < enis->n; i++)
                n += enis->items[i].asked_usec > 0 && now - enis->items[i].asked_usec < PATIENCE_USEC;
        return n >= MANY;
}

/* The index reveals another interface with the same MAC. */
static void note_ifindexes(NetEvent *e) {
        Enis *enis = &e->snapshot.enis;
        for (size_t i = 0; i < enis->n; i++) {
                const Interface *there = interface_by_mac(&e->interfaces, enis->items[i].mac);
                if (there && there->driver && enis->items[i].asked_usec > 0 && enis->items[i].ifindex == 0)
                        enis->items[i].ifindex = there->index;
        }
}

/* Its own interface, and then those of other processes, while these wait. */
static int ask_for_all(NetEvent *e, EniQuestion *question, Diag *found) {
        uint64_t begin = now_usec(), now = begin;
        for (;;) {
                question->until_usec = e->alone ? 1 : now + SLICE_USEC;
                int r = snapshot_ask(&e->snapshot, e->imds, question, found);
                const Eni *own = eni_find(&e->snapshot.enis, e->facts.interface->mac);
                now = now_usec();
                if (r != 1 || e->alone || now >= begin + BUDGET_USEC ||
                    (now >= begin + PATIENCE_USEC && !many_come(e)))
                        return r;
                if (own && own->asked_usec >= begin)
                        question->again = NULL;
                note_ifindexes(e);
                if (!e->dry_run)
                        snapshot_write(e->root, &e->snapshot, found);
        }
}

static int ask(NetEvent *e) {
        const Interface *own = e->facts.interface;
        uint64_t now = now_usec();
        _strv_ char **skip = macs_to_skip(e), **again = NULL;
        EniQuestion question = { .cards = e->facts.cards, .skip = skip, .older_usec = 1,
                                 .late_usec = now - MIN(round_usec(e), now) };
        Diag found = {};
        if (net_event_manager(e, own) != MANAGER_CNI)
                strv_add(&again, own->mac);
        if (!e->snapshot.enis.primary)
                strv_add(&again, ""); /* it is not in the list: ask for the list again */
        question.again = again;
        int r = ask_for_all(e, &question, &found);
        e->goes_on = r == 2;
        return asked(e, r, &found);
}

/* Only with the gate: a tag may leave an interface of the CNI to the system. */
static int ask_for_tag(NetEvent *e) {
        _free_ char *region = NULL, *domain = NULL;
        Diag found = {};
        renew_budget(e);
        bool tagged = false;
        int r = imds_get(e->imds, "meta-data/placement/region", &region, NULL, &found);
        THEN(r, imds_get(e->imds, "meta-data/services/domain", &domain, NULL, &found));
        if (r == -ENOENT)
                return net_event_error(e, r, "the metadata service did not return the region or domain");
        if (r >= 0) {
                Ec2 ec2 = { .region = region, .domain = domain, .imds = e->imds,
                            .deadline_usec = e->deadline_usec, .turns = e->dry_run ? NULL : e->root };
                r = ec2_check_endpoints(&ec2, true, &found);
                THEN(r, ec2_interface_is_tagged(&ec2, e->snapshot.enis.instance_id, e->facts.interface->mac,
                                                &tagged, &found));
        }
        bool unknown = r == -EACCES || r == -EHOSTUNREACH || r == -EKEYREJECTED;
        e->facts.no_manage = unknown  ? NO_MANAGE_UNKNOWN
                             : tagged ? NO_MANAGE_TAGGED
                                      : NO_MANAGE_UNTAGGED;
        if (!unknown)
                return net_event_pass(e, r, &found);
        const Diagnostic *error = diag_first_error(&found);
        diag_warn(e->diag, "no-manage-unknown", "%s: %s", e->name,
                  error ? error->text : "EC2 denies access to its tags");
        diag_done(&found);
        return 0;
}

/* For an unknown type. An interface on another card shows that there are several. */
static void guess_cards(NetEvent *e) {
        const Enis *enis = &e->snapshot.enis;
        const Eni *eni = eni_find(enis, e->facts.interface->mac);
        bool several = ANY(i, enis->items, enis->n, i->card > 0),
             late = now_usec() >= e->begin_usec + CARD_SHARE(e->span_usec),
             untold = eni && eni->asked_usec && eni->card < 0;
        if (e->type_known)
                return;
        if (!several && e->facts.cards == 0 && late && untold)
                diag_warn(e->diag, "network-card-unknown",
                          "%s: the network card of this interface is known neither from the instance type "
                          "nor from the metadata service; assuming card 0",
                          e->name);
        e->facts.cards = several ? 2 : e->facts.cards == 1 || (late && untold);
}

static Judgement judge(NetEvent *e) {
        free(e->why);
        e->why = NULL;
        Judgement judgement = interface_judge(&e->facts, &e->why);
        bool waits =
                judgement == JUDGEMENT_IGNORED && now_usec() < e->begin_usec + ADDRESS_SHARE(e->span_usec);
        return waits ? JUDGEMENT_LATE : judgement;
}

/* Asks only if the known facts are not enough. */
static int learn(NetEvent *e, Judgement *ret) {
        bool identified = e->snapshot.enis.instance_id;
        Diag found = {};
        int r = 0;
        /* first of all: the earlier decisions show which interfaces need no question */
        if (!identified && worth_asking(e, JUDGEMENT_LATE))
                r = asked(e, snapshot_identify(&e->snapshot, e->imds, &found), &found);
        *ret = JUDGEMENT_LATE;
        if (r < 0 || !e->snapshot.enis.instance_id)
                return r;
        r = net_event_read_decisions(e);
        if (r < 0)
                return r;
        *ret = judge(e);
        bool known = *ret == JUDGEMENT_DECIDED && net_event_manager(e, e->facts.interface) == MANAGER_CNI;
        if (known || (identified && !worth_asking(e, *ret)))
                return 0;
        r = ask(e);
        if (r >= 0) {
                guess_cards(e);
                *ret = judge(e);
        }
        return r;
}

static bool wants_tag(const NetEvent *e) {
        const Interface *i = e->facts.interface;
        return e->gate && e->facts.init_ran && e->facts.no_manage == NO_MANAGE_NOT_ASKED &&
               !decision_find(&e->decisions, i->mac, i->name) && net_event_manager(e, i) == MANAGER_CNI;
}

/* Takes the lock and reads the snapshot. Without the lock, e->alone. */
static int take_snapshot(NetEvent *e, int *ret_fd) {
        for (bool first = true;; first = false) {
                Diag found = {};
                int fd = e->dry_run ? -1 : lock_take(e->root, SNAPSHOT_LOCK, now_usec() + PATIENCE_USEC,
                                                     &found);
                e->alone = fd == -ETIMEDOUT;
                if (fd < 0 && !e->alone && !e->dry_run)
                        return net_event_pass(e, fd, &found);
                diag_done(&found);
                snapshot_done(&e->snapshot);
                snapshot_read(e->root, &e->snapshot, &found);
                take_warnings(e, &found);
                *ret_fd = fd;
                const Eni *own = eni_find(&e->snapshot.enis, e->facts.interface->mac);
                /* a new list shows progress */
                bool begun = first && now_usec() - e->snapshot.listed_usec < PATIENCE_USEC;
                if (!e->alone)
                        return 0;
                if ((own && own->asked_usec) || now_usec() >= e->deadline_usec || !(begun || many_come(e))) {
                        log_debug("%s asks the metadata service itself: another process has held the lock "
                                  "for too long.", e->name);
                        return 0;
                }
        }
}

/* Answers about an earlier interface with this MAC may not hold. */
static void drop_former(NetEvent *e) {
        const Interface *own = e->facts.interface;
        const Eni *eni = eni_find(&e->snapshot.enis, own->mac);
        if (eni && own->driver && eni->ifindex != 0 && eni->ifindex != own->index)
                snapshot_drop(&e->snapshot, own->mac);
}

static int go_round(NetEvent *e, Judgement *ret) {
        Diag found = {};
        _cleanup_(close_fd) int fd = -1;
        e->goes_on = false;
        int r = net_event_read_interfaces(e);
        THEN(r, take_snapshot(e, &fd));
        if (r < 0)
                return r;
        renew_budget(e);
        _cleanup_(json_decrefp) json_t *before = enis_to_json(&e->snapshot.enis);
        uint64_t failed = e->snapshot.failed_usec;
        drop_former(e);
        guess_cards(e);
        r = learn(e, ret);
        note_ifindexes(e);
        _cleanup_(json_decrefp) json_t *after = enis_to_json(&e->snapshot.enis);
        bool changed = !json_equal(before, after) || failed != e->snapshot.failed_usec;
        if (changed && !e->dry_run && !e->alone)
                snapshot_write(e->root, &e->snapshot, &found);
        take_warnings(e, &found);
        return r;
}

static int give_up(NetEvent *e) {
        const char *mac = e->facts.interface->mac;
        double seconds = usec_seconds(now_usec() - e->begin_usec);
        const char *failure = e->failure ?: e->snapshot.failure;
        if (failure)
                return net_event_error(e, -ETIMEDOUT, "%s (%s, %g s)", failure, mac, seconds);
        return net_event_error(
                e, -ETIMEDOUT,
                "%s (%s, %g s); nothing was configured or decided, and the next try starts over",
                e->why ?: "the metadata service does not know it", mac, seconds);
}

static uint64_t span_usec(const Root *root) {
        uint64_t msec;
        return !root_is_host(root) && root_read_u64(root, RUN_DIR "/deadline-ms", &msec) >= 0
                       ? msec * USEC_PER_MSEC
                       : NET_EVENT_USEC;
}

void net_event_set_deadline(NetEvent *e) {
        e->span_usec = span_usec(e->root);
        e->deadline_usec = e->begin_usec + e->span_usec;
}

static bool is_over(const NetEvent *e) {
        return now_usec() >= MIN(e->deadline_usec, e->begin_usec + span_usec(e->root));
}

int net_event_look(NetEvent *e, Judgement *ret) {
        for (;;) {
                uint64_t round = now_usec() + round_usec(e);
                int r = go_round(e, ret);
                if (r >= 0 && *ret != JUDGEMENT_LATE && wants_tag(e)) {
                        r = ask_for_tag(e);
                        if (r >= 0)
                                continue;
                }
                if (r < 0 || *ret != JUDGEMENT_LATE)
                        return r;
                if (is_over(e))
                        return give_up(e);
                if (e->goes_on)
                        continue;
                if (stop_wait(-1, MIN(MAX(round, now_usec()), e->deadline_usec)) == -EINTR)
                        return diag_error(e->diag, -EINTR, CAUSE_INTERRUPTED,
                                          "stopped by %s; nothing was changed", stop_name(stop_signal()));
        }
}
