/* SPDX-License-Identifier: Apache-2.0
 * /sys/block → Disks, by name. Disks are told apart by the model their controller reports, never by kernel name: names change
 * from boot to boot. Loop, RAM, md and dm devices have no device behind them and are left out. */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

static const struct { const char *model; DiskKind kind; } models[] = {
        /* https://github.com/amazonlinux/amazon-ec2-utils, 70-ec2-nvme-devices.rules */
        { "Amazon EC2 NVMe Instance Storage", DISK_INSTANCE_STORE },
        { "Amazon Elastic Block Store",       DISK_EBS },
};

static DiskKind disk_kind(const char *model) {
        for (size_t i = 0; model && i < ARRAY_SIZE(models); i++)
                if (startswith(model, models[i].model))
                        return models[i].kind;
        return DISK_OTHER;
}

/* An attribute that not every disk has; *ret stays NULL then, and also where it is blank. */
static int read_optional(const Root *root, const char *path, char **ret, Diag *diag) {
        int r = root_read_line(root, path, ret);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return fact_error(diag, r, path, "this disk cannot be told from others");
        if (!**ret) {
                free(*ret);
                *ret = NULL;
        }
        return 0;
}

/* Has the disk partitions, or is something (md, dm) built on it? */
static int read_use(const Root *root, const char *path, Disk *d, Diag *diag) {
        _cleanup_(strv_freep) char **entries = NULL, **holders = NULL;
        _cleanup_(freep) char *holders_path = xasprintf("%s/holders", path);
        int r = root_list(root, path, &entries);

        if (r < 0)
                return fact_error(diag, r, path, "whether this disk is in use is not known");
        for (char **e = entries; e && *e; e++)
                d->in_use |= startswith(*e, d->name);
        r = root_list(root, holders_path, &holders);
        if (r < 0 && r != -ENOENT)
                return fact_error(diag, r, holders_path, "whether this disk is in use is not known");
        d->in_use |= holders != NULL;
        return 0;
}

static int read_disk(const Root *root, const char *name, const char *path, Disk *d, Diag *diag) {
        _cleanup_(freep) char *model = xasprintf("%s/device/model", path), *serial = xasprintf("%s/device/serial", path);
        _cleanup_(freep) char *size = xasprintf("%s/size", path);
        uint64_t sectors = 0;

        d->name = xstrdup(name);
        int r = read_optional(root, model, &d->model, diag);
        if (r >= 0)
                r = read_optional(root, serial, &d->serial, diag);
        if (r < 0)
                return r;
        r = root_read_u64(root, size, &sectors);
        if (r >= 0 && __builtin_mul_overflow(sectors, 512, &d->bytes))  /* always of 512 bytes, whatever the disk's own */
                r = -ERANGE;
        if (r < 0)
                return fact_error(diag, r, size, "the size of this disk is not known");
        d->kind = disk_kind(d->model);
        return read_use(root, path, d, diag);
}

/* 1 for a disk that programs can use: a device is behind it, and it is no path of a multipath NVMe namespace. */
static int is_disk(const Root *root, const char *path) {
        _cleanup_(freep) char *device = xasprintf("%s/device", path), *hidden = xasprintf("%s/hidden", path);
        uint64_t value = 0;
        int r = root_exists(root, device);
        if (r <= 0)
                return r;
        r = root_read_u64(root, hidden, &value);
        return r == -ENOENT ? 1 : r < 0 ? r : value == 0;
}

int detect_disks(const Root *root, Host *h, Diag *diag) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = root_list(root, "/sys/block", &names);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return fact_error(diag, r, "/sys/block", "disks cannot be found");
        h->disks = xcalloc(strv_length(names), sizeof *h->disks);
        for (char **name = names; name && *name; name++) {
                _cleanup_(freep) char *path = xasprintf("/sys/block/%s", *name);
                r = is_disk(root, path);
                if (r < 0)
                        return fact_error(diag, r, path, "whether this is a disk is not known");
                if (r == 0)
                        continue;
                r = read_disk(root, *name, path, &h->disks[h->n_disks++], diag);
                if (r < 0)
                        return r;
        }
        return 0;
}
