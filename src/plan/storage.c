/* SPDX-License-Identifier: Apache-2.0 */
/* Instance stores and volumes → an array, file systems, mounts, binds. Each boot decides from the disks:
 * they give the state of a step, and only the configuration makes the plan id. Daemons stop once the disks
 * are mounted, their files move, then binds hide the directories of the root disk. */
#include "plan/storage.h"
#include "base/hash.h"
#include "base/str.h"
#include "disk/disk.h"
#include <errno.h>

#define GROUP "storage"

static char *why_unknown(const Stores *s, const char *purpose) {
        if (s->host->modelled)  /* has no disks to examine */
                return xstrdup(purpose);
        return xasprintf("%s; disks not examined: %s", purpose,
                         s->seen->not_looked ?: "the run phase does that");
}

/* A UUID of version 8 (RFC 9562). The disks must not have seen it before: nothing is discarded, and xfs and
 * ext4 know old blocks by the UUID. With the old one a power failure would revive them. */
static void choose_uuid(const Stores *s, Device *d) {
        _cleanup_(text_done) Text input = {};
        char hex[65];
        text_add(&input, "nodestrap %s %s", s->seen->chance ?: "", s->host->instance.id);
        for (size_t i = 0; i < d->n; i++)
                /* namespaces of a controller share its serial */
                text_add(&input, " %s %s", d->disks[i]->serial ?: "", d->disks[i]->name);
        sha256_hex(input.data, input.size, hex);
        hex[12] = '8';
        hex[16] = "89ab"[hex_digit(hex[16]) & 3];
        snprintf(d->uuid, sizeof d->uuid, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                 hex + 20);
}

static Filesystem wanted(const Stores *s, const Device *d) {
        return d->volume ? d->volume->filesystem : s->config->instance.storage.filesystem;
}

static const char *wanted_filesystem(const Stores *s, const Device *d) {
        return filesystem_to_string(wanted(s, d));
}

static char *device_label(const Device *d) {
        return d->array   ? xasprintf("array %s", d->name ?: RAID_NAME)
               : d->n > 0 ? disk_label(d->disks[0])
                          : xstrdup("the disk");
}

static void refuse_content(Stores *s, const Device *d) {
        _free_ char *holds = content_describe(d->content), *label = device_label(d),
                    *free_it = d->array ? xasprintf("`mdadm --stop /dev/%s`, and `blkdiscard --force` for "
                                                    "each member", d->name)
                                        : xasprintf("`blkdiscard --force%s /dev/%s`",
                                                    d->volume ? " --zeroout" : "", d->name);
        if (d->content->kind == CONTENT_DATA)
                stores_refuse(s, CAUSE_DISK_DATA,
                              "%s is not blank and has no signature: %s. It may be encrypted, or its file "
                              "system may have lost its superblock. It stays as it is; if you do not need "
                              "the data, run %s", label, d->content->error ?: "it is not all zeros", free_it);
        else if (d->content->kind == CONTENT_UNREADABLE)
                stores_refuse(s, CAUSE_DISK_ERROR,
                              "%s cannot be read: %s; stop and start the instance to get other disks",
                              label, d->content->error ?: "no reason is given");
        else
                stores_refuse(s, CAUSE_DISK_USED,
                              "%s holds %s, but nodestrap mounts only xfs or ext4. It stays as it is; if "
                              "you do not need the data, run %s", label, holds, free_it);
}

bool is_mountable(const Content *c) {
        return c->kind == CONTENT_FILESYSTEM && c->type && (streq(c->type, "xfs") || streq(c->type, "ext4"));
}

static StepState filesystem_state(Stores *s, const Device *d) {
        if (d->made != STEP_KEEP && d->made != STEP_REPAIR)
                /* assemble: known when the array runs */
                return d->made;
        if (!d->content)
                return STEP_ASSEMBLE;
        if (d->content->kind == CONTENT_BLANK)
                return STEP_MAKE;
        if (content_unfinished(d->content) && !d->mounted)
                return STEP_REMAKE;
        if (is_mountable(d->content))
                return STEP_KEEP;
        /* stores_check_disk() reports other contents of a disk */
        if (d->array || d->content->kind == CONTENT_FILESYSTEM)
                refuse_content(s, d);
        return STEP_UNKNOWN;
}

static char *why_filled(const Stores *s, const Device *d) {
        _free_ char *label = d->array ? xstrdup("array") : device_label(d);
        switch (d->filled) {
        case STEP_KEEP:
                return xasprintf("keep the %s on %s", d->filesystem, label);
        case STEP_REMAKE:
                return d->made == STEP_REMAKE ? xstrdup("data of the old array is lost")
                                              : xasprintf("repeat the interrupted mkfs on %s", label);
        case STEP_ASSEMBLE:
                return xstrdup("new file system, if the array is blank");
        case STEP_UNKNOWN:
                return why_unknown(s, d->array ? "new file system, if the array is blank"
                                               : "new file system, if the disk is blank");
        default:
                return xasprintf("new file system on blank %s", label);
        }
}

void device_filesystem(Stores *s, Diag *warnings, Device *d) {
        d->filled = filesystem_state(s, d);
        d->filesystem = d->content && d->filled == STEP_KEEP ? d->content->type : wanted_filesystem(s, d);
        if (d->made != STEP_UNKNOWN)
                choose_uuid(s, d);
        if (!streq(d->filesystem, wanted_filesystem(s, d)))
                diag_warn_at(warnings, "filesystem-kept", NULL,
                             s->path ?: "spec.instance.localStorage.filesystem",
                             "%s holds %s already: nodestrap keeps it, since you may need its data, and does "
                             "not make %s", d->name, d->filesystem, wanted_filesystem(s, d));
}

static Action *add_step(Plan *plan, ActionType type, const Device *d, const char *target, const char *why) {
        Action *a = plan_add(plan, type, PHASE_RUN, GROUP, target, why);
        a->storage.array = d->array;
        a->storage.volume = d->volume != NULL;
        for (size_t i = 0; i < d->n; i++) {
                strv_add(&a->storage.disks, d->disks[i]->name);
                strv_add(&a->storage.serials, d->disks[i]->serial ?: "");
        }
        return a;
}

static const char *device_target(const Device *d) {
        return d->array ? RAID_DEVICE : d->place;
}

static void add_array(Plan *plan, const Stores *s, const Device *d, int level, const ArrayFound *f) {
        bool counted = s->expected > 0 || !strv_contains(s->host->assumed, "disks");
        _free_ char *why = f->state == STEP_UNKNOWN
                                   ? why_unknown(s, "join all instance stores into one device")
                                   : xstrdup(f->why),
                    *disks = counted ? xasprintf("%zu disk%s", s->count, s->count == 1 ? "" : "s")
                                     : xstrdup("all disks");
        Action *a = add_step(plan, ACTION_CREATE_RAID, d, RAID_DEVICE, why);
        a->with = xasprintf("raid%d %s", level, disks);
        a->storage.state = f->state;
        a->storage.level = xasprintf("raid%d", level);
        a->storage.blank = strv_copy(f->blank);
        const char *taken = f->state == STEP_KEEP ? NULL : array_name_taken(s);
        if (taken) {
                RENEW(a->why,
                      xasprintf("%s; as /dev/md/" RAID_OTHER_NAME ", since %s has the usual "
                                                                  "name", why, taken));
                a->storage.device = xstrdup("/dev/md/" RAID_OTHER_NAME);
        }
        a->storage.running = f->array ? xstrdup(f->array->name) : NULL;
        a->storage.array_uuid =
                f->uuid && f->state != STEP_MAKE && f->state != STEP_REMAKE ? xstrdup(f->uuid) : NULL;
}

static void add_filesystem(Plan *plan, const Stores *s, const Device *d) {
        _free_ char *why = why_filled(s, d);
        Action *a = add_step(plan, ACTION_MAKE_FILESYSTEM, d, device_target(d), why);
        /* a kept file system does not use the chosen one, which differs at each boot */
        const char *uuid = d->content && d->filled == STEP_KEEP ? d->content->uuid : d->uuid;
        a->with = xstrdup(wanted_filesystem(s, d));
        a->storage.state = d->filled;
        a->storage.filesystem = xstrdup(d->filesystem);
        a->storage.uuid = uuid && *uuid ? xstrdup(uuid) : NULL;
        if (d->array)
                action_after(a, "create-raid:" RAID_DEVICE);
}

/* Mounted without the mark: an interruption came between the two, and only the mark is missing. */
static StepState mount_state(const Device *d) {
        if (d->content && d->mounted)
                return content_unfinished(d->content) ? STEP_REPAIR : STEP_KEEP;
        return d->filled == STEP_UNKNOWN || d->filled == STEP_ASSEMBLE ? d->filled : STEP_MAKE;
}

static const char *why_mounted(const Stores *s, const Device *d, StepState state, char **unknown) {
        const char *purpose = d->volume ? "mount the volume before its bind mounts"
                              : s->config->instance.storage.strategy == STORAGE_MOUNT
                                      ? "disk for local volumes of pods"
                                      : "local disks for node data";
        switch (state) {
        case STEP_KEEP:
                return d->volume ? "is mounted" : "is mounted there";
        case STEP_REPAIR:
                return "already mounted; mark the file system as complete";
        case STEP_UNKNOWN:
                return *unknown = why_unknown(s, purpose);
        default:
                return purpose;
        }
}

static void add_mount(Plan *plan, const Stores *s, const Device *d) {
        _free_ char *unknown = NULL, *made = xasprintf("make-filesystem:%s", device_target(d));
        StepState state = mount_state(d);
        Action *a = add_step(plan, ACTION_MOUNT, d, d->place, why_mounted(s, d, state, &unknown));
        a->with = xstrdup("noatime");
        a->storage.state = state;
        a->storage.filesystem = xstrdup(d->filesystem);
        if (d->content && d->filled == STEP_KEEP)
                a->storage.uuid = xstrdup_or_null(d->content->uuid);
        else if (d->filled == STEP_MAKE || d->filled == STEP_REMAKE)
                a->storage.uuid = xstrdup(d->uuid);
        action_after(a, made);
}

static void device_mounted(Stores *s, Device *d) {
        const Mount *here = storage_mount_at(s->seen, d->place),
                    *elsewhere = mounted_elsewhere(s->seen, d->number, d->place);
        if (elsewhere && d->array)      /* for a disk stores_check_disk() reports it */
                stores_refuse(s, CAUSE_DISK_USED,
                              "the array runs as %s and is mounted at %s: unmount it there, or set mountPath "
                              "to match", d->name, elsewhere->target);
        d->mounted =
                !elsewhere && here && d->number && streq(here->number, d->number) && streq(here->root, "/");
        if (d->mounted && here->read_only)
                stores_refuse(s, CAUSE_MOUNT,
                              "%s is mounted read-only at %s: look for disk errors in the kernel log "
                              "(dmesg), and reboot", d->name, d->place);
        if (!d->mounted && !elsewhere)
                place_check(s, d->place);
}

static Device disk_device(const Stores *s, size_t i, const char *place) {
        if (i >= s->n)          /* it may appear later */
                return (Device) { .place = place };
        const Disk *disk = s->disks[i];
        bool looked = s->seen->looked;
        return (Device){
                .disks = &s->disks[i],
                .n = 1,
                .place = place,
                .made = looked ? STEP_KEEP : STEP_UNKNOWN,
                .name = disk->name,
                .number = looked ? disk->number : NULL,
                .content = looked ? &disk->content : NULL,
        };
}

static Device array_device(const Stores *s, const ArrayFound *f, const char *place) {
        const Array *running =
                f->array && f->array->active && (f->state == STEP_KEEP || f->state == STEP_REPAIR) ? f->array
                                                                                                   : NULL;
        return (Device){
                .array = true,
                .disks = s->disks,
                .n = s->n,
                .place = place,
                .made = f->state,
                .name = running ? running->name : NULL,
                .number = running ? running->number : NULL,
                .content = running ? &running->content : NULL,
        };
}

static void need_program(Stores *s, const char *program, const char *package, const char *what) {
        if (!strv_contains(s->seen->programs, program))
                stores_refuse(s, CAUSE_STORAGE_TOOL, "%s is missing from this image: %s; install %s", program,
                              what, package);
}

static void need_mkfs(Stores *s, Filesystem filesystem) {
        bool xfs = filesystem == FILESYSTEM_XFS;
        need_program(s, xfs ? "mkfs.xfs" : "mkfs.ext4", xfs ? "xfsprogs" : "e2fsprogs",
                     "the plan makes a file system");
}

static const char *why_stopped(StepState state) {
        return state == STEP_KEEP ? "keep running: its data has moved already"
                                  : "stop while its data moves";
}

/* One step per unit: instance stores and volumes may share one. */
static Action *stop_of(Plan *plan, const char *unit, StepState state) {
        for (Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                if (a->type != ACTION_STOP_UNIT || !streq(a->target, unit))
                        continue;
                if (a->storage.state == STEP_KEEP && state != STEP_KEEP) {
                        a->storage.state = state;
                        RENEW(a->why, xstrdup(why_stopped(state)));
                }
                return a;
        }
        Action *a = plan_add(plan, ACTION_STOP_UNIT, PHASE_RUN, GROUP, unit, why_stopped(state));
        a->storage.state = state;
        return a;
}

/* Must this unit stop while the directory moves? A volume may hold places of several units. */
static bool is_user(const Stores *s, const StorageBind *bind, const char *unit) {
        for (const StorageBind *b = s->places.all; !bind->unit && b < s->places.all + s->places.n; b++)
                if (streq(b->unit, unit) && (path_in(bind->path, b->path) || path_in(b->path, bind->path)))
                        return true;
        return bind->unit && streq(bind->unit, unit);
}

static void add_stops(Plan *plan, const Stores *s, const char *mounted, const BindStep *binds, size_t n,
                      char ***ret_ids) {
        /* each uses the next */
        static const char units[][28] = { "kubelet.service", "containerd.service",
                                          "soci-snapshotter.service" };
        _free_ char *before = xasprintf("mount:%s", mounted);
        for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
                StepState state = STEP_KEEP;
                bool found = false;
                for (size_t i = 0; i < n; i++)
                        if (is_user(s, binds[i].bind, units[u])) {
                                found = true;
                                state = binds[i].state == STEP_KEEP ? state : binds[i].state;
                        }
                if (!found)
                        continue;
                Action *a = stop_of(plan, units[u], state);
                action_after(a, before);
                strv_add(ret_ids, a->id);
                RENEW(before, xstrdup(a->id));
        }
}

/* Files of this plan below path, and the removal of old ones, come before the move. */
static void after_files_below(const Plan *plan, size_t n, Action *a, const char *path) {
        _free_ char *prefix = xasprintf("%s/", path);
        for (const Action *file = plan->actions; file < plan->actions + n; file++) {
                if (file->type != ACTION_WRITE_FILE || !startswith(file->target, prefix))
                        continue;
                action_after(a, file->id);
                if (a->storage.volume)
                        strv_add(&a->storage.files, file->target);
        }
        action_after(a, PLAN_PRUNE_ID);         /* not planned yet */
}

static char *why_moved(const Device *d, StepState state, uint64_t bytes, bool full) {
        _free_ char *size = size_text(bytes);
        if (state == STEP_KEEP)
                return xstrdup("keep the data that moved earlier");
        if (state == STEP_MAKE && d->volume && d->filled == STEP_KEEP)
                return xstrdup("move only what the volume lacks");
        if (state == STEP_MAKE && !full)
                return xstrdup("move the empty directories");
        if (state == STEP_MAKE && bytes > 0)
                return xasprintf("move %s of data", size);
        return xasprintf("move existing data to the %s", d->volume ? "volume" : "local disks");
}

static uint64_t room(const Stores *s, const Device *d) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < d->n; i++)
                bytes += d->disks[i]->bytes;
        if (!d->volume && s->config->instance.storage.strategy == STORAGE_RAID10)
                bytes /= 2;
        return bytes - bytes / 20;      /* for the file system itself */
}

/* "/var/lib/kubelet 1.2 MB, /var/lib/containerd 63.4 MB" */
static char *moves_text(const BindStep *binds, size_t n) {
        Text t = {};
        for (size_t i = 0; i < n; i++)
                if (binds[i].state != STEP_KEEP && binds[i].directory && binds[i].directory->bytes > 0) {
                        _free_ char *size = size_text(binds[i].directory->bytes),
                                    *item = xasprintf("%s %s", binds[i].bind->path, size);
                        list_add(&t, item);
                }
        return text_take(&t);
}

static void check_room(Stores *s, const Device *d, const BindStep *binds, size_t n, uint64_t bytes) {
        _free_ char *have = size_text(room(s, d)), *need = size_text(bytes), *each = moves_text(binds, n);
        if (bytes <= room(s, d) || (d->volume && d->filled == STEP_KEEP))
                return;
        if (d->volume)
                stores_refuse(s, CAUSE_MOVE,
                              "%s (%s) must move to the volume %s, which has room for only %s: remove what "
                              "you do not need, or attach a larger one", need, each, d->volume->device, have);
        else
                stores_refuse(s, CAUSE_MOVE,
                              "%s (%s) must move to the instance stores, which have room for only %s. Remove "
                              "what you do not need, or list in disabledMounts what must stay",
                              need, each, have);
}

static void add_moves(Plan *plan, Stores *s, const Device *d, const BindStep *binds, size_t n,
                      char *const *stops) {
        Action *a = plan_add(plan, ACTION_MOVE_FILES, PHASE_RUN, GROUP, d->place, "");
        _free_ char *mounted = xasprintf("mount:%s", d->place);
        bool full = false;
        uint64_t bytes = 0, uncounted = 0;
        a->storage.volume = d->volume != NULL;
        a->storage.state = s->seen->looked ? STEP_KEEP : STEP_UNKNOWN;
        a->storage.moves = xcalloc(n + 1, sizeof(Move));
        for (size_t i = 0; i < n; i++) {
                const Directory *dir = binds[i].directory;
                after_files_below(plan, s->n_files, a, binds[i].bind->path);
                if (binds[i].state == STEP_KEEP)
                        continue;
                a->storage.state = binds[i].state;
                a->storage.moves[a->storage.n_moves++] =
                        (Move){ xstrdup(binds[i].bind->path), xstrdup(binds[i].bind->name) };
                full = full || (dir && !dir->empty);
                bytes += dir ? dir->bytes : 0;
                if (dir && !dir->empty && dir->bytes == 0)      /* they usually share a file system */
                        uncounted = MAX(uncounted, dir->used);
        }
        for (char *const *stop = stops; stop && *stop; stop++)
                action_after(a, *stop);
        if (!stops)
                action_after(a, mounted);
        a->storage.bytes = bytes + uncounted;
        RENEW(a->why, why_moved(d, a->storage.state, bytes, full));
        if (a->storage.state != STEP_MAKE)
                return;
        check_room(s, d, binds, n, bytes);
        /* also for empty directories */
        need_program(s, "cp", "coreutils",
                     d->volume ? "the plan copies the directory to the volume"
                               : "the plan moves data to the instance stores");
}

static void add_binds(Plan *plan, const Device *d, const BindStep *binds, size_t n) {
        _free_ char *moved = xasprintf("move-files:%s", d->place);
        for (size_t i = 0; i < n; i++) {
                const StorageBind *b = binds[i].bind;
                Action *a = plan_add(plan, ACTION_BIND, PHASE_RUN, GROUP, b->path,
                                     binds[i].state == STEP_KEEP ? "already bound"
                                     : d->volume                 ? "keep this directory on the volume"
                                                                 : "keep this directory on the local disks");
                a->storage.source = xasprintf("%s%s%s", d->place, *b->name ? "/" : "", b->name);
                a->storage.state = binds[i].state;
                a->storage.volume = d->volume != NULL;
                a->with = xstrdup(a->storage.source);
                action_after(a, moved);
        }
}

void add_state(Plan *plan, Stores *s, const Device *d, const BindStep *binds, size_t n) {
        _strv_ char **stops = NULL;
        if (n == 0)
                return;
        add_stops(plan, s, d->place, binds, n, &stops);
        add_moves(plan, s, d, binds, n, stops);
        add_binds(plan, d, binds, n);
}

static Device one_array(Plan *plan, Stores *s, const char *place) {
        int level = s->config->instance.storage.strategy == STORAGE_RAID10 ? 10 : 0;
        _cleanup_(array_found_done) ArrayFound f = {};
        for (size_t i = 0; s->seen->looked && i < s->n; i++)
                stores_check_disk(s, s->disks[i], NULL);
        if (s->seen->looked && s->n >= s->expected && !s->refused)
                array_find(s, level, &f);
        Device d = array_device(s, &f, place);
        add_array(plan, s, &d, level, &f);
        if (f.state != STEP_UNKNOWN && f.state != STEP_KEEP)
                need_program(s, "mdadm", "mdadm", "the plan makes or assembles an array");
        return d;
}

static Device one_disk(Stores *s, size_t i, const char *place) {
        if (s->seen->looked && i < s->n)
                stores_check_disk(s, s->disks[i], place);
        return disk_device(s, i, place);
}

static void add_device(Plan *plan, Stores *s, Device *d) {
        if (s->seen->looked)
                device_mounted(s, d);
        device_filesystem(s, &plan->warnings, d);
        add_filesystem(plan, s, d);
        add_mount(plan, s, d);
}

void add_device_steps(Plan *plan, Stores *s, const Device *d) {
        if (d->filled == STEP_MAKE || d->filled == STEP_REMAKE)
                need_mkfs(s, wanted(s, d));
        add_filesystem(plan, s, d);
        add_mount(plan, s, d);
        _free_ char *mounted = xasprintf("mount:%s", d->place);
        Action *a = add_step(plan, ACTION_GROW_FILESYSTEM, d, d->place,
                             "grow the file system to fill the volume");
        a->storage.state = d->made == STEP_UNKNOWN ? STEP_UNKNOWN : STEP_MAKE;
        a->storage.source = xstrdup(d->seen_at ?: d->place);
        a->lenient = true;
        action_after(a, mounted);
}

/* RAID0, RAID10: all disks become one place for the state of the node. */
static void plan_one(Plan *plan, Stores *s) {
        _free_ char *place = xasprintf("%s/0", s->config->instance.storage.mount_path);
        /* One disk needs no array, but nodeadm makes an array of one member. */
        Device d = (s->count > 1 || s->config->instance.storage.strategy == STORAGE_RAID10 ||
                    (s->seen->looked && s->n == 1 && s->disks[0]->content.kind == CONTENT_RAID_MEMBER))
                           ? one_array(plan, s, place)
                           : one_disk(s, 0, place);
        add_device(plan, s, &d);
        if (d.filled == STEP_MAKE || d.filled == STEP_REMAKE)
                need_mkfs(s, s->config->instance.storage.filesystem);
        BindStep binds[ARRAY_SIZE(s->places.all)];
        size_t n = binds_find(s, &plan->warnings, d.mounted ? d.number : NULL, binds);
        add_state(plan, s, &d, binds, n);
}

/* Mount: a place per disk, numbered from one by serial. */
static void plan_each(Plan *plan, Stores *s) {
        bool make = false;
        for (size_t i = 0; i < s->count; i++) {
                _free_ char *place = xasprintf("%s/%zu", s->config->instance.storage.mount_path, i + 1);
                Device d = one_disk(s, i, place);
                add_device(plan, s, &d);
                make = make || d.filled == STEP_MAKE || d.filled == STEP_REMAKE;
        }
        if (make)
                need_mkfs(s, s->config->instance.storage.filesystem);
}

static void plan_stores(Plan *plan, Stores *s) {
        stores_find(s);
        /* The table lists disks only for accelerated types, so a model would silently plan none. */
        if (s->host->modelled && !s->host->type && s->count == 0)
                diag_warn_at(&plan->warnings, "disks-unknown", NULL, "spec.instance.localStorage.strategy",
                             "the table of instance types does not list %s, so this plan assumes no "
                             "instance stores; if the type has any, set expectedDisks",
                             s->host->instance.type);
        /* nodeadm says nothing here. */
        if (!s->host->modelled && s->seen->looked && s->count == 0 && s->expected == 0)
                diag_warn_at(&plan->warnings, "no-instance-stores", NULL,
                             "spec.instance.localStorage.strategy",
                             "this machine has no instance store, and its PCI bus shows none, so the data "
                             "stays on the root disk");
        stores_check_number(s);
        if (s->count > 0 || !s->seen->looked)
                place_check_top(s);
        if (s->config->instance.storage.strategy == STORAGE_MOUNT)
                plan_each(plan, s);
        else if (s->count > 0)
                plan_one(plan, s);
}

int plan_storage(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        _cleanup_(stores_done)
                Stores s = { .config = config, .host = host, .seen = &host->storage, .diag = diag,
                             .places = storage_binds_of(config, host->containerd_version),
                             .n_files = plan->n };
        bool stores = config->instance.storage.strategy != STORAGE_NONE;
        /* unused disks that are missing are only a warning (plan_census()) */
        Promise promise = { CAUSE_DISKS, "spec.instance.localStorage.expectedDisks",
                            config->instance.storage.expected_disks, host->type ? host->type->disks : -1,
                            !stores };
        s.refused = plan_promise(plan, host, &promise, diag) < 0;
        if (stores)
                plan_stores(plan, &s);
        plan_volumes(plan, &s);
        if (stores || config->instance.n_volumes > 0)
                places_check_units(plan, &s);
        return s.refused ? -EINVAL : 0;
}
