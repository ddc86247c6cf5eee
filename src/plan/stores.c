/* SPDX-License-Identifier: Apache-2.0 */
/* Which instance stores exist, if there are enough, and if all are free. */
#include "plan/storage.h"
#include "base/str.h"
#include "disk/disk.h"
#include <errno.h>

#define RAID10_DISKS 4U         /* minimum */
#define STRATEGY "spec.instance.localStorage.strategy"

void stores_done(Stores *s) {
        free(s->disks);
        storage_places_done(&s->places);
}

void stores_refuse(Stores *s, Cause cause, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        diag_error_at(s->diag, -EINVAL, cause, NULL,
                      s->path                ? s->path
                      : cause == CAUSE_MOUNT ? "spec.instance.localStorage.mountPath"
                                             : STRATEGY, "%s", text);
        s->refused = true;
}

/* As sold: 600 GB, 3.84 TB. */
char *size_text(uint64_t bytes) {
        static const struct {
                uint64_t size;
                const char *name;
        } units[] = { { 1000000000000, "TB" }, { 1000000000, "GB" }, { 1000000, "MB" } };
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (bytes >= units[i].size)
                        return xasprintf("%.3g %s", (double)bytes / (double)units[i].size, units[i].name);
        return xasprintf("%llu B", (unsigned long long)bytes);
}

char *disk_label(const Disk *d) {
        _free_ char *size = size_text(d->bytes);
        const char *serial = d->serial ?: "no serial number";
        Text t = {};
        text_add(&t, "%s (", d->name);
        text_add_shown(&t, serial, strlen(serial), 40, 0);
        text_add(&t, "%s%s)", d->bytes > 0 ? ", " : "", d->bytes > 0 ? size : "");
        return text_take(&t);
}

void list_add(Text *t, const char *item) {
        text_add(t, "%s%s", t->size > 0 ? ", " : "", item);
}

static int compare_disks(const void *a, const void *b) {
        const Disk *x = *(const Disk *const *)a, *y = *(const Disk *const *)b;
        int by_serial = strcmp(x->serial ?: "", y->serial ?: "");
        return by_serial ?: strcmp(x->name, y->name);
}

/* Else the run phase will know; in a model one disk may stand for several. */
static bool number_is_known(const Stores *s) {
        return s->seen->looked || s->expected > 0 ||
               (s->seen->not_looked && (s->n == 0 || !strv_contains(s->host->assumed, "disks")));
}

void stores_find(Stores *s) {
        s->disks = xcalloc(s->host->n_disks + 1, sizeof(Disk *));
        for (size_t i = 0; i < s->host->n_disks; i++)
                if (s->host->disks[i].kind == DISK_INSTANCE_STORE)
                        s->disks[s->n++] = &s->host->disks[i];
        qsort(s->disks, s->n, sizeof(Disk *), compare_disks);
        s->expected = host_expected_stores(s->config, s->host);
        /* early in a boot some may appear later */
        s->count = s->seen->looked ? s->n : MAX(s->n, (size_t)s->expected);
        if (s->count > 0 && s->config->instance.storage.strategy == STORAGE_RAID10 && !number_is_known(s))
                s->count = MAX(s->count, RAID10_DISKS);
}

static void refuse_missing(Stores *s) {
        _cleanup_(text_done) Text here = {};
        _free_ char *roles = array_missing(s);
        for (size_t i = 0; i < s->n; i++) {
                _free_ char *label = disk_label(s->disks[i]);
                list_add(&here, label);
        }
        size_t missing = s->expected - s->n;
        _free_ char *idle = s->seen->idle ? strv_join(s->seen->idle, ", ") : NULL;
        stores_refuse(s, CAUSE_DISKS,
                      "%zu of %u instance stores %s missing%s: %s says %u, but this machine has %s%s%s. "
                      "Stop and start the instance to move it to other hardware, or set expectedDisks to "
                      "the number present (not 0)",
                      missing, s->expected, missing == 1 ? "is" : "are", roles,
                      host_expected_by(s->config, s->host), s->expected, here.data ?: "none",
                      idle ? ", and no disk on the controllers at " : "", idle ?: "");
}

void stores_check_number(Stores *s) {
        bool enough = s->config->instance.storage.strategy != STORAGE_RAID10 || s->count >= RAID10_DISKS ||
                      s->count == 0;
        if (s->count < s->expected)
                refuse_missing(s);
        if (!enough && number_is_known(s))
                stores_refuse(s, CAUSE_DISKS,
                              "RAID10 needs at least four instance stores, but this machine has %zu: choose "
                              "RAID0, or an instance type with more disks", s->count);
}

const Mount *mounted_elsewhere(const Storage *seen, const char *number, const char *place) {
        const Mount *here = place ? storage_mount_at(seen, place) : NULL, *first = NULL;
        if (here && number && streq(here->number, number) && streq(here->root, "/"))
                return NULL;
        for (size_t i = 0; number && !first && i < seen->n_mounts; i++)
                if (streq(seen->mounts[i].number, number))
                        first = &seen->mounts[i];
        return first;
}

static bool is_array(const Storage *seen, const char *name) {
        return ANY(a, seen->arrays, seen->n_arrays, streq(a->name, name));
}

/* A holder of the disk, other than md; or NULL. */
static const char *foreign_holder(const Storage *seen, const Disk *d, bool md_too) {
        for (char **holder = d->holders; holder && *holder; holder++)
                if (md_too || !is_array(seen, *holder))
                        return *holder;
        return NULL;
}

/* Why this disk must not change: a clause, or NULL. */
static char *why_used(const Stores *s, const Disk *d, const char *place) {
        const Mount *mount = mounted_elsewhere(s->seen, d->number, place);
        const char *holder = foreign_holder(s->seen, d, place != NULL);
        if (mount)
                return xasprintf("is mounted at %s", mount->target);
        if (d->partitions) {
                _free_ char *list = strv_join(d->partitions, ", ");
                return xasprintf("has partitions (%s)", list);
        }
        if (holder)
                return xasprintf("is in use by %s", holder);
        if ((d->content.kind == CONTENT_OTHER && !(place && content_unfinished(&d->content))) ||
            (d->content.kind == CONTENT_RAID_MEMBER && place) ||
            (d->content.kind == CONTENT_FILESYSTEM && !place))
                return xstrdup("is not blank");
        return NULL;
}

bool stores_check_blank(Stores *s, const Disk *d, const char *device) {
        _free_ char *label = disk_label(d);
        if (d->content.kind != CONTENT_DATA)
                return true;
        stores_refuse(s, CAUSE_DISK_DATA,
                      "%s%s%s%s is not blank and has no signature: %s. It may be encrypted, or have lost "
                      "the superblock of a file system or array. It stays as it is; if you do not need the "
                      "data, run `blkdiscard%s /dev/%s`",
                      device ? "the volume " : "", device ?: "", device ? ", " : "", label,
                      d->content.error ?: "it is not all zeros", device ? " --zeroout" : "", d->name);
        return false;
}

void stores_check_disk(Stores *s, const Disk *d, const char *place) {
        _free_ char *label = disk_label(d), *used = why_used(s, d, place),
                    *holds = content_describe(&d->content), *broken = NULL;
        if (!d->serial)
                broken = xstrdup("has no serial number to identify it");
        else if (d->content.kind == CONTENT_UNREADABLE)
                broken = xasprintf("cannot be read: %s", d->content.error ?: "no reason is given");
        else if (d->content.kind == CONTENT_UNKNOWN)
                broken = xstrdup("holds data that could not be identified");
        else if (d->read_only)
                broken = xstrdup("is read-only");
        if (broken)
                stores_refuse(s, CAUSE_DISK_ERROR,
                              "instance store %s %s; stop and start the instance to get other disks", label,
                              broken);
        else if (used)
                stores_refuse(s, CAUSE_DISK_USED,
                              "%s %s and holds %s: it stays as it is. If you do not need the data, stop "
                              "what uses it, and run `wipefs --all /dev/%s` and `blkdiscard /dev/%s`",
                              label, used, holds, d->name, d->name);
        else if (place || !(d->holders && is_array(s->seen, d->holders[0])))
                /* array_find() knows members better */
                (void)stores_check_blank(s, d, NULL);
}
