/* SPDX-License-Identifier: Apache-2.0
 * Compares a plan with the machine: what exists, and what would be created, changed or removed. It uses the
 * comparisons of the executors, and asks systemd once for all units (org.freedesktop.systemd1(5),
 * ListUnitsByNames). Files that this user may not read are unknown. */
#include "apply/apply.h"
#include "apply/device.h"
#include "apply/file.h"
#include "apply/units/units.h"
#include "base/str.h"
#include "base/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>

#define FILE_MAX (16 << 20)
#define BUS_USEC (2 * USEC_PER_SEC)

static void tell(Action *a, Live live, char *why) {
        free(a->live_why);
        a->live = live;
        a->live_why = why;
}

static void tell_error(Action *a, int r) {
        bool denied = r == -EACCES || r == -EPERM;
        tell(a, LIVE_UNKNOWN, denied ? xstrdup("only root may read it") : xstrdup(strerror(-r)));
}

static void tell_either(Action *a, int r, Live if_so, Live if_not, char *why) {
        if (r < 0) {
                free(why);
                tell_error(a, r);
        } else
                tell(a, r > 0 ? if_so : if_not, why);
}

static Compare compared_by(const Action *a) {
        return action_row(a->type)->compare;
}

static char *describe(const Root *root, const Action *a, int differs) {
        Text t = {};
        struct stat st = {};
        int fd = root_open(root, a->target, O_PATH | O_NOFOLLOW);
        if (fd >= 0 && fstat(fd, &st) < 0)
                differs = ROOT_CONTENT;
        close_fd(&fd);
        if (differs & ROOT_KIND)
                text_add(&t, "it is not a %s", compared_by(a) == COMPARE_LINK ? "link" : "file");
        if (differs & ROOT_CONTENT)
                text_add(&t, "content");
        if (differs & ROOT_MODE)
                text_add(&t, "%smode %04o to %04o", t.size > 0 ? ", " : "", (unsigned)st.st_mode & 07777,
                         (unsigned)a->file.mode);
        if (differs & ROOT_OWNER)
                text_add(&t, "%sowner %u to 0", t.size > 0 ? ", " : "", (unsigned)st.st_uid);
        return text_take(&t);
}

static void look_at_file(const Root *root, Action *a) {
        int r = compared_by(a) == COMPARE_LINK ? root_compare_link(root, a->target, a->with)
                                               : root_compare(root, a->target, a->file.content ?: "",
                                                              a->file.size, a->file.mode, root_owner(root));
        if (r < 0)
                tell_error(a, r);
        else if (r == 0)
                tell(a, LIVE_KEEP, NULL);
        else if (r & ROOT_MISSING)
                tell(a, LIVE_CREATE, NULL);
        else
                tell(a, LIVE_CHANGE, describe(root, a, r));
}

static void look_at_block(const Root *root, Action *a) {
        _cleanup_(block_done) Block b = { .fd = -1 };
        int r = block_read(root, a->target, a->file.content ?: "", &b);
        if (r < 0)
                tell_error(a, r);
        else if (b.new_size == b.old_size && (b.old_size == 0 || memcmp(b.old, b.new, b.old_size) == 0))
                tell(a, LIVE_KEEP, NULL);
        else
                tell(a, b.old ? LIVE_CHANGE : LIVE_CREATE, b.old ? xstrdup("content") : NULL);
}

static void look_at_removal(const Root *root, Action *a) {
        _strv_ char **names = NULL;
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(root, a->target, O_PATH | O_NOFOLLOW);
        int r = fd == -ENOENT || fd == -ENOTDIR ? 0 : fd < 0 ? fd : 1;
        if (r > 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
                r = root_list(root, a->target, &names);
                r = r < 0 ? r : !names;
        }
        tell_either(a, r, LIVE_REMOVE, LIVE_KEEP, NULL);
}

static void look_at_manifest(const Root *root, const Plan *plan, Action *a) {
        _strv_ char **stale = NULL;
        _cleanup_(close_fd) int fd = root_open(root, a->target, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        int r = fd == -EACCES ? fd : manifest_look(root, plan, a, &stale);
        if (r < 0)
                tell_error(a, r);
        else if (stale)
                tell(a, LIVE_REMOVE, strv_join(stale, ", "));
        else
                tell(a, r == 0 ? LIVE_KEEP : r & ROOT_MISSING ? LIVE_CREATE : LIVE_CHANGE, NULL);
}

void texts_done(Texts *t) {
        FREE_ALL(t->old, t->new);
        *t = (Texts){};
}

int look_texts(const Root *root, const Action *a, Texts *ret) {
        _cleanup_(texts_done) Texts t = {};
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(root, a->target, O_PATH | O_NOFOLLOW);
        bool there = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        int r = there ? root_read(root, a->target, FILE_MAX, &t.old, &t.old_size) : 0;
        if (r < 0)
                return r;
        t.private = there && !(st.st_mode & S_IROTH);
        if (compared_by(a) == COMPARE_BLOCK)
                t.new = block_merge(t.old ?: "", t.old_size, a->file.content ?: "", &t.new_size);
        else {
                t.new = xmemdup(a->file.content ?: "", a->file.size);
                t.new_size = a->file.size;
        }
        *ret = (Texts){ TAKE_PTR(t.old), TAKE_PTR(t.new), t.old_size, t.new_size, t.private };
        return 0;
}

static void look_at_sysctl(const Root *root, Action *a) {
        _free_ char *path = sysctl_path(a->target), *have = NULL;
        int r = sysctl_has(root, a, path, &have);
        if (r < 0)
                tell_error(a, r);
        else if (r > 0)
                tell(a, LIVE_KEEP, NULL);
        else {
                have[strcspn(have, "\n")] = 0;
                tell(a, LIVE_CHANGE, a->secret ? xstrdup("it has a different value")
                                               : xasprintf("it is %.60s", have));
        }
}

/* The plan has the state of the disks. */
static void look_at_step(Action *a) {
        StepState state = a->storage.state;
        tell(a,
             state == STEP_UNKNOWN ? LIVE_UNKNOWN
             : state == STEP_KEEP  ? LIVE_KEEP
             : state == STEP_MAKE  ? LIVE_CREATE
                                   : LIVE_CHANGE,
             state == STEP_UNKNOWN ? xstrdup("the disks were not read") : NULL);
}

static bool is_started(const Action *a) {
        return compared_by(a) == COMPARE_UNIT || compared_by(a) == COMPARE_RERUN;
}

static const char *changed_input(const Plan *plan, const Action *unit) {
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (compared_by(a) == COMPARE_FILE && (a->live == LIVE_CHANGE || a->live == LIVE_CREATE) &&
                    strv_contains(unit->unit.reads, a->target))
                        return a->target;
        }
        return NULL;
}

static void look_at_unit(const Root *root, const Plan *plan, Action *a, const char *load,
                         const char *active) {
        bool missing = streq(load, "not-found") || streq(load, "masked"),
             restart = compared_by(a) == COMPARE_RERUN;
        bool begun = streq(active, "active") || streq(active, "reloading") || streq(active, "activating");
        const char *input = changed_input(plan, a);
        int same = unit_record(root, a);
        if (missing && (restart || a->optional))
                tell(a, LIVE_KEEP, xasprintf("the unit is %s", load));
        else if (missing)
                tell(a, LIVE_UNKNOWN, xasprintf("the unit is %s", load));
        else if (restart && !begun)
                tell(a, LIVE_KEEP, xstrdup("it is not running"));
        else if (input)
                tell(a, LIVE_CHANGE, xasprintf("%s changes", input));
        else if (same < 0 && same != -ENOENT)
                tell_error(a, same);
        else if (same > 0 || (begun && unit_reads_nothing(a)))
                tell(a, begun ? LIVE_KEEP : LIVE_CHANGE, begun ? NULL : xasprintf("it is %s", active));
        else
                tell(a, LIVE_CHANGE, xstrdup(begun ? "it runs with different settings" : "it is not "
                                                                                         "running"));
}

static int ask_systemd(const Plan *plan, sd_bus **ret_bus, sd_bus_message **ret) {
        sd_bus_message *m = NULL;
        int r = sd_bus_open_system(ret_bus);
        if (r >= 0)
                r = sd_bus_message_new_method_call(*ret_bus, &m, "org.freedesktop.systemd1",
                                                   "/org/freedesktop/systemd1",
                                                   "org.freedesktop.systemd1.Manager", "ListUnitsByNames");
        THEN(r, sd_bus_message_open_container(m, 'a', "s"));
        for (size_t i = 0; r >= 0 && i < plan->n; i++)
                if (is_started(&plan->actions[i]))
                        r = sd_bus_message_append_basic(m, 's', plan->actions[i].target);
        THEN(r, sd_bus_message_close_container(m));
        THEN(r, sd_bus_call(*ret_bus, m, BUS_USEC, NULL, ret));
        sd_bus_message_unref(m);
        return r;
}

/* The reply is in the order of the names, duplicates included. */
static void compare_units(const Root *root, Plan *plan) {
        sd_bus *bus = NULL;
        sd_bus_message *reply = NULL;
        const char *name, *load, *active;
        int r = ask_systemd(plan, &bus, &reply);
        THEN(r, sd_bus_message_enter_container(reply, 'a', "(ssssssouso)"));
        while (r > 0 && (r = sd_bus_message_read(reply, "(ssssssouso)", &name, NULL, &load, &active, NULL,
                                                 NULL, NULL, NULL, NULL, NULL)) > 0)
                for (size_t i = 0; i < plan->n; i++)
                        if (is_started(&plan->actions[i]) && streq(plan->actions[i].target, name))
                                look_at_unit(root, plan, &plan->actions[i], load, active);
        sd_bus_message_unref(reply);
        sd_bus_flush_close_unref(bus);
}

static void look_at_units(const Root *root, Plan *plan) {
        if (!PORTABLE)
                compare_units(root, plan);
        for (size_t i = 0; i < plan->n; i++)
                if (is_started(&plan->actions[i]) && plan->actions[i].live == LIVE_NONE)
                        tell(&plan->actions[i], LIVE_UNKNOWN,
                             xstrdup(PORTABLE ? "this build does not ask systemd"
                                              : "systemd does not answer"));
}

/* Below another root, init only writes files. Units come last, in one call. */
static void look_at(const Root *root, const Plan *plan, Action *a) {
        Compare by = compared_by(a);
        char *left = NULL;
        uint64_t have = 0;
        int r;
        if (by == COMPARE_FILE || by == COMPARE_LINK)
                look_at_file(root, a);
        else if (by == COMPARE_BLOCK)
                look_at_block(root, a);
        else if (by == COMPARE_REMOVAL)
                look_at_removal(root, a);
        else if (by == COMPARE_MANIFEST)
                look_at_manifest(root, plan, a);
        else if (by == COMPARE_STATE) {
                r = state_look(root, a, &left);
                tell_either(a, r, LIVE_REMOVE, LIVE_KEEP, left);
        } else if (by == COMPARE_SYSCTL && root_is_host(root))
                look_at_sysctl(root, a);
        else if (by == COMPARE_PAGES && root_is_host(root)) {
                r = pages_have(root, a, &have);
                tell_either(a, r, LIVE_KEEP, LIVE_CHANGE,
                            r > 0 ? NULL : xasprintf("there are %llu", (unsigned long long)have));
        } else if (by == COMPARE_MODULE && root_is_host(root)) {
                r = module_is_loaded(root, a->target); /* its options are compared when it is loaded */
                tell_either(a, r, LIVE_KEEP, LIVE_CHANGE, r > 0 ? NULL : xstrdup("it is not loaded"));
        } else if (by == COMPARE_STEP && root_is_host(root))
                look_at_step(a);
}

void apply_look(const Root *root, Plan *plan) {
        bool units = false;
        for (size_t i = 0; i < plan->n; i++) {
                look_at(root, plan, &plan->actions[i]);
                units |= is_started(&plan->actions[i]);
        }
        if (units && root_is_host(root))
                look_at_units(root, plan);
        plan->looked = true;
}
