/* SPDX-License-Identifier: Apache-2.0 */
/* EBS volumes → file systems, mounts and binds. A volume outlives its machine. So its content wins over
 * that of the directory, and nothing on it is made again unless this program was interrupted. The plan id has
 * the configured name of the volume; the state has its disk. */
#include "plan/storage.h"
#include "base/str.h"

const Volume *volume_for(const Config *config, const char *path) {
        return FIND(v, config->instance.volumes, config->instance.n_volumes, strv_contains(v->targets, path));
}

/* "nvme0n1 (vol0123…, 21.5 GB) called xvda, …": the candidates. */
static char *volumes_text(const Stores *s) {
        Text t = {};
        for (const Disk *d = s->host->disks; d < s->host->disks + s->host->n_disks; d++) {
                if (!disk_is_volume(d))
                        continue;
                _free_ char *label = disk_label(d);
                list_add(&t, label);
                for (char **name = d->names; name && *name; name++)
                        if (startswith(*name, "xvd") && !streq(*name, d->name))
                                text_add(&t, " called %s", *name);
                text_add(&t, "%s", d->root ? " with the root file system" : "");
        }
        return t.data ? text_take(&t) : xstrdup("none");
}

static void refuse_kind(Stores *s, const Volume *v, const Disk *d) {
        _free_ char *label = disk_label(d);
        Text model = {};
        text_add_shown(&model, d->model ?: "none", strlen(d->model ?: "none"), 60, '"');
        if (d->kind == DISK_INSTANCE_STORE)
                stores_refuse(s, CAUSE_DISK_USED,
                              "%s is %s, an instance store, which loses its data when the instance stops; "
                              "use spec.instance.localStorage for it", v->device, label);
        else
                stores_refuse(s, CAUSE_DISK_USED, "%s is %s, but its model \"%s\" is not that of an EBS "
                                                  "volume; name "
                                                  "another device", v->device, label, model.data);
        text_done(&model);
}

/* Does an earlier entry name the same disk? */
static bool refuse_again(Stores *s, size_t i, const Disk *d) {
        const Volume *all = s->config->instance.volumes;
        for (size_t k = 0; k < i; k++) {
                const Disk *second;
                if (host_volume(s->host, all[k].device, &second) != d)
                        continue;
                _free_ char *label = disk_label(d);
                stores_refuse(s, CAUSE_DISK_USED,
                              "%s and %s are the same volume, %s: make one entry, with several mountTargets",
                              all[k].device, all[i].device, label);
                return true;
        }
        return false;
}

static const Disk *find(Stores *s, size_t i) {
        const Volume *v = &s->config->instance.volumes[i];
        const Disk *second, *d = host_volume(s->host, v->device, &second);
        if (!d) {
                _free_ char *here = volumes_text(s);
                stores_refuse(s, CAUSE_VOLUME,
                              "the volume %s is not attached, or has another name; EBS volumes here: %s; "
                              "attach it, or set device to its id (vol-…)", v->device, here);
        } else if (second) {
                _free_ char *one = disk_label(d), *other = disk_label(second);
                stores_refuse(s, CAUSE_DISKS,
                              "%s matches two disks, %s and %s: set device to the volume id (vol-…)",
                              v->device, one, other);
        } else if (!disk_is_volume(d))
                refuse_kind(s, v, d);
        else if (!refuse_again(s, i, d))
                return d;
        return NULL;
}

static bool is_target(const Volume *v, const char *number, const Mount *m) {
        const json_t *at = json_object_get(v->index, m->target);
        if (!streq(m->number, number) || m->root[0] != '/' || (v->index && !at))
                return false;
        size_t i = (size_t)json_integer_value(at);      /* there may be thousands */
        while (!at && v->targets[i] && !streq(v->targets[i], m->target))
                i++;
        return v->targets[i] && streq(m->root + 1, v->folders[i]);
}

/* A foreign mount. If it shows the whole volume at its one target (/etc/fstab), nothing is left to do. */
static const Mount *mount_elsewhere(const Stores *s, const Device *d) {
        if (!mounted_elsewhere(s->seen, d->number, d->place))
                return NULL;
        for (size_t i = 0; d->number && i < s->seen->n_mounts; i++) {
                const Mount *m = &s->seen->mounts[i];
                if (streq(m->number, d->number) && !(d->volume->whole && is_target(d->volume, d->number, m)))
                        return m;
        }
        return NULL;
}

/* Why this disk must not change: a clause, or NULL. */
static char *why_used(const Stores *s, const Device *d) {
        const Disk *disk = d->disks[0];
        const Mount *mount = mount_elsewhere(s, d);
        _free_ char *holds = content_describe(&disk->content);
        if (disk->root)
                return xstrdup("is the root disk");
        if (mount)
                return xasprintf("is mounted at %s", mount->target);
        if (disk->partitions) {
                _free_ char *list = strv_join(disk->partitions, ", ");
                return xasprintf("has partitions (%s), but nodestrap mounts only whole volumes", list);
        }
        if (disk->holders)
                return xasprintf("holds %s and is in use by %s", holds, disk->holders[0]);
        if (disk->content.kind != CONTENT_BLANK && !is_mountable(&disk->content) &&
            !content_unfinished(&disk->content) && disk->content.kind != CONTENT_DATA)
                return xasprintf("holds %s, but must be blank, xfs or ext4", holds);
        return NULL;
}

static void check_disk(Stores *s, const Device *d) {
        const Disk *disk = d->disks[0];
        _free_ char *label = disk_label(disk), *used = why_used(s, d);
        const char *device = d->volume->device;
        /* Its folders are at their targets, but its own mount is gone. */
        const Mount *m = mount_elsewhere(s, d),
                    *seen = m && !d->volume->whole && is_target(d->volume, d->number, m) ? m : NULL;
        if (seen && !disk->root)
                stores_refuse(s, CAUSE_MOUNT,
                              "the volume %s, %s, is mounted at %s, but was unmounted from %s: reboot, or "
                              "mount it there again (`mount /dev/%s %s`)",
                              device, label, seen->target, d->place, disk->name, d->place);
        else if (disk->root || used)
                stores_refuse(s, CAUSE_DISK_USED, "the volume %s, %s, %s: it stays as it is; "
                                                  "%s", device, label, used,
                              disk->root ? "name another device" : "attach another one, or free it");
        else if (disk->content.kind == CONTENT_UNREADABLE || disk->content.kind == CONTENT_UNKNOWN)
                stores_refuse(s, CAUSE_DISK_ERROR,
                              "the volume %s, %s, cannot be read: %s; check its state in EC2 (aws ec2 "
                              "describe-volume-status)",
                              device, label, disk->content.error ?: "no reason is given");
        else if (stores_check_blank(s, disk, device) && disk->read_only)
                stores_refuse(s, CAUSE_DISK_ERROR,
                              "the volume %s, %s, is read-only: see dmesg for the reason", device, label);
}

/* Conflicts with places of instance stores. */
static void check_stores(Stores *s, const char *target) {
        const LocalStorage *o = &s->config->instance.storage;
        if (path_in(target, VOLUMES_PLACE))
                stores_refuse(s, CAUSE_MOUNT, "%s lies in " VOLUMES_PLACE ", the mount point of volumes; set "
                                              "another target", target);
        if (o->strategy == STORAGE_NONE)
                return;
        if (path_in(target, o->mount_path) || path_in(o->mount_path, target))
                stores_refuse(s, CAUSE_MOUNT,
                              "%s overlaps %s, the mount point of instance stores: set "
                              "another target, or another "
                              "spec.instance.localStorage.mountPath", target, o->mount_path);
        for (size_t i = 0; o->strategy != STORAGE_MOUNT && i < s->places.n; i++) {
                const StorageBind *b = &s->places.all[i];
                if (store_bind_wanted(o, b) && !streq(b->path, target) &&
                    (path_in(target, b->path) || (!b->given && path_in(b->path, target))))
                        stores_refuse(s, CAUSE_MOUNT,
                                      "%s overlaps %s, which goes to the instance stores: set another "
                                      "target, or name %s in "
                                      "spec.instance.localStorage.disabledMounts",
                                      target, b->path, b->word);
        }
}

static void check_target(Stores *s, const Volume *v, const BindStep *step, const Mount *m) {
        const Directory *dir = step->directory;
        const char *path = step->bind->path;
        _free_ char *unfit = dir ? why_unfit(dir) : NULL, *label = m ? mount_label(m) : NULL;
        if (m)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s is a mount point already (%s), but the volume %s belongs there: remove "
                              "that mount, or the volume from the NodeConfig",
                              path, label, v->device);
        else if (unfit)
                stores_refuse(s, CAUSE_MOUNT, "%s %s, but the volume %s belongs there: move %s, or set "
                                              "another target",
                              path, unfit, v->device, path);
        else if (!refuse_mounts_below(s, path, dir) && dir && dir->read_only &&
                 (dir->kind == DIRECTORY_MISSING || !dir->empty))
                stores_refuse(s, CAUSE_MOUNT,
                              "%s cannot be made or moved on a read-only file system: make an empty "
                              "directory there in the image", path);
        else if (dir && dir->foreign && !dir->foreign_itself)   /* may belong to a user */
                refuse_foreign_way(s, path, dir->foreign);
}

static void find_bind(Stores *s, const Device *d, StorageBind *bind, BindStep *step) {
        const Mount *m = NULL;
        *step = (BindStep){ .bind = bind };
        check_stores(s, bind->path);
        if (!s->seen->looked || !d->n)
                return;
        step->directory = storage_directory(s->seen, bind->path);
        step->state = bind_state(s->seen, bind->path, d->number, bind->name, &m);
        if (step->state != STEP_KEEP)
                check_target(s, d->volume, step, m);
}

static void add_targets(Plan *plan, Stores *s, const Device *d) {
        size_t n = strv_length(d->volume->targets);
        _free_ StorageBind *binds = xcalloc(n, sizeof *binds);
        _free_ BindStep *steps = xcalloc(n, sizeof *steps);
        for (size_t i = 0; i < n; i++) {
                binds[i] = (StorageBind){ .path = d->volume->targets[i], .name = d->volume->folders[i] };
                find_bind(s, d, &binds[i], &steps[i]);
                /* Else the volume would hold an empty directory. */
                for (size_t k = 0; k < ARRAY_SIZE(storage_binds); k++)
                        if (s->places.all[k].given && streq(storage_binds[k].path, binds[i].path))
                                diag_warn_at(&plan->warnings, "no-effect", NULL, s->path,
                                             "%s stays empty: %s moves its data to %s; set mountTarget to "
                                             "that path",
                                             binds[i].path, s->places.all[k].given, s->places.all[k].path);
        }
        add_state(plan, s, d, steps, n);
}

/* Is the volume at its place, or did something else mount it at its target? */
static void find_mount(const Stores *s, Device *d) {
        const char *target = d->volume->targets[0];
        const Mount *here = storage_mount_at(s->seen, d->place), *there = storage_mount_at(s->seen, target);
        d->mounted = here && d->number && streq(here->number, d->number) && streq(here->root, "/");
        if (d->mounted || !there || !d->number || !d->volume->whole ||
            !is_target(d->volume, d->number, there))
                return;
        d->mounted = true;
        d->seen_at = target;
}

static void check_read_only(Stores *s, const Device *d) {
        for (size_t i = 0; i < s->seen->n_mounts; i++)
                if (streq(s->seen->mounts[i].number, d->number) && s->seen->mounts[i].read_only) {
                        stores_refuse(s, CAUSE_MOUNT,
                                      "the volume %s is mounted read-only at %s: look for I/O errors in "
                                      "the kernel log (dmesg), and reboot",
                                      d->volume->device, s->seen->mounts[i].target);
                        return;
                }
}

/* Kernel names change between boots, but those of Xen come from the launch template. */
static void warn_kernel_name(Plan *plan, const Stores *s, const Volume *v, const Disk *d) {
        _free_ char *canonical = volume_canonical(v->device);
        Text t = {};
        if (!streq(canonical, d->name) || !startswith(d->name, "nvme"))
                return;
        for (char **name = d->names; name && *name; name++)
                if (!streq(*name, d->name))
                        list_add(&t, *name);
        diag_warn_at(&plan->warnings, "kernel-name", NULL, s->path,
                     "%s is a kernel name, which may mean another volume at the next boot; now it is %s: "
                     "set device to that name or id", v->device,
                     t.data ?: d->serial ?: "a volume whose id only EC2 shows");
        text_done(&t);
}

static void add_volume(Plan *plan, Stores *s, size_t i) {
        const Volume *v = &s->config->instance.volumes[i];
        _free_ char *place = xasprintf(VOLUMES_PLACE "/%s", v->key);
        const Disk *disk = s->seen->looked ? find(s, i) : NULL;
        Device d = { .volume = v, .place = place };
        if (disk) {
                d.disks = &disk;
                d.n = 1;
                d.made = STEP_KEEP;
                d.name = disk->name;
                d.number = disk->number;
                d.content = &disk->content;
                warn_kernel_name(plan, s, v, disk);
                find_mount(s, &d);
                check_disk(s, &d);
                const Directory *dir = storage_directory(s->seen, place);
                _free_ char *who = xasprintf("the volume %s", v->device);
                if (d.mounted)
                        check_read_only(s, &d);
                else if (!place_refused(s, place, who) && dir && dir->foreign)
                        refuse_foreign_way(s, place, dir->foreign);
        }
        device_filesystem(s, &plan->warnings, &d);
        add_device_steps(plan, s, &d);
        add_targets(plan, s, &d);
}

void plan_volumes(Plan *plan, Stores *s) {
        /* Each would hide the mounts of the other. */
        const LocalStorage *o = &s->config->instance.storage;
        if (s->config->instance.n_volumes > 0 && o->strategy != STORAGE_NONE &&
            (path_in(o->mount_path, VOLUMES_PLACE) || path_in(VOLUMES_PLACE, o->mount_path)))
                stores_refuse(s, CAUSE_MOUNT,
                              "%s, the mount point of instance stores, overlaps " VOLUMES_PLACE ", that of "
                              "volumes: set another spec.instance.localStorage.mountPath", o->mount_path);
        for (size_t i = 0; i < s->config->instance.n_volumes; i++) {
                _free_ char *path = xasprintf("spec.instance.storage.volumes[%zu]", i);
                s->path = path;
                add_volume(plan, s, i);
                s->path = NULL;
        }
}
