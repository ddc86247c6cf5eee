/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap udev-net-manager`: a network interface has come or gone. lock → snapshot → facts → judge
 * → plan → apply.
 *
 * The metadata service may tell of an interface seconds after it is in the machine, so it is asked in rounds.
 * Between them the lock is free: at boot all interfaces come up at once, each with a process of its own, and
 * what one of them has asked for the others read. */
#include "commands/commands.h"
#include "commands/lock.h"
#include "commands/output.h"
#include "commands/run.h"
#include "commands/snapshot.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "plan/interface.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define DEADLINE_USEC           (30 * USEC_PER_SEC)
/* Of these 30 s: after 5 an interface without an address has none, as those for EFA alone; after 8 a network
 * card that is not told, on a type that we know nothing of, is the only one there is. */
#define ADDRESS_SHARE(deadline) ((deadline) / 6)
#define CARD_SHARE(deadline)    ((deadline)*4 / 15)
#define ROUND_USEC              (500 * USEC_PER_MSEC)
#define YOUNG_USEC                                                                                           \
        (60 * USEC_PER_SEC)            /* an answer that is complete and not older is not asked for          \
                                        * again */
#define BUDGET_USEC (5 * USEC_PER_SEC) /* of one process's requests, while the others wait */

#define NETWORK_DIR  "/run/systemd/network"
#define PRODUCT_NAME "/sys/devices/virtual/dmi/id/product_name"

/* What has happened to one interface, and what is known of it. */
typedef struct NetEvent {
        Run *run;
        const char *name;
        uint64_t begin_usec, span_usec, deadline_usec;
        bool init_ran, gate; /* as it was when the event came */
        bool type_known;     /* and with it how many cards there are */
        Snapshot snapshot;
        Interfaces interfaces;
        Decisions decisions;
        char **files, **drop_ins;
        InterfaceFacts facts; /* points into all of these */
        char *why;            /* what is missing yet */
} NetEvent;

static void net_event_done(NetEvent *e) {
        snapshot_done(&e->snapshot);
        interfaces_done(&e->interfaces);
        decisions_done(&e->decisions);
        strv_free(e->files);
        strv_free(e->drop_ins);
        free(e->why);
}

/* ---- failures: all of them are the interface's ---- */

static int interface_error(NetEvent *e, int r, const char *format, ...) _nonnull(1, 3) _printf_(3, 4);
static int interface_error(NetEvent *e, int r, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list ap;
        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        return diag_error(&e->run->diag, r, CAUSE_INTERFACE, "%s: %s", e->name, text ?: strerror(-r));
}

/* Passes on what was found, its first error as this command's own; a signal stays one. */
static int pass_on(NetEvent *e, int r, Diag *found) {
        const Diagnostic *error = diag_first_error(found);
        _cleanup_(freep) char *text = error ? diagnostic_format(error) : NULL;
        bool interrupted = error && error->cause == CAUSE_INTERRUPTED;
        for (size_t i = 0; i < found->n && !interrupted; i++)
                if (found->items[i].warning)
                        diag_warn(&e->run->diag, found->items[i].code, "%s", found->items[i].text);
        if (interrupted || r >= 0)
                diag_move(&e->run->diag, found);
        else
                (void)interface_error(e, r, "%s", text ?: strerror(-r));
        diag_done(found);
        return r;
}

/* ---- facts ---- */

static char **drop_ins_of(const Root *root, const char *name) {
        /* systemd.network(5): of files with one name the first of these counts */
        static const char *const places[] = { "/etc", "/run", "/usr/local/lib", "/usr/lib" };
        char **found = NULL;
        _cleanup_(strv_freep) char **seen = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _cleanup_(strv_freep) char **names = NULL;
                _cleanup_(freep) char *dir = xasprintf("%s/systemd/network/70-%s.network.d", places[i], name);
                if (root_list(root, dir, &names) < 0)
                        continue;
                for (char **file = names; file && *file; file++) {
                        if (!endswith(*file, ".conf") || strv_contains(seen, *file))
                                continue;
                        strv_add(&seen, *file);
                        strv_push(&found, xasprintf("%s/%s", dir, *file));
                }
        }
        return found;
}

/* How many network cards this instance type has; 0: not known. */
static unsigned cards_of_type(const Root *root) {
        _cleanup_(freep) char *name = NULL;
        const InstanceType *type =
                root_read_line(root, PRODUCT_NAME, &name) < 0 ? NULL : instance_type_find(name);
        return type && type->network_cards > 0 ? (unsigned)type->network_cards : 0;
}

static int read_interfaces(NetEvent *e) {
        Diag found = {};
        interfaces_done(&e->interfaces);
        e->interfaces = (Interfaces){};
        e->facts.interface = NULL;
        int r = pass_on(e, interfaces_read(e->run->root, &e->interfaces, &found), &found);
        if (r < 0)
                return r;
        e->facts.interface = interface_by_name(&e->interfaces, e->name);
        if (!e->facts.interface)
                return interface_error(e, -ENODEV,
                                       "there is no network interface of this name; it has gone since the "
                                       "event, or has another name now, with an event of its own");
        return 0;
}

static int read_decisions(NetEvent *e) {
        Diag found = {};
        decisions_done(&e->decisions);
        e->decisions = (Decisions){};
        return pass_on(e, decisions_read(e->run->root, e->snapshot.enis.instance_id, &e->decisions, &found),
                       &found);
}

/* Whose is it, or one of the others? Those whose tags would have to be asked for first are the CNI's here. */
static Manager manager_of(const NetEvent *e, const Interface *interface) {
        InterfaceFacts facts = e->facts;
        if (interface != facts.interface)
                facts.no_manage = NO_MANAGE_NOT_ASKED;
        facts.interface = interface;
        return interface_manager(&facts);
}

/* ---- questions ---- */

/* Interfaces that are the CNI's: nothing of them needs to be known, and there may be many. */
static char **macs_to_skip(const NetEvent *e) {
        char **macs = NULL;
        for (size_t i = 0; i < e->interfaces.n; i++) {
                const Interface *other = &e->interfaces.items[i];
                if (other->mac && other->driver && manager_of(e, other) == MANAGER_CNI)
                        strv_add(&macs, other->mac);
        }
        for (size_t i = 0; i < e->decisions.n; i++) {
                const Decision *d = &e->decisions.items[i];
                if (d->mac && d->manager == MANAGER_CNI && !interface_by_mac(&e->interfaces, d->mac))
                        strv_add(&macs, d->mac);
        }
        return macs;
}

/* Does it help to ask now? What was asked within this round, by whomever, is not asked again. */
static bool worth_asking(const NetEvent *e, Judgement judgement) {
        const Snapshot *s = &e->snapshot;
        const Eni *eni = eni_find(&s->enis, e->facts.interface->mac);
        uint64_t now = now_usec(), asked = eni ? eni->asked_usec : s->listed_usec,
                 young = eni && judgement == JUDGEMENT_DECIDED ? YOUNG_USEC : ROUND_USEC;
        if (s->failed_usec != 0 && now - s->failed_usec < ROUND_USEC)
                return false;
        return asked == 0 || now - asked >= young;
}

static Imds *imds_of(NetEvent *e) {
        Run *run = e->run;
        uint64_t now = now_usec(), left = e->deadline_usec > now ? e->deadline_usec - now : 0;
        if (!run->imds)
                run->imds = imds_new(MAX(MIN(BUDGET_USEC, left), USEC_PER_SEC));
        imds_recall(run->imds, NULL); /* what was not there may be there now */
        return run->imds;
}

/* 0: try again in the next round. A failure that time does not mend is told at once. */
static int asked(NetEvent *e, int r, Diag *found) {
        if (r >= 0) {
                diag_move(&e->run->diag, found);
                return 0;
        }
        e->run->imds = imds_free(e->run->imds); /* with a budget of its own the next time */
        if (r == -EINTR || r == -EPERM || r == -EINVAL)
                return pass_on(e, r, found);
        diag_done(found);
        return 0;
}

static int ask(NetEvent *e) {
        const Interface *own = e->facts.interface;
        _cleanup_(strv_freep) char **skip = macs_to_skip(e), **again = NULL;
        EniQuestion question = { .cards = e->facts.cards, .skip = skip, .older_usec = 1 };
        Diag found = {};
        if (manager_of(e, own) != MANAGER_CNI)
                strv_add(&again, own->mac);
        if (!e->snapshot.enis.primary)
                strv_add(&again, ""); /* it was not in the list: that is asked for again */
        question.again = again;
        return asked(e, snapshot_ask(&e->snapshot, imds_of(e), &question, &found), &found);
}

/* Before anything else: with it one knows what was decided, and so whom to ask nothing about. */
static int identify(NetEvent *e) {
        Diag found = {};
        return asked(e, snapshot_identify(&e->snapshot, imds_of(e), &found), &found);
}

/* Only with the gate: an interface that the CNI would have may be tagged to be left to the system. */
static int ask_for_tag(NetEvent *e) {
        _cleanup_(freep) char *region = NULL, *domain = NULL;
        Imds *imds = imds_of(e);
        Diag found = {};
        bool tagged = false;
        int r = imds_get(imds, "meta-data/placement/region", &region, NULL, &found);
        if (r >= 0)
                r = imds_get(imds, "meta-data/services/domain", &domain, NULL, &found);
        if (r == -ENOENT)
                return interface_error(e, r, "the metadata service does not say in which region this is");
        if (r >= 0) {
                Ec2 ec2 = { .region = region, .domain = domain, .imds = imds };
                r = ec2_check_endpoints(&ec2, true, &found);
                if (r >= 0)
                        r = ec2_interface_is_tagged(&ec2, e->snapshot.enis.instance_id,
                                                    e->facts.interface->mac, &tagged, &found);
        }
        e->facts.no_manage = r == -EACCES ? NO_MANAGE_UNKNOWN
                             : tagged     ? NO_MANAGE_TAGGED
                                          : NO_MANAGE_UNTAGGED;
        if (r != -EACCES)
                return pass_on(e, r, &found);
        const Diagnostic *error = diag_first_error(&found);
        diag_warn(&e->run->diag, "no-manage-unknown", "%s: %s", e->name,
                  error ? error->text : "EC2 may not be asked for its tags");
        diag_done(&found);
        return 0;
}

/* ---- rounds ---- */

/* Of a type that is not in our table. An interface on another card says that there are several. */
static void guess_cards(NetEvent *e) {
        const Enis *enis = &e->snapshot.enis;
        const Eni *eni = eni_find(enis, e->facts.interface->mac);
        bool several = false, late = now_usec() >= e->begin_usec + CARD_SHARE(e->span_usec),
             untold = eni && eni->asked_usec && eni->card < 0;
        if (e->type_known)
                return;
        for (size_t i = 0; i < enis->n; i++)
                several = several || enis->items[i].card > 0;
        if (!several && e->facts.cards == 0 && late && untold)
                diag_warn(&e->run->diag, "network-card-unknown",
                          "%s: how many network cards this instance type has is not known, and the metadata "
                          "service does not tell on which one this interface is; it counts as card 0",
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

/* What is known of it now? Asks, where that is not enough. */
static int learn(NetEvent *e, Judgement *ret) {
        bool identified = e->snapshot.enis.instance_id;
        int r = identified || !worth_asking(e, JUDGEMENT_LATE) ? 0 : identify(e);
        *ret = JUDGEMENT_LATE;
        if (r < 0 || !e->snapshot.enis.instance_id)
                return r;
        r = read_decisions(e);
        if (r < 0)
                return r;
        *ret = judge(e);
        bool known = *ret == JUDGEMENT_DECIDED && manager_of(e, e->facts.interface) == MANAGER_CNI;
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
        return e->gate && e->init_ran && e->facts.no_manage == NO_MANAGE_NOT_ASKED &&
               !decision_find(&e->decisions, i->mac, i->name) && manager_of(e, i) == MANAGER_CNI;
}

static int go_round(NetEvent *e, Judgement *ret) {
        Run *run = e->run;
        Diag found = {};
        _cleanup_(close_fd) int fd = -1;
        int r = read_interfaces(e);
        if (r < 0)
                return r;
        if (!run->options.dry_run) {
                fd = lock_take(run->root, SNAPSHOT_LOCK, e->deadline_usec + 2 * BUDGET_USEC, &found);
                r = pass_on(e, MIN(fd, 0), &found);
        }
        if (r < 0)
                return r;
        snapshot_done(&e->snapshot);
        snapshot_read(run->root, &e->snapshot, &run->diag);
        _cleanup_(json_decrefp) json_t *before = enis_to_json(&e->snapshot.enis);
        uint64_t failed = e->snapshot.failed_usec;
        guess_cards(e);
        r = learn(e, ret);
        _cleanup_(json_decrefp) json_t *after = enis_to_json(&e->snapshot.enis);
        if (!run->options.dry_run && (!json_equal(before, after) || failed != e->snapshot.failed_usec))
                snapshot_write(run->root, &e->snapshot, &run->diag);
        return r;
}

static int give_up(NetEvent *e) {
        const char *mac = e->facts.interface->mac;
        double seconds = (double)(now_usec() - e->begin_usec) / USEC_PER_SEC;
        if (e->snapshot.failure)
                return interface_error(e, -ETIMEDOUT, "%s (%s, %.3g s)", e->snapshot.failure, mac, seconds);
        return interface_error(
                e, -ETIMEDOUT,
                "%s, after %.3g s of asking for %s; nothing was configured and nothing decided, "
                "so that the next try begins anew",
                e->why ?: "the metadata service does not know it", seconds, mac);
}

static int look_into(NetEvent *e, Judgement *ret) {
        for (;;) {
                uint64_t round = now_usec() + ROUND_USEC;
                int r = go_round(e, ret);
                if (r >= 0 && *ret != JUDGEMENT_LATE && wants_tag(e)) {
                        r = ask_for_tag(e);
                        if (r >= 0)
                                continue;
                }
                if (r < 0 || *ret != JUDGEMENT_LATE)
                        return r;
                if (now_usec() >= e->deadline_usec)
                        return give_up(e);
                if (stop_wait(-1, MIN(MAX(round, now_usec()), e->deadline_usec)) == -EINTR)
                        return diag_error(&e->run->diag, -EINTR, CAUSE_INTERRUPTED,
                                          "stopped by %s; nothing was changed", stop_name(stop_signal()));
        }
}

/* ---- plan → apply ---- */

/* Folders of drop-ins for our files hold links of ours. */
static void list_folder(NetEvent *e, const char *folder) {
        _cleanup_(freep) char *path = xasprintf(NETWORK_DIR "/%s", folder);
        _cleanup_(strv_freep) char **names = NULL;
        if (!startswith(folder, "70-eks-") || !endswith(folder, ".network.d") ||
            root_list(e->run->root, path, &names) < 0)
                return;
        for (char **name = names; name && *name; name++)
                strv_push(&e->files, xasprintf("%s/%s", folder, *name));
}

static int list_files(NetEvent *e) {
        int r = root_list(e->run->root, NETWORK_DIR, &e->files);
        size_t n = strv_length(e->files);
        for (size_t i = 0; i < n; i++)
                list_folder(e, e->files[i]);
        return r < 0 && r != -ENOENT ? interface_error(e, r, NETWORK_DIR " cannot be read: %s", strerror(-r))
                                     : 0;
}

/* Two events of one interface at once: the second one finds what the first has made. */
static int lock_interface(NetEvent *e) {
        _cleanup_(freep) char *path = xasprintf(RUN_DIR "/interface-%s.lock", e->name);
        Diag found = {};
        if (e->run->options.dry_run)
                return 0;
        e->run->lock_fd = lock_take(e->run->root, path, e->deadline_usec + DEADLINE_USEC, &found);
        return pass_on(e, MIN(e->run->lock_fd, 0), &found);
}

/* All that others may have changed is looked at again, now that they cannot. */
static int plan_addition(NetEvent *e) {
        _cleanup_(freep) char *mac = xstrdup(e->facts.interface->mac);
        Diag found = {};
        int r = lock_interface(e);
        if (r >= 0)
                r = read_interfaces(e);
        if (r >= 0 && !streq(mac, e->facts.interface->mac))
                r = interface_error(e, -EAGAIN, "another interface (%s) has taken the name of %s meanwhile",
                                    e->facts.interface->mac, mac);
        if (r >= 0)
                r = read_decisions(e);
        if (r >= 0)
                r = list_files(e);
        if (r < 0)
                return r;
        e->drop_ins = drop_ins_of(e->run->root, e->name);
        e->facts.files = e->files;
        e->facts.drop_ins = e->drop_ins;
        return pass_on(e, interface_plan(&e->facts, &e->run->plan, &found), &found);
}

static int carry_out(NetEvent *e) {
        Run *run = e->run;
        diag_move(&run->diag, &run->plan->warnings);
        if (run->options.dry_run) {
                _cleanup_(freep) char *text = plan_to_text(run->plan);
                return output_text(text, &run->diag);
        }
        run->step = "apply";
        run->applied = true;
        return apply_plan(run->root, run->plan, &run->results, &run->diag);
}

static void tell(const NetEvent *e) {
        const Results *r = &e->run->results;
        const Interface *i = e->facts.interface;
        const Eni *eni = eni_find(&e->snapshot.enis, i->mac);
        Manager manager = manager_of(e, i);
        size_t done = results_count(r, OUTCOME_DONE);
        if (manager == MANAGER_CNI)
                log_info("%s (%s): the CNI's; nothing is configured here.", e->name, i->mac);
        else if (streq(i->mac, e->snapshot.enis.primary))
                log_info("%s (%s): systemd-networkd's, the primary one; %zu done, %zu unchanged.", e->name,
                         i->mac, done, results_count(r, OUTCOME_UNCHANGED));
        else if (eni)
                log_info("%s (%s): systemd-networkd's, card %d, device %d; %zu done, %zu unchanged.", e->name,
                         i->mac, eni->card, eni->device, done, results_count(r, OUTCOME_UNCHANGED));
}

static int add_interface(NetEvent *e) {
        Judgement judgement = JUDGEMENT_LATE;
        int r = look_into(e, &judgement);
        if (r < 0)
                return r;
        if (judgement == JUDGEMENT_IGNORED) {
                log_info("%s (%s) is left alone: %s.", e->name, e->facts.interface->mac, e->why ?: "");
                return 0;
        }
        r = plan_addition(e);
        if (r >= 0)
                r = carry_out(e);
        if (r >= 0 && !e->run->options.dry_run)
                tell(e);
        return r;
}

/* What the metadata service said of it may be said of another one by the time a name comes back. Its MAC
 * stands in the decision; one that has only been renamed is still there. */
static int forget(NetEvent *e) {
        Run *run = e->run;
        Diag found = {};
        _cleanup_(close_fd) int fd = lock_take(run->root, SNAPSHOT_LOCK, e->deadline_usec, &found);
        int r = pass_on(e, MIN(fd, 0), &found);
        if (r < 0)
                return r;
        snapshot_read(run->root, &e->snapshot, &run->diag);
        size_t n = e->snapshot.enis.n;
        if (!e->snapshot.enis.instance_id)
                return 0;
        r = read_decisions(e);
        if (r >= 0)
                r = pass_on(e, interfaces_read(run->root, &e->interfaces, &found), &found);
        for (size_t i = 0; i < e->decisions.n && r >= 0; i++) {
                const Decision *d = &e->decisions.items[i];
                if (d->mac && d->name && streq(d->name, e->name) && !interface_by_mac(&e->interfaces, d->mac))
                        snapshot_drop(&e->snapshot, d->mac);
        }
        if (r >= 0 && e->snapshot.enis.n != n)
                snapshot_write(run->root, &e->snapshot, &run->diag);
        return r;
}

static int remove_interface(NetEvent *e) {
        Diag found = {};
        int r = lock_interface(e);
        if (r >= 0 && !e->run->options.dry_run)
                r = forget(e);
        if (r >= 0)
                r = list_files(e);
        if (r >= 0)
                r = pass_on(e, interface_plan_removal(e->name, e->files, &e->run->plan, &found), &found);
        if (r >= 0)
                r = carry_out(e);
        return r;
}

/* ---- the command ---- */

static int check_words(const Options *o, Diag *diag) {
        if (!o->interface || !interface_name_is_valid(o->interface))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "%s: udev-net-manager takes --action add or remove, and --interface NAME",
                                  o->interface && *o->interface ? "no interface can have that name"
                                                                : "the name of the interface is missing");
        if (!o->action || (!streq(o->action, "add") && !streq(o->action, "remove")))
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "--action takes add or remove%s%s%s",
                                  o->action ? ", not \"" : "", o->action ?: "", o->action ? "\"" : "");
        return 0;
}

static int is_there(NetEvent *e, const char *path, bool *ret) {
        int r = root_exists(e->run->root, path);
        *ret = r > 0;
        return r < 0 ? interface_error(e, r, "%s cannot be looked at: %s", path, strerror(-r)) : 0;
}

/* For the tests, which do not wait half a minute: a file below another root than the machine's own. */
static uint64_t deadline_span(const Root *root) {
        uint64_t msec;
        return !root_is_host(root) && root_read_u64(root, RUN_DIR "/deadline-ms", &msec) >= 0
                       ? msec * USEC_PER_MSEC
                       : DEADLINE_USEC;
}

int command_udev_net_manager(Run *run) {
        _cleanup_(net_event_done)
                NetEvent e = { .run = run, .name = run->options.interface, .begin_usec = now_usec() };
        int r = check_words(&run->options, &run->diag);
        if (r < 0)
                return r;
        if (root_is_host(run->root) && geteuid() != 0 && !run->options.dry_run)
                return diag_error(&run->diag, -EPERM, CAUSE_USAGE,
                                  "udev-net-manager changes the machine and needs root");
        stop_catch();
        run->step = "interface";
        e.span_usec = deadline_span(run->root);
        e.deadline_usec = e.begin_usec + e.span_usec;
        if (streq(run->options.action, "remove"))
                return remove_interface(&e);
        e.facts = (InterfaceFacts){ .enis = &e.snapshot.enis,
                                    .decisions = &e.decisions,
                                    .interfaces = &e.interfaces,
                                    .cards = cards_of_type(run->root) };
        r = is_there(&e, INIT_MARKER, &e.init_ran);
        if (r >= 0)
                r = is_there(&e, NO_MANAGE_MARKER, &e.gate);
        e.facts.init_ran = e.init_ran;
        e.type_known = e.facts.cards > 0;
        return r < 0 ? r : add_interface(&e);
}
