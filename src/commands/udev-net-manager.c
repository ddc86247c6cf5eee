/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap udev-net-manager`: a network interface has come or gone. facts → judge (net-event.c)
 * → plan → apply. */
#include "commands/commands.h"
#include "commands/net-event.h"
#include "commands/output.h"

#include "apply/apply.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define NETWORK_DIR   "/run/systemd/network"
#define NETWORK_MAX   (256 << 10)
#define EARLY_DIR     RUN_DIR "/early-interfaces" /* a file for each MAC that came before INIT_MARKER */

/* ---- what is known of this boot ---- */

static char *early_path(const char *mac) {
        return xasprintf(EARLY_DIR "/%s", mac);
}

/* A later try must not take it for the CNI's because the first one was in vain. */
static int note_early(NetEvent *e) {
        int r = e->run->options.dry_run || e->facts.init_ran ? 0 : net_event_read_interfaces(e);
        const Interface *own = e->facts.interface;
        if (r < 0 || !own || !mac_is_valid(own->mac))
                return r;
        _cleanup_(freep) char *path = early_path(own->mac), *text = xasprintf("%s\n", e->name);
        int written = root_replace_volatile(e->run->root, path, text, strlen(text), 0644);
        if (written < 0)
                diag_warn(&e->run->diag, "early-interface",
                          "%s cannot be written (%s); a try after the run phase has begun takes %s for an "
                          "interface of the CNI",
                          path, strerror(-written), e->name);
        return 0;
}

/* MACs that files of ours have networkd manage. One that cannot be read says nothing. */
static void read_managed(NetEvent *e, char *const *files) {
        strv_free(e->managed);
        e->managed = NULL;
        for (char *const *file = files; file && *file; file++) {
                _cleanup_(freep) char *path = xasprintf(NETWORK_DIR "/%s", *file), *text = NULL;
                if (!startswith(*file, "70-eks-") || !endswith(*file, ".network") ||
                    root_read(e->run->root, path, NETWORK_MAX, &text, NULL) < 0)
                        continue;
                char *mac = network_file_mac(text);
                if (mac)
                        strv_push(&e->managed, mac);
        }
        e->facts.managed = e->managed;
}

static int read_boot(NetEvent *e) {
        _cleanup_(strv_freep) char **files = NULL;
        int r = note_early(e);
        if (r < 0)
                return r;
        if (root_list(e->run->root, EARLY_DIR, &e->early) >= 0)
                e->facts.early = e->early;
        if (root_list(e->run->root, NETWORK_DIR, &files) >= 0)
                read_managed(e, files);
        return 0;
}

/* ---- plan → apply ---- */

/* systemd.network(5): of files with one name the first of these counts */
static const char *const places[] = { "/etc", "/run", "/usr/local/lib", "/usr/lib" };

static char **drop_ins_of(const Root *root, const char *name) {
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

/* As drop_ins_of() finds what they point to. All else in such a folder is somebody else's. */
static bool is_link_of_ours(const Root *root, const char *folder, const char *file) {
        _cleanup_(freep) char *path = xasprintf(NETWORK_DIR "/%s/%s", folder, file), *target = NULL;
        if (root_read_link(root, path, &target) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _cleanup_(freep) char *ours = xasprintf("%s/systemd/network/70-%s/%s", places[i],
                                                        folder + strlen("70-eks-"), file);
                if (streq(target, ours))
                        return true;
        }
        return false;
}

static void list_folder(NetEvent *e, const char *folder) {
        _cleanup_(freep) char *path = xasprintf(NETWORK_DIR "/%s", folder);
        _cleanup_(strv_freep) char **names = NULL;
        if (!startswith(folder, "70-eks-") || !endswith(folder, ".network.d") ||
            root_list(e->run->root, path, &names) < 0)
                return;
        for (char **name = names; name && *name; name++)
                if (is_link_of_ours(e->run->root, folder, *name))
                        strv_push(&e->files, xasprintf("%s/%s", folder, *name));
}

static int list_files(NetEvent *e) {
        int r = root_list(e->run->root, NETWORK_DIR, &e->files);
        e->files = e->files ?: xcalloc(1, sizeof *e->files);
        size_t n = strv_length(e->files);
        read_managed(e, e->files);
        for (size_t i = 0; i < n; i++)
                list_folder(e, e->files[i]);
        return r < 0 && r != -ENOENT ? net_event_error(e, r, NETWORK_DIR " cannot be read: %s", strerror(-r))
                                     : 0;
}

/* Two events of one interface at once: the second one finds what the first has made. */
static int lock_interface(NetEvent *e) {
        _cleanup_(freep) char *path = xasprintf(RUN_DIR "/interface-%s.lock", e->name);
        Diag found = {};
        if (e->run->options.dry_run)
                return 0;
        e->run->lock_fd = lock_take(e->run->root, path, e->deadline_usec + NET_EVENT_USEC, &found);
        return net_event_pass(e, MIN(e->run->lock_fd, 0), &found);
}

/* All that others may have changed is looked at again, now that they cannot. */
static int plan_addition(NetEvent *e) {
        _cleanup_(freep) char *mac = xstrdup(e->facts.interface->mac);
        Diag found = {};
        int r = lock_interface(e);
        if (r >= 0)
                r = net_event_read_interfaces(e);
        if (r >= 0 && !streq(mac, e->facts.interface->mac))
                r = net_event_error(e, -EAGAIN, "another interface (%s) has taken the name of %s meanwhile",
                                    e->facts.interface->mac, mac);
        if (r >= 0)
                r = net_event_read_decisions(e);
        if (r >= 0)
                r = list_files(e);
        if (r < 0)
                return r;
        e->drop_ins = drop_ins_of(e->run->root, e->name);
        e->facts.files = e->files;
        e->facts.drop_ins = e->drop_ins;
        return net_event_pass(e, interface_plan(&e->facts, &e->run->plan, &found), &found);
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
        return apply_plan(run->root, run->plan, run->results, &run->diag);
}

static size_t count_removed(const Results *r) {
        size_t n = 0;
        for (size_t i = 0; i < r->n; i++)
                n += r->items[i].outcome == OUTCOME_DONE && r->items[i].action->type == ACTION_REMOVE_FILE &&
                     startswith(r->items[i].action->target, NETWORK_DIR "/");
        return n;
}

static void tell(const NetEvent *e) {
        const Results *r = e->run->results;
        const Interface *i = e->facts.interface;
        const Eni *eni = eni_find(&e->snapshot.enis, i->mac);
        Manager manager = net_event_manager(e, i);
        size_t done = results_count(r, OUTCOME_DONE), removed = count_removed(r);
        if (manager == MANAGER_CNI && removed > 0)
                log_info("%s (%s): the CNI's; what systemd-networkd managed by this name is removed (%zu "
                         "files and links).",
                         e->name, i->mac, removed);
        else if (manager == MANAGER_CNI)
                log_info("%s (%s): the CNI's; nothing is configured here.", e->name, i->mac);
        else if (streq(i->mac, e->snapshot.enis.primary))
                log_info("%s (%s): systemd-networkd's, the primary one; %zu done, %zu unchanged.", e->name,
                         i->mac, done, results_count(r, OUTCOME_UNCHANGED));
        else if (eni)
                log_info("%s (%s): systemd-networkd's, card %d, device %d; %zu done, %zu unchanged.", e->name,
                         i->mac, MAX(eni->card, 0), eni->device, done, results_count(r, OUTCOME_UNCHANGED));
}

static int add_interface(NetEvent *e) {
        Judgement judgement = JUDGEMENT_LATE;
        int r = read_boot(e);
        if (r >= 0)
                r = net_event_look(e, &judgement);
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

/* Of what has gone, and of what was called so: `remove` may be told while it is still there, and begins anew
 * then. One that has only been renamed came when it came. */
static void forget_early(NetEvent *e) {
        _cleanup_(strv_freep) char **macs = NULL;
        if (root_list(e->run->root, EARLY_DIR, &macs) < 0)
                return;
        for (char **mac = macs; mac && *mac; mac++) {
                const Interface *i = interface_by_mac(&e->interfaces, *mac);
                _cleanup_(freep) char *path = early_path(*mac);
                if (!i || streq(i->name, e->name))
                        (void)!root_remove(e->run->root, path);
        }
}

/* What the metadata service said of it may be said of another one by the time a name comes back. Which MAC it
 * had nobody says any more: whatever has no interface now; one that has only been renamed is still there. */
static int forget(NetEvent *e) {
        Run *run = e->run;
        Diag found = {};
        _cleanup_(close_fd) int fd = -1;
        int r = 0;
        if (!run->options.dry_run) {
                fd = lock_take(run->root, SNAPSHOT_LOCK, e->deadline_usec, &found);
                r = net_event_pass(e, MIN(fd, 0), &found);
        }
        if (r < 0)
                return r;
        snapshot_read(run->root, &e->snapshot, &found);
        size_t n = e->snapshot.enis.n;
        if (e->snapshot.enis.instance_id)
                r = net_event_read_decisions(e);
        for (size_t i = n; i-- > 0 && r >= 0;) {
                const Eni *eni = &e->snapshot.enis.items[i];
                bool primary = e->snapshot.enis.primary && streq(eni->mac, e->snapshot.enis.primary);
                if (!primary && !interface_by_mac(&e->interfaces, eni->mac))
                        snapshot_drop(&e->snapshot, eni->mac);
        }
        if (r >= 0 && e->snapshot.enis.n != n && !run->options.dry_run)
                snapshot_write(run->root, &e->snapshot, &found);
        return net_event_pass(e, r, &found);
}

static int remove_interface(NetEvent *e) {
        Diag found = {};
        int r = lock_interface(e);
        if (r >= 0)
                r = net_event_pass(e, interfaces_read(e->run->root, &e->interfaces, &found), &found);
        if (r >= 0)
                r = forget(e);
        if (r >= 0)
                r = list_files(e);
        if (r < 0)
                return r;
        if (!e->run->options.dry_run)
                forget_early(e);
        e->facts = (InterfaceFacts){ .enis = &e->snapshot.enis,
                                     .decisions = &e->decisions,
                                     .interfaces = &e->interfaces,
                                     .files = e->files };
        r = net_event_pass(e, interface_plan_removal(e->name, &e->facts, &e->run->plan, &found), &found);
        return r < 0 ? r : carry_out(e);
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
        e.span_usec = net_event_span(run->root);
        e.deadline_usec = e.begin_usec + e.span_usec;
        if (streq(run->options.action, "remove"))
                return remove_interface(&e);
        r = net_event_begin(&e);
        return r < 0 ? r : add_interface(&e);
}
