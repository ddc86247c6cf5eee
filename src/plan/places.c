/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of mount points: a mount must not hide data, and data in use must not move. */
#include "plan/storage.h"
#include "base/str.h"
#include <errno.h>

/* The source is free text. */
char *mount_label(const Mount *m) {
        Text t = {};
        text_add(&t, "%s of ", m->type);
        text_add_shown(&t, m->source, strlen(m->source), 80, 0);
        return text_take(&t);
}

bool path_in(const char *path, const char *folder) {
        size_t n = strlen(folder);
        return startswith(path, folder) && (path[n] == 0 || path[n] == '/');
}

char *why_unfit(const Directory *d) {
        if (d->kind == DIRECTORY_NO_DIRECTORY)
                return xasprintf(d->dead ? "is not a directory (%s)" : "is not a directory", d->dead);
        if (d->on)
                return xasprintf("is on a pseudo file system (%s)", d->on);
        return NULL;
}

/* Needs no machine, so the config phase can refuse it. */
static bool refuse_kernels(Stores *s, const char *path) {
        static const char *const kernels[] = { "/proc", "/sys" };
        for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
                if (path_in(path, kernels[i])) {
                        stores_refuse(s, CAUSE_MOUNT,
                                      "%s lies in %s, a kernel file system: set another mountPath",
                                      path, kernels[i]);
                        return true;
                }
        return false;
}

void refuse_foreign_way(Stores *s, const char *path, const char *foreign) {
        stores_refuse(s, CAUSE_MOUNT,
                      "%s: a user who can write there could redirect %s, and root would write elsewhere. "
                      "Make that directory writable by root only (chown root, chmod go-w), or name another "
                      "path", foreign, path);
}

void place_check_top(Stores *s) {
        const char *path = s->config->instance.storage.mount_path;
        if (refuse_kernels(s, path))
                return;
        const Directory *d = storage_directory(s->seen, path);
        _free_ char *unfit = d ? why_unfit(d) : NULL;
        if (unfit)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s %s, but instance stores need it as a mount point: move it away, or set "
                              "another mountPath", path, unfit);
        else if (d && d->foreign)
                refuse_foreign_way(s, path, d->foreign);
}

bool place_refused(Stores *s, const char *path, const char *who) {
        const Directory *d = storage_directory(s->seen, path);
        const Mount *m = storage_mount_at(s->seen, path);
        const char *more = s->path ? "" : ", or set another mountPath";
        _free_ char *unfit = d ? why_unfit(d) : NULL, *label = m ? mount_label(m) : NULL;
        if (m)
                stores_refuse(s, CAUSE_MOUNT,
                              "something else is mounted at %s (%s), where %s belongs: unmount it%s", path,
                              label, who, more);
        else if (unfit)
                stores_refuse(s, CAUSE_MOUNT, "%s %s, but %s needs it as a mount point: move it away%s", path,
                              unfit, who, more);
        else if (d && !d->empty)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s is not empty, and %s would hide its content: move the content away%s",
                              path, who,
                              more);
        else if (d && d->kind == DIRECTORY_MISSING && d->read_only)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s cannot be made on a read-only file system: make it in the image%s", path,
                              more);
        else
                return false;
        return true;
}

void place_check(Stores *s, const char *path) {
        const Directory *d = storage_directory(s->seen, path),
                        *top = storage_directory(s->seen, s->config->instance.storage.mount_path);
        _free_ char *top_unfit = top ? why_unfit(top) : NULL;
        if (top_unfit || (top && top->foreign))         /* reported already */
                return;
        /* a single disk may belong to any user; an array holds data of root daemons */
        if (!place_refused(s, path, "an instance store") && d && d->foreign &&
            s->config->instance.storage.strategy != STORAGE_MOUNT)
                refuse_foreign_way(s, path, d->foreign);
}

static void warn_of_units(Plan *plan, const char *names, const char *missing) {
        if (missing)
                diag_warn(&plan->warnings, "mount-units",
                          "%s in /etc/systemd/system mounts a path that nodestrap also mounts, and waits for "
                          "%s, which is not here. Each boot waits until systemd gives up; disable the unit "
                          "and remove its file", names, missing);
        else
                diag_warn(&plan->warnings, "mount-units",
                          "units in /etc/systemd/system mount paths that nodestrap also mounts (%s): they "
                          "delay a boot when their disks are gone; disable them and remove their files",
                          names);
}

/* The nodeadm script setup-local-disks (awslabs/amazon-eks-ami) writes such units; they are not ours. */
void places_check_units(Plan *plan, const Stores *s) {
        _cleanup_(text_done) Text idle = {};
        for (const MountUnit *u = s->seen->units; u < s->seen->units + s->seen->n_units; u++) {
                if (!ANY(a, plan->actions, plan->n,
                         (a->type == ACTION_MOUNT || a->type == ACTION_BIND) && streq(a->target, u->where)))
                        continue;
                _cleanup_(text_done) Text name = {}, what = {};
                text_add_shown(&name, u->name, strlen(u->name), 120, 0);
                text_add_shown(&what, u->what, strlen(u->what), 120, 0);
                if (u->missing)
                        warn_of_units(plan, name.data, what.data);
                else
                        list_add(&idle, name.data);
        }
        if (idle.data)
                warn_of_units(plan, idle.data, NULL);
}

bool store_bind_wanted(const LocalStorage *l, const StorageBind *bind) {
        const struct { const char *word; bool disabled; } words[] = {
                { "Containerd", l->no_containerd }, { "PodLogs", l->no_pod_logs },
                { "SOCI", l->no_soci },             { "Kubelet", l->no_kubelet },
        };
        return PICK(w, words, ARRAY_SIZE(words), streq(w->word, bind->word), !w->disabled, true);
}

bool refuse_mounts_below(Stores *s, const char *path, const Directory *d) {
        _free_ char *prefix = xasprintf("%s/", d && d->real ? d->real : path);
        const Mount *first = NULL;
        size_t n = 0;
        for (size_t i = 0; i < s->seen->n_mounts; i++)
                if (startswith(s->seen->mounts[i].target, prefix)) {
                        first = first ?: &s->seen->mounts[i];
                        n++;
                }
        if (n > 0)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s must move to the %s, but is in use: %zu mount%s below it, the first at %s. "
                              "Reboot, so that it moves before pods run",
                              path, s->path ? "volume" : "instance stores", n, n == 1 ? " is" : "s are",
                              first->target);
        return n > 0;
}

static void check_source(Stores *s, const StorageBind *bind, const Directory *d) {
        _free_ char *unfit = d ? why_unfit(d) : NULL;
        if (refuse_mounts_below(s, bind->path, d))
                return;
        if (unfit)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s %s, but must move to the instance stores: %s, or name %s in "
                              "disabledMounts", bind->path, unfit,
                              d->on ? "unmount that file system" : "replace it with a directory", bind->word);
        else if (d && d->read_only && (d->kind == DIRECTORY_MISSING || !d->empty))
                stores_refuse(s, CAUSE_MOUNT,
                              "%s cannot move from a read-only file system: name %s in disabledMounts",
                              bind->path, bind->word);
        else if (bind->given && d && d->foreign)
                refuse_foreign_way(s, bind->path, d->foreign);
}

StepState bind_state(const Storage *seen, const char *path, const char *number, const char *name,
                     const Mount **ret_mount) {
        const Mount *m = storage_mount_at(seen, path);
        *ret_mount = m;
        /* is the mount our bind of /NAME on the device with this number? */
        return !m ? STEP_MAKE
               : number && streq(m->number, number) && m->root[0] == '/' && streq(m->root + 1, name)
                       ? STEP_KEEP
                       : STEP_UNKNOWN;
}

/* A volume for this directory wins without disabledMounts. */
static bool goes_to_volume(Stores *s, Diag *warnings, const StorageBind *bind) {
        const Volume *v = volume_for(s->config, bind->path);
        for (size_t i = 0; bind->given && !v && i < s->config->instance.n_volumes; i++)
                for (char **target = s->config->instance.volumes[i].targets; target && *target; target++)
                        if (path_in(bind->path, *target))
                                return true;
        if (v)
                diag_warn_at(warnings, "volume-wins", NULL, "spec.instance.localStorage.disabledMounts",
                             "%s goes to the volume %s, not to instance stores; to hide this warning, name "
                             "%s here", bind->path, v->device, bind->word);
        return v != NULL;
}

/* The error points at the user setting. */
static bool is_refused(Stores *s, const StorageBind *bind) {
        _free_ char *fault = bind->given ? mount_target_fault(bind->path) : NULL;
        if (!fault)
                return false;
        diag_error_at(s->diag, -EINVAL, CAUSE_MOUNT, NULL, bind->given,
                      "%s; nodestrap would move its content to the instance stores, so set another path, or "
                      "name %s in spec.instance.localStorage.disabledMounts", fault, bind->word);
        return s->refused = true;
}

/* On the disks already, or inside another directory that moves; both must belong to one daemon. */
static bool goes_along(Stores *s, const StorageBind *bind) {
        _free_ char *disks = xasprintf("%s/0", s->config->instance.storage.mount_path);
        if (path_in(bind->path, disks))
                return true;
        for (const StorageBind *other = s->places.all; other < s->places.all + s->places.n; other++) {
                if (other == bind || !path_in(bind->path, other->path) ||
                    !store_bind_wanted(&s->config->instance.storage, other))
                        continue;
                if (!streq(bind->unit, other->unit)) {
                        diag_error_at(s->diag, -EINVAL, CAUSE_MOUNT, NULL, bind->given ?: other->given,
                                      "%s lies in %s, which another daemon uses, but both must move to the "
                                      "instance "
                                      "stores: give them separate directories", bind->path, other->path);
                        s->refused = true;
                }
                return other < bind || !path_in(other->path, bind->path);
        }
        return false;
}

size_t binds_find(Stores *s, Diag *warnings, const char *number,
                  BindStep ret[static ARRAY_SIZE(s->places.all)]) {
        size_t n = 0;
        for (size_t i = 0; i < s->places.n; i++) {
                const StorageBind *bind = &s->places.all[i];
                const Mount *m = NULL;
                if (!store_bind_wanted(&s->config->instance.storage, bind) ||
                    goes_to_volume(s, warnings, bind) || is_refused(s, bind) || goes_along(s, bind))
                        continue;
                /* The mount point of the disks would move to itself, below its own bind. */
                const char *path = s->config->instance.storage.mount_path;
                if (path_in(path, bind->path))
                        stores_refuse(s, CAUSE_MOUNT,
                                      "lies in %s, which must move to the instance stores: set another "
                                      "mountPath, or name %s in disabledMounts", bind->path, bind->word);
                BindStep step = { .bind = bind, .directory = storage_directory(s->seen, bind->path) };
                if (s->seen->looked)
                        step.state = bind_state(s->seen, bind->path, number, bind->name, &m);
                if (m && step.state == STEP_UNKNOWN) {
                        _free_ char *label = mount_label(m);
                        diag_warn_at(warnings, "directory-mounted", NULL,
                                     "spec.instance.localStorage.disabledMounts",
                                     "%s is a mount point already (%s), so it does not move to the instance "
                                     "stores; to hide this warning, name %s here",
                                     bind->path, label, bind->word);
                        continue;
                }
                if (step.state == STEP_MAKE)
                        check_source(s, bind, step.directory);
                ret[n++] = step;
        }
        return n;
}
