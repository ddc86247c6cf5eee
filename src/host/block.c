/* SPDX-License-Identifier: Apache-2.0
 * /sys/block → Disks, by name. The model tells disks apart; kernel names change from boot to boot. Loop,
 * RAM, md and dm have no device and are left out. */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

static const char not_told[] = "this disk cannot be told from others";

int read_optional(const Root *root, const char *path, char **ret, const char *meaning, Diag *diag) {
        _free_ char *text = NULL;
        int r = root_read_line(root, path, &text);
        if (r < 0 && r != -ENOENT)
                return fact_error(diag, r, path, meaning);
        *ret = text && *text ? TAKE_PTR(text) : NULL;
        return 0;
}

int block_use(const Root *root, const char *name, char ***ret_partitions, char ***ret_holders, Diag *diag) {
        _free_ char *path = xasprintf("/sys/block/%s", name),
                    *holders_path = xasprintf("%s/holders", path);
        _strv_ char **entries = NULL, **partitions = NULL, **holders = NULL;

        int r = root_list(root, path, &entries);
        if (r < 0)
                return fact_error(diag, r, path, "whether this disk is in use is not known");
        STRV_FOREACH(e, entries)
                if (startswith(*e, name))
                        strv_add(&partitions, *e);
        r = root_list(root, holders_path, &holders);
        if (r < 0 && r != -ENOENT)
                return fact_error(diag, r, holders_path, "whether this disk is in use is not known");
        *ret_partitions = TAKE_PTR(partitions);
        *ret_holders = TAKE_PTR(holders);
        return 0;
}

int block_bytes(const Root *root, const char *name, uint64_t *ret, Diag *diag) {
        _free_ char *path = xasprintf("/sys/block/%s/size", name);
        uint64_t sectors = 0;
        int r = root_read_u64(root, path, &sectors);
        /* sectors of 512 bytes for any disk */
        if (r >= 0 && __builtin_mul_overflow(sectors, 512, ret))
                r = -ERANGE;
        return r < 0 ? fact_error(diag, r, path, "the size of this disk is not known") : 0;
}

int disks_look_closer(const Root *root, Host *h, Diag *diag) {
        for (Disk *d = h->disks; d < h->disks + h->n_disks; d++) {
                _free_ char *number = xasprintf("/sys/block/%s/dev", d->name),
                            *ro = xasprintf("/sys/block/%s/ro", d->name);
                uint64_t value = 0;
                int r = read_optional(root, number, &d->number, not_told, diag);
                if (r < 0)
                        return r;
                r = root_read_u64(root, ro, &value);
                if (r < 0 && r != -ENOENT)
                        return fact_error(diag, r, ro, "whether this disk can be written is not known");
                d->read_only = value != 0;
        }
        return 0;
}

static int read_disk(const Root *root, const char *name, const char *path, Disk *d, Diag *diag) {
        _free_ char *model = xasprintf("%s/device/model", path),
                    *serial = xasprintf("%s/device/serial", path);

        d->name = xstrdup(name);
        int r = read_optional(root, model, &d->model, not_told, diag) ?:
                read_optional(root, serial, &d->serial, not_told, diag) ?:
                block_bytes(root, name, &d->bytes, diag) ?:
                block_use(root, name, &d->partitions, &d->holders, diag);
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
        int r = read_disk(root, name, path, &h->disks[h->n_disks], &found);
        if (r < 0 && root_exists(root, path) == 0) {
                disk_clear(&h->disks[h->n_disks]);
                return 0;
        }
        h->n_disks++;
        diag_move(diag, &found);
        return r;
}

int detect_disks(const Root *root, Host *h, Diag *diag) {
        _strv_ char **names = NULL;
        int r = root_list(root, "/sys/block", &names);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return fact_error(diag, r, "/sys/block", "disks cannot be found");
        h->disks = xcalloc(strv_length(names), sizeof *h->disks);
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("/sys/block/%s", *name);
                r = is_disk(root, path);
                if (r < 0)
                        return fact_error(diag, r, path, "whether this is a disk is not known");
                if (r == 0)
                        continue;
                r = add_disk(root, *name, path, h, diag);
                if (r < 0)
                        return r;
        }
        return 0;
}

void disks_clear(Host *h) {
        for (size_t i = 0; i < h->n_disks; i++)
                disk_clear(&h->disks[i]);
        free(h->disks);
        h->disks = NULL;
        h->n_disks = 0;
}
