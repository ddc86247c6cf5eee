/* SPDX-License-Identifier: Apache-2.0
 * The plan of one network interface. networkd manages those that exist when the node boots. The CNI manages
 * those that it attaches later: networkd would remove their routes and rules (awslabs/amazon-eks-ami#1738,
 * aws/amazon-vpc-cni-k8s#3524). A late answer of the metadata service is never guessed: a wrong card gives
 * two interfaces one table (amazonlinux/amazon-ec2-net-utils#153). */
#include "nic/plan/interface.h"

#include "base/json.h"
#include "base/str.h"
#include "plan/planner.h"

#include <errno.h>

#define GROUP        "network"
#define DECISION_USEC (10 * USEC_PER_SEC)
#define DEFAULT_FILE NETWORK_DIR "/80-ec2.network.d/10-eks-disable.conf"
/* the bytes of nodeadm, without a line end */
#define DEFAULT_OFF  "[Match]\nName=none"

static bool is_primary(const InterfaceFacts *f) {
        return f->enis->primary && streq(f->enis->primary, f->interface->mac);
}

/* A failed first try or a late metadata service does not give an early interface to the CNI. */
static bool came_behind_marker(const InterfaceFacts *f) {
        return f->init_ran && !strv_contains(f->early, f->interface->mac);
}

/* Does networkd manage it in this boot? */
static bool is_managed(const InterfaceFacts *f) {
        return strv_contains(f->managed, f->interface->mac);
}

/* A kept decision never gives the primary interface to the CNI, or the node would boot without a network. It
 * may in this boot, where running interfaces stay as they are. */
static const Decision *kept_decision(const InterfaceFacts *f) {
        const Decision *kept = decision_find(f->decisions, f->interface->mac, f->interface->name);
        bool counts = !kept || kept->manager == MANAGER_NETWORKD || !is_primary(f) ||
                      (came_behind_marker(f) && !is_managed(f));
        return counts ? kept : NULL;
}

/* In the order of nodeadm: first the earlier decision. After the run phase has begun, every new interface is
 * of the CNI, unless it has the tag. A primary one without its old decision is too: nodeadm also answers cni,
 * and leaves a running interface alone (case udev-net-manager of its tests). A link that networkd has by our
 * file stays with it. A read-only or full /etc, or a soft reboot into another root, may have no decision. */
Manager interface_manager(const InterfaceFacts *f) {
        const Decision *kept = kept_decision(f);
        if (kept)
                return kept->manager;
        bool cnis = came_behind_marker(f) && !is_managed(f) && f->no_manage != NO_MANAGE_TAGGED;
        return cnis ? MANAGER_CNI : MANAGER_NETWORKD;
}

/* NULL: nothing is missing. */
static const char *missing_place(const InterfaceFacts *f, const Eni *eni) {
        if (!eni)
                return "the metadata service does not list it yet";
        if (eni_is_partial(eni))
                return "the metadata service has not answered all requests about it yet";
        if (eni->device < 0)
                return "the metadata service has no device number for it yet";
        if (eni->card < 0 && f->cards == 0)
                return "the metadata service does not list its network card, and the number of cards of this "
                       "instance type is not known";
        if (eni->card < 0 && f->cards > 1)
                return "the metadata service does not list its network card yet, and this instance type has "
                       "several";
        if (eni->card <= 0 && eni->device == 0)
                return "the metadata service lists this interface as device 0 of network card 0, which is "
                       "the primary interface";
        return NULL;
}

Judgement interface_judge(const InterfaceFacts *f, char **ret_why) {
        const Eni *eni = eni_find(f->enis, f->interface->mac);
        const char *why = NULL;
        *ret_why = NULL;
        if (!f->enis->instance_id || !f->enis->primary)
                why = "the metadata service does not list the instance id and its primary interface yet";
        else if (interface_manager(f) == MANAGER_CNI || is_primary(f))
                return JUDGEMENT_DECIDED;
        else
                why = missing_place(f, eni);
        if (!why && (eni->ipv4s || eni->ipv6s))
                return JUDGEMENT_DECIDED;
        *ret_why = xstrdup(why ?: "it has no address, like an EFA-only interface");
        return why ? JUDGEMENT_LATE : JUDGEMENT_IGNORED;
}

/* The decision comes first: a power cut must not lose it but keep a file that follows from it. Then come the
 * files of networkd, in sequence, and then what depends on them. */
typedef struct Making {
        Plan *plan;
        char **decided;         /* ids of the actions for the decision */
        char **changes;         /* ids of the changes to files of networkd */
} Making;

static void making_done(Making *m) {
        plan_free(m->plan);
        strv_free(m->decided);
        strv_free(m->changes);
}

static void after_all(Action *a, char *const *ids) {
        STRV_FOREACH(id, ids)
                action_after(a, *id);
}

static void next_change(Making *m, Action *a) {
        if (m->changes)
                action_after(a, m->changes[strv_length(m->changes) - 1]);
        else
                after_all(a, m->decided);
        strv_add(&m->changes, a->id);
}

static void write_network(Making *m, const char *path, const char *why, const char *content) {
        next_change(m, plan_file(m->plan, PHASE_CONFIG, GROUP, path, why, content, 0644));
}

static void remove_network(Making *m, const char *path, const char *why) {
        next_change(m, plan_add(m->plan, ACTION_REMOVE_FILE, PHASE_CONFIG, GROUP, path, why));
}

/* Is that name decided for another MAC? */
static bool is_anothers(const Decisions *d, const char *mac, const char *name) {
        return ANY(k, d->items, d->n, streq(k->name, name) && k->mac && !streq(k->mac, mac));
}

static bool is_of_former_name(const InterfaceFacts *f, const Decision *d) {
        return d->mac && streq(d->mac, f->interface->mac) && !streq(d->name, f->interface->name);
}

/* Keeps the form that the file of nodeadm has. */
static char *name_content(const InterfaceFacts *f, Manager manager) {
        const char *word = manager_to_string(manager);
        bool object = ANY(k, f->decisions->items, f->decisions->n,
                          k->json && streq(k->name, f->interface->name));
        return object ? xasprintf("{\"mac\":\"%s\",\"manager\":\"%s\"}", f->interface->mac, word)
                      : xstrdup(word);
}

/* Lenient: the interface works with a read-only /etc, and behind a disk that pauses. */
static void decision_step(Making *m, Action *a) {
        a->lenient = true;
        a->deadline_usec = MIN(a->deadline_usec, DECISION_USEC);
        strv_add(&m->decided, a->id);
}

static bool is_removed(const Making *m, const char *path) {
        _free_ char *id = xasprintf("remove-file:%s", path);
        return plan_find(m->plan, id);
}

/* Does another interface, with its own event and decision, have this name now? That event may be over. */
static bool is_handed_on(const InterfaceFacts *f, const char *name) {
        const Interface *other = interface_by_name(f->interfaces, name);
        return other && other->mac && other->driver &&
               ANY(k, f->decisions->items, f->decisions->n, k->mac && streq(k->mac, other->mac));
}

/* The next owner of this name would find a foreign decision, and the nodeadm boot-hook would wait for it. */
static void forget_names(Making *m, const InterfaceFacts *f) {
        for (size_t i = 0; i < f->decisions->n; i++) {
                const Decision *d = &f->decisions->items[i];
                if (!is_of_former_name(f, d) || is_anothers(f->decisions, d->mac, d->name) ||
                    is_handed_on(f, d->name))
                        continue;
                _free_ char *path = decision_name_path(f->enis->instance_id, d->name);
                if (!is_removed(m, path))
                        decision_step(m, plan_add(m->plan, ACTION_REMOVE_FILE, PHASE_CONFIG, GROUP, path,
                                                  "remove the decision for the former interface name"));
        }
}

static void keep_decision(Making *m, const InterfaceFacts *f, Manager manager) {
        _free_ char *path = decision_mac_path(f->enis->instance_id, f->interface->mac),
                    *nodeadms = decision_name_path(f->enis->instance_id, f->interface->name),
                    *word = name_content(f, manager);
        _cleanup_(json_decrefp) json_t *json = json_pack("{ss ss}", "interface", f->interface->name,
                                                         "manager", manager_to_string(manager));
        _free_ char *object = json_text(json, 0, false);
        if (manager == MANAGER_NETWORKD || !is_primary(f))
                decision_step(m, plan_file(m->plan, PHASE_CONFIG, GROUP, path,
                                           "keep the decision for this MAC", object, 0644));
        decision_step(m, plan_file(m->plan, PHASE_CONFIG, GROUP, nodeadms,
                                   "keep the decision for nodeadm", word, 0644));
        forget_names(m, f);
}

static char *network_path(const char *name) {
        return xasprintf(NETWORK_DIR "/70-eks-%s.network", name);
}

static bool has_file(char *const *files, const char *path) {
        return strv_contains(files, path + strlen(NETWORK_DIR "/"));
}

/* The file of a name, then its links to drop-ins, then their folder. */
static void remove_network_files(Making *m, const char *name, char *const *files, const char *why) {
        _free_ char *path = network_path(name), *folder = xasprintf("%s.d", path),
                    *below = xasprintf("%s/", folder + strlen(NETWORK_DIR "/"));
        remove_network(m, path, why);
        for (char *const *file = files; file && *file; file++) {
                if (!startswith(*file, below))
                        continue;
                _free_ char *link = xasprintf(NETWORK_DIR "/%s", *file);
                remove_network(m, link, why);
        }
        if (has_file(files, folder))
                remove_network(m, folder, why);
}

/* Our file has another name than that of amazon-ec2-net-utils, so networkd would miss the drop-ins of the
 * image (awslabs/amazon-eks-ami#2623). /etc comes first, then /run (systemd.network(5)). */
static void link_drop_ins(Making *m, const InterfaceFacts *f, const char *path) {
        static const char folders[][8] = { "/etc/", "/run/", "/" };
        for (size_t k = 0; k < ARRAY_SIZE(folders); k++)
                for (char *const *from = f->drop_ins; from && *from; from++) {
                        const char *slash = strrchr(*from, '/');
                        if (!slash || !startswith(*from, folders[k]))
                                continue;
                        _free_ char *link = xasprintf("%s.d%s", path, slash),
                                    *id = xasprintf("link-file:%s", link);
                        if (plan_find(m->plan, id))
                                continue;
                        Action *a = plan_add(m->plan, ACTION_LINK_FILE, PHASE_CONFIG, GROUP, link,
                                             "image settings for this interface");
                        a->with = xstrdup(*from);
                        next_change(m, a);
                }
}

/* A stale link leads nowhere, or to a later file of another package. init wrote the file with
 * spec.instance.network.mtu in this boot. */
static void remove_stale_links(Making *m, const InterfaceFacts *f, const char *path) {
        _free_ char *below = xasprintf("%s.d/", path + strlen(NETWORK_DIR "/"));
        for (char *const *file = f->files; file && *file; file++) {
                _free_ char *link = xasprintf(NETWORK_DIR "/%s", *file),
                            *id = xasprintf("link-file:%s", link);
                if (startswith(*file, below) && !endswith(*file, "/" MTU_DROP_IN) &&
                    !plan_find(m->plan, id))
                        remove_network(m, link, "settings that the image no longer has");
        }
}

/* networkd reads them all at its reload. If it starts meanwhile, the file comes after its drop-ins, and the
 * default of the image goes once our file exists. */
static void write_network_files(Making *m, const InterfaceFacts *f) {
        bool primary = is_primary(f);
        const Eni *listed = eni_find(f->enis, f->interface->mac);
        Eni eni = { .mac = f->interface->mac };
        if (listed && !primary)
                eni = *listed;
        _free_ char *path = network_path(f->interface->name),
                    *content = network_file(&eni, primary),
                    *why = primary ? xstrdup("primary interface")
                                   : xasprintf("network card %d, device %d", MAX(eni.card, 0),
                                               eni.device);
        link_drop_ins(m, f, path);
        remove_stale_links(m, f, path);
        write_network(m, path, why, content);
        if (primary)
                write_network(m, DEFAULT_FILE, "leave other interfaces unmanaged by default", DEFAULT_OFF);
}

/* The file of a former name would still match. An interface that has that name now handles its own. */
static void remove_former(Making *m, const InterfaceFacts *f) {
        for (size_t i = 0; i < f->decisions->n; i++) {
                const Decision *d = &f->decisions->items[i];
                _free_ char *path = network_path(d->name);
                if (is_of_former_name(f, d) && !interface_by_name(f->interfaces, d->name) &&
                    has_file(f->files, path) && !is_removed(m, path))
                        remove_network_files(m, d->name, f->files, "file of the former interface name");
        }
}

/* Replies leave by the table of the interface, and strict checks of the main table would drop answers.
 * networkd has no setting for that before systemd 254. */
static void loosen_rp_filter(Making *m, const char *name) {
        _free_ char *setting = xasprintf("net/ipv4/conf/%s/rp_filter", name);
        Action *a = plan_add(m->plan, ACTION_SET_SYSCTL, PHASE_CONFIG, GROUP, setting,
                             "accept packets whose replies use its own table");
        a->with = xstrdup("2");
        a->lenient = true;
        after_all(a, m->changes);
}

static void reload_networkd(Making *m) {
        if (!m->changes)
                return;
        size_t n = m->plan->n;
        Action *a = plan_add(m->plan, ACTION_RELOAD_NETWORKD, PHASE_CONFIG, GROUP, "systemd-networkd",
                             "read the changed network files");
        after_all(a, m->changes);
        for (size_t i = 0; i < n; i++)
                if (m->plan->actions[i].type == ACTION_SET_SYSCTL)
                        action_after_any(a, m->plan->actions[i].id);
}

static int making_finish(Making *m, Plan **ret, Diag *diag) {
        reload_networkd(m);
        int r = plan_finish(m->plan, diag);
        if (r >= 0)
                *ret = TAKE_PTR(m->plan);
        return r;
}

static int check_names(const InterfaceFacts *f, Diag *diag) {
        if (interface_name_is_valid(f->interface->name) && mac_is_valid(f->interface->mac) &&
            instance_id_is_valid(f->enis->instance_id))
                return 0;
        return diag_error(diag, -EINVAL, CAUSE_INTERFACE,
                          "the interface name, MAC or instance id is not valid in a file name; only "
                          "interfaces of EC2 can be set up");
}

static void plan_decided(Making *m, const InterfaceFacts *f, Manager manager) {
        const char *name = f->interface->name;
        _free_ char *path = network_path(name);
        const Eni *eni = eni_find(f->enis, f->interface->mac);
        if (f->no_manage == NO_MANAGE_UNKNOWN && manager == MANAGER_CNI && !kept_decision(f))
                diag_warn(&m->plan->warnings, "no-manage-unknown",
                          "%s may have the tag node.k8s.amazonaws.com/no_manage, but its tags are not known: "
                          "the CNI manages it until nodestrap asks again at the next event",
                          name);
        else
                keep_decision(m, f, manager);
        if (manager == MANAGER_NETWORKD)
                write_network_files(m, f);
        else if (has_file(f->files, path))
                remove_network_files(m, name, f->files, "interface managed by the CNI");
        remove_former(m, f);
        if (manager == MANAGER_NETWORKD && !is_primary(f) && eni && eni->ipv4s)
                loosen_rp_filter(m, name);
}

int interface_plan(const InterfaceFacts *f, Plan **ret, Diag *diag) {
        _cleanup_(making_done) Making m = { .plan = xcalloc(1, sizeof(Plan)) };
        _free_ char *why = NULL;
        Judgement judgement = interface_judge(f, &why);
        Manager manager = interface_manager(f);
        int r = judgement == JUDGEMENT_DECIDED ? check_names(f, diag) : 0;
        if (r < 0)
                return r;
        m.plan->facts = json_pack("{ss ss ss}", "interface", f->interface->name, "mac", f->interface->mac,
                                  "manager", manager_to_string(manager));
        if (judgement == JUDGEMENT_DECIDED)
                plan_decided(&m, f, manager);
        return making_finish(&m, ret, diag);
}

static void forget_file(Making *m, const char *path) {
        if (!is_removed(m, path))
                plan_add(m->plan, ACTION_REMOVE_FILE, PHASE_CONFIG, GROUP, path,
                         "CNI interface removed")
                        ->lenient = true;
}

/* The CNI attaches and detaches interfaces for as long as the node runs. One that returns is of the CNI
 * without this decision, and the next owner of the name must not inherit it. */
static void forget_cnis(Making *m, const InterfaceFacts *f, const char *name) {
        for (size_t i = 0; i < f->decisions->n; i++) {
                const Decision *d = &f->decisions->items[i];
                if (!d->mac || d->manager != MANAGER_CNI || !streq(d->name, name) ||
                    interface_by_mac(f->interfaces, d->mac))
                        continue;
                _free_ char *path = decision_mac_path(f->enis->instance_id, d->mac),
                            *word = decision_name_path(f->enis->instance_id, d->name);
                forget_file(m, path);
                if (!is_anothers(f->decisions, d->mac, d->name))
                        forget_file(m, word);
        }
}

int interface_plan_removal(const char *name, const InterfaceFacts *f, Plan **ret, Diag *diag) {
        _cleanup_(making_done) Making m = { .plan = xcalloc(1, sizeof(Plan)) };
        if (!interface_name_is_valid(name))
                return diag_error(diag, -EINVAL, CAUSE_INTERFACE, "an interface cannot have this name");
        m.plan->facts = json_pack("{ss}", "interface", name);
        remove_network_files(&m, name, f->files, "interface removed");
        if (f->enis->instance_id)
                forget_cnis(&m, f, name);
        return making_finish(&m, ret, diag);
}
