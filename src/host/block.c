/* SPDX-License-Identifier: Apache-2.0
 * /sys/block → Disks and Arrays, by name, without loop, RAM and dm devices. The model tells disks apart, as
 * kernel names change from boot to boot. Members of an array are its slaves in any state: a partly assembled
 * one is inactive and holds them (kernel: Documentation/admin-guide/md.rst). */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

#define BLOCK "/sys/block"

int read_optional(const Root *root, const char *path, char **ret, const char *meaning, Diag *diag) {
        _free_ char *text = NULL;
        int r = root_read_line(root, path, &text);
        if (r < 0 && r != -ENOENT)
                return fact_error(diag, r, path, meaning);
        *ret = text && *text ? TAKE_PTR(text) : NULL;
        return 0;
}

int list_optional(const Root *root, const char *path, char ***ret, const char *meaning, Diag *diag) {
        int r = root_list(root, path, ret);
        return r < 0 && r != -ENOENT ? fact_error(diag, r, path, meaning) : 0;
}

static int read_attribute(const Root *root, const char *device, const char *name, char **ret,
                          const char *meaning, Diag *diag) {
        _free_ char *path = xasprintf(BLOCK "/%s/%s", device, name);
        return read_optional(root, path, ret, meaning, diag);
}

/* Size, partitions and holders (md, dm) of a whole device. */
static int read_use(const Root *root, const char *name, uint64_t *ret_bytes, char ***ret_partitions,
                    char ***ret_holders, Diag *diag) {
        static const char unknown[] = "cannot tell if this disk is in use";
        _free_ char *path = xasprintf(BLOCK "/%s", name), *size = xasprintf("%s/size", path),
                    *holders = xasprintf("%s/holders", path);
        _strv_ char **entries = NULL;
        uint64_t sectors = 0;

        int r = root_read_u64(root, size, &sectors);
        /* sectors of 512 bytes for any disk */
        if (r >= 0 && __builtin_mul_overflow(sectors, 512, ret_bytes))
                r = -ERANGE;
        if (r < 0)
                return fact_error(diag, r, size, "the size of this disk is not known");
        r = root_list(root, path, &entries);
        if (r < 0)
                return fact_error(diag, r, path, unknown);
        STRV_FOREACH(e, entries)
                if (startswith(*e, name))
                        strv_add(ret_partitions, *e);
        return list_optional(root, holders, ret_holders, unknown, diag);
}

static const char not_told[] = "cannot tell this disk from others";

int disks_look_closer(const Root *root, Host *h, Diag *diag) {
        for (Disk *d = h->disks; d < h->disks + h->n_disks; d++) {
                _free_ char *ro = xasprintf(BLOCK "/%s/ro", d->name);
                uint64_t value = 0;
                int r = read_attribute(root, d->name, "dev", &d->number, not_told, diag);
                if (r < 0)
                        return r;
                r = root_read_u64(root, ro, &value);
                if (r < 0 && r != -ENOENT)
                        return fact_error(diag, r, ro, "cannot tell if this disk is writable");
                d->read_only = value != 0;
        }
        return 0;
}

static int read_disk(const Root *root, Disk *d, Diag *diag) {
        int r = read_attribute(root, d->name, "device/model", &d->model, not_told, diag) ?:
                read_attribute(root, d->name, "device/serial", &d->serial, not_told, diag) ?:
                read_use(root, d->name, &d->bytes, &d->partitions, &d->holders, diag);
        d->kind = disk_kind(d->model);
        d->in_use = d->partitions || d->holders;
        return r;
}

/* 1: has a device and is not a path of a multipath NVMe namespace. */
static int is_disk(const Root *root, const char *path) {
        _free_ char *device = xasprintf("%s/device", path), *hidden = xasprintf("%s/hidden", path);
        uint64_t value = 0;
        int r = root_exists(root, device);
        if (r <= 0)
                return r;
        r = root_read_u64(root, hidden, &value);
        return r == -ENOENT ? 1 : r < 0 ? r : value == 0;
}

static void disk_clear(Disk *d) {
        FREE_ALL(d->name, d->model, d->serial, d->number);
        strv_free(d->partitions);
        strv_free(d->holders);
        strv_free(d->names);
        content_done(&d->content);
        *d = (Disk){};
}

/* Ignores a disk that vanishes meanwhile: a detached volume, a failed controller. */
static int add_disk(const Root *root, const char *name, const char *path, Host *h, Diag *diag) {
        _cleanup_(diag_done) Diag found = {};
        Disk *d = &h->disks[h->n_disks];
        d->name = xstrdup(name);
        int r = read_disk(root, d, &found);
        if (r < 0 && root_exists(root, path) == 0) {
                disk_clear(d);
                return 0;
        }
        h->n_disks++;
        diag_move(diag, &found);
        return r;
}

int detect_disks(const Root *root, Host *h, Diag *diag) {
        _strv_ char **names = NULL;
        int r = list_optional(root, BLOCK, &names, "disks cannot be listed", diag);

        h->disks = xcalloc(strv_length(names), sizeof *h->disks);
        for (char **name = names; r >= 0 && name && *name; name++) {
                _free_ char *path = xasprintf(BLOCK "/%s", *name);
                r = is_disk(root, path);
                if (r < 0)
                        r = fact_error(diag, r, path, "cannot tell if this is a disk");
                else if (r > 0)
                        r = add_disk(root, *name, path, h, diag);
        }
        return r;
}

void disks_clear(Host *h) {
        for (size_t i = 0; i < h->n_disks; i++)
                disk_clear(&h->disks[i]);
        free(h->disks);
        h->disks = NULL;
        h->n_disks = 0;
}

/* "4 (3)" during a reshape from three to four. */
static unsigned leading_number(const char *text) {
        unsigned long n = text ? strtoul(text, NULL, 10) : 0;
        return n <= UINT16_MAX ? (unsigned)n : 0;
}

static int read_array(const Root *root, const char *state, Array *a, Diag *diag) {
        static const char unknown[] = "the state of this array is not known";
        _free_ char *slaves = xasprintf(BLOCK "/%s/slaves", a->name), *disks = NULL, *degraded = NULL;

        a->active = !streq(state, "inactive");
        int r = read_attribute(root, a->name, "md/level", &a->level, unknown, diag) ?:
                read_attribute(root, a->name, "md/raid_disks", &disks, unknown, diag) ?:
                read_attribute(root, a->name, "md/degraded", &degraded, unknown, diag) ?:
                read_attribute(root, a->name, "dev", &a->number, unknown, diag) ?:
                read_use(root, a->name, &a->bytes, &a->partitions, &a->holders, diag) ?:
                list_optional(root, slaves, &a->members, "the members of this array are not known", diag);
        a->disks = leading_number(disks);
        /* "broken": a raid0 that lost a member */
        a->degraded = leading_number(degraded) > 0 || streq(state, "broken");
        return r;
}

int detect_arrays(const Root *root, Storage *s, Diag *diag) {
        _strv_ char **names = NULL;
        int r = list_optional(root, BLOCK, &names, "arrays cannot be listed", diag);

        for (char **name = names; r >= 0 && name && *name; name++) {
                _free_ char *state = NULL;
                if (!startswith(*name, "md"))
                        continue;
                r = read_attribute(root, *name, "md/array_state", &state,
                                   "the state of this array is not known", diag);
                if (r < 0 || !state || streq(state, "clear"))   /* left behind by a stopped array */
                        continue;
                Array *a = APPEND(s->arrays, s->n_arrays);
                *a = (Array){ .name = xstrdup(*name) };
                r = read_array(root, state, a, diag);
        }
        return r;
}
