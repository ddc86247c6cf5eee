/* SPDX-License-Identifier: Apache-2.0
 * A network interface came or went → its facts (net-event.c), the files for networkd → its plan
 * (plan/interface.c). This changes only what is kept of this boot. */
#include "nic/net-event.h"

#include "base/lock.h"
#include "base/str.h"

#include <errno.h>

#define NETWORK_MAX (256 << 10)
#define EARLY_DIR   RUN_DIR "/early-interfaces" /* a file for each MAC that came before INIT_MARKER */

static char *early_path(const char *mac) {
        return xasprintf(EARLY_DIR "/%s", mac);
}

/* Without this note a later try would give the interface to the CNI. */
static int note_early(NetEvent *e) {
        int r = e->dry_run || e->facts.init_ran ? 0 : net_event_read_interfaces(e);
        const Interface *own = e->facts.interface;
        if (r < 0 || !own || !mac_is_valid(own->mac))
                return r;
        _free_ char *path = early_path(own->mac), *text = xasprintf("%s\n", e->name);
        int written = root_replace_volatile(e->root, path, text, strlen(text), 0644);
        if (written < 0)
                diag_warn(e->diag, "early-interface",
                          "%s cannot be written: %s; once the run phase has begun, a retry gives %s to the "
                          "CNI",
                          path, strerror(-written), e->name);
        return 0;
}

/* MACs in our .network files. Ignores unreadable files. */
static void read_managed(NetEvent *e, char *const *files) {
        e->managed = strv_free(e->managed);
        STRV_FOREACH(file, files) {
                _free_ char *path = xasprintf(NETWORK_DIR "/%s", *file), *text = NULL;
                if (!startswith(*file, "70-eks-") || !endswith(*file, ".network") ||
                    root_read(e->root, path, NETWORK_MAX, &text, NULL) < 0)
                        continue;
                char *mac = network_file_mac(text);
                if (mac)
                        strv_push(&e->managed, mac);
        }
        e->facts.managed = e->managed;
}

static int read_boot(NetEvent *e) {
        _strv_ char **files = NULL;
        int r = note_early(e);
        if (r < 0)
                return r;
        if (root_list(e->root, EARLY_DIR, &e->early) >= 0)
                e->facts.early = e->early;
        if (root_list(e->root, NETWORK_DIR, &files) >= 0)
                read_managed(e, files);
        return 0;
}

/* systemd.network(5): of files with the same name, the first counts */
static const char places[][16] = { "/etc", "/run", "/usr/local/lib", "/usr/lib" };

static char **drop_ins_of(const Root *root, const char *name) {
        char **found = NULL;
        _strv_ char **seen = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _strv_ char **names = NULL;
                _free_ char *dir = xasprintf("%s/systemd/network/70-%s.network.d", places[i], name);
                if (root_list(root, dir, &names) < 0)
                        continue;
                STRV_FOREACH(file, names) {
                        if (!endswith(*file, ".conf") || strv_contains(seen, *file))
                                continue;
                        strv_add(&seen, *file);
                        strv_push(&found, xasprintf("%s/%s", dir, *file));
                }
        }
        return found;
}

/* A link to a drop-in that drop_ins_of() finds. Other files in such a folder are foreign. */
static bool is_link_of_ours(const Root *root, const char *folder, const char *file) {
        _free_ char *path = xasprintf(NETWORK_DIR "/%s/%s", folder, file), *target = NULL;
        if (root_read_link(root, path, &target) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _free_ char *ours = xasprintf("%s/systemd/network/70-%s/%s", places[i],
                                              folder + strlen("70-eks-"), file);
                if (streq(target, ours))
                        return true;
        }
        return false;
}

static void list_folder(NetEvent *e, const char *folder) {
        _free_ char *path = xasprintf(NETWORK_DIR "/%s", folder);
        _strv_ char **names = NULL;
        if (!startswith(folder, "70-eks-") || !endswith(folder, ".network.d") ||
            root_list(e->root, path, &names) < 0)
                return;
        STRV_FOREACH(name, names)
                if (streq(*name, MTU_DROP_IN) || is_link_of_ours(e->root, folder, *name))
                        strv_push(&e->files, xasprintf("%s/%s", folder, *name));
}

static int list_files(NetEvent *e) {
        int r = root_list(e->root, NETWORK_DIR, &e->files);
        e->files = e->files ?: xcalloc(1, sizeof *e->files);
        size_t n = strv_length(e->files);
        read_managed(e, e->files);
        for (size_t i = 0; i < n; i++)
                list_folder(e, e->files[i]);
        return r < 0 && r != -ENOENT ? net_event_error(e, r, NETWORK_DIR " cannot be read: %s", strerror(-r))
                                     : 0;
}

/* Of two events of one interface, the second finds the work of the first. */
static int lock_interface(NetEvent *e) {
        _free_ char *path = xasprintf(RUN_DIR "/interface-%s.lock", e->name);
        Diag found = {};
        if (e->dry_run)
                return 0;
        e->lock_fd = lock_take(e->root, path, e->deadline_usec + NET_EVENT_USEC, &found);
        return net_event_pass(e, MIN(e->lock_fd, 0), &found);
}

/* Reads again, under the lock, what other processes may have changed. */
static int plan_decided(NetEvent *e, Plan **ret) {
        _free_ char *mac = xstrdup(e->facts.interface->mac);
        Diag found = {};
        int r = lock_interface(e);
        THEN(r, net_event_read_interfaces(e));
        if (r >= 0 && !streq(mac, e->facts.interface->mac))
                r = net_event_error(e, -EAGAIN, "another interface (%s) has taken this name from %s",
                                    e->facts.interface->mac, mac);
        THEN(r, net_event_read_decisions(e));
        THEN(r, list_files(e));
        if (r < 0)
                return r;
        e->drop_ins = drop_ins_of(e->root, e->name);
        e->facts.files = e->files;
        e->facts.drop_ins = e->drop_ins;
        return net_event_pass(e, interface_plan(&e->facts, ret, &found), &found);
}

int net_event_plan_addition(NetEvent *e, Plan **ret) {
        Judgement judgement = JUDGEMENT_LATE;
        net_event_set_deadline(e);
        int r = net_event_begin(e);
        THEN(r, read_boot(e));
        THEN(r, net_event_look(e, &judgement));
        return r < 0 || judgement == JUDGEMENT_IGNORED ? r : plan_decided(e, ret);
}

/* Of gone interfaces, and of the former owner of this name: `remove` may come while that exists; its time
 * then restarts. A renamed interface keeps its time. */
static void forget_early(NetEvent *e) {
        _strv_ char **macs = NULL;
        if (root_list(e->root, EARLY_DIR, &macs) < 0)
                return;
        STRV_FOREACH(mac, macs) {
                const Interface *i = interface_by_mac(&e->interfaces, *mac);
                _free_ char *path = early_path(*mac);
                if (!i || streq(i->name, e->name))
                        (void)!root_remove(e->root, path);
        }
}

/* The next interface of this name must not inherit its metadata. udev does not give the former MAC, so this
 * drops every MAC without an interface. A renamed one still exists. */
static int forget(NetEvent *e) {
        Diag found = {};
        _cleanup_(close_fd) int fd = -1;
        int r = 0;
        if (!e->dry_run) {
                fd = lock_take(e->root, SNAPSHOT_LOCK, e->deadline_usec, &found);
                r = net_event_pass(e, MIN(fd, 0), &found);
        }
        if (r < 0)
                return r;
        snapshot_read(e->root, &e->snapshot, &found);
        size_t n = e->snapshot.enis.n;
        if (e->snapshot.enis.instance_id)
                r = net_event_read_decisions(e);
        for (size_t i = n; i-- > 0 && r >= 0;) {
                const Eni *eni = &e->snapshot.enis.items[i];
                bool primary = e->snapshot.enis.primary && streq(eni->mac, e->snapshot.enis.primary);
                if (!primary && !interface_by_mac(&e->interfaces, eni->mac))
                        snapshot_drop(&e->snapshot, eni->mac);
        }
        if (r >= 0 && e->snapshot.enis.n != n && !e->dry_run)
                snapshot_write(e->root, &e->snapshot, &found);
        return net_event_pass(e, r, &found);
}

int net_event_plan_removal(NetEvent *e, Plan **ret) {
        Diag found = {};
        net_event_set_deadline(e);
        int r = lock_interface(e);
        THEN(r, net_event_pass(e, interfaces_read(e->root, &e->interfaces, &found), &found));
        THEN(r, forget(e));
        THEN(r, list_files(e));
        if (r < 0)
                return r;
        if (!e->dry_run)
                forget_early(e);
        e->facts = (InterfaceFacts){ .enis = &e->snapshot.enis,
                                     .decisions = &e->decisions,
                                     .interfaces = &e->interfaces,
                                     .files = e->files };
        return net_event_pass(e, interface_plan_removal(e->name, &e->facts, ret, &found), &found);
}
