/* SPDX-License-Identifier: Apache-2.0
 * Checks of the storage executors right before they write: same disk, not in use, which array. Sources are
 * sysfs and an exclusive open (open(2), O_EXCL), which mounts, md and swap block. */
#include "apply/storage.h"
#include "apply/task.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define AGAIN "nothing was written; run nodestrap init again for a new plan"

int storage_check(Task *t) {
        if (t->action->storage.state == STEP_KEEP)
                return CHECK_DONE_ALREADY;
        if (t->action->storage.state == STEP_UNKNOWN)
                return task_fail(t, -EINVAL, CAUSE_DISKS, "%s",
                                 t->action->why ?: "the disks were not read when the plan was made");
        if (strv_length(t->action->storage.disks) != strv_length(t->action->storage.serials))
                return task_fail(t, -EINVAL, CAUSE_INTERNAL,
                                 "the plan does not name the serial of each of its disks; run nodestrap "
                                 "init again for a new plan");
        return CHECK_NEEDED;
}

char *storage_waiting(Task *t) {
        _free_ char *at = work_waiting(t);
        return xasprintf("%s; dmesg shows whether a disk does not answer", at);
}

char *disk_shown(const Work *w, const char *name) {
        char **disks = w->action->storage.disks, **serials = w->action->storage.serials;
        for (size_t i = 0; disks && disks[i]; i++)
                if (streq(disks[i], name))
                        return xasprintf("%s (%s)", name, serials[i]);
        return xstrdup(name);
}

char *disks_shown(const Work *w) {
        char **shown = NULL;
        for (char **d = w->action->storage.disks; d && *d; d++)
                strv_push(&shown, disk_shown(w, *d));
        char *text = strv_join(shown, ", ");
        strv_free(shown);
        return text;
}

int disks_same(Work *w) {
        char **disks = w->action->storage.disks, **serials = w->action->storage.serials;
        int r = 0;
        for (size_t i = 0; r >= 0 && disks && disks[i]; i++)
                r = disk_same(w, disks[i], serials[i]);
        return r;
}

int disk_lock(const Root *root, const char *name, int flags) {
        _free_ char *path = xasprintf("/dev/%s", name);
        int fd = root_open(root, path, flags | O_NOFOLLOW), r = fd < 0 ? fd : -EINTR;
        while (r == -EINTR)
                r = flock(fd, LOCK_EX) < 0 ? -errno : 0;
        if (r < 0)
                close_fd(&fd);
        return r < 0 ? r : fd;
}

int device_content(Work *w, const char *name, Content *ret) {
        _free_ char *path = xasprintf("/dev/%s", name), *shown = disk_shown(w, name);
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(content_done) Content c = {};
        int r = content_probe(w->root, path, &c, &diag);
        const Diagnostic *d = diag_first_error(&diag);
        if (r < 0)
                return work_fail(w, r, d ? d->cause : CAUSE_DISK_ERROR,
                                 "the content of %s cannot be read: %s", shown, d ? d->text : strerror(-r));
        if (c.kind == CONTENT_UNREADABLE)
                return work_fail(w, -EIO, CAUSE_DISK_ERROR,
                                 "%s cannot be read: %s; dmesg shows more; if the disk is broken, replace "
                                 "the instance",
                                 shown, c.error ?: "input/output error");
        *ret = c;
        c = (Content){};
        return 0;
}

int device_refuse(Work *w, const char *name, const Content *c) {
        _free_ char *shown = disk_shown(w, name), *what = content_describe(c);
        return work_fail(w, -EEXIST, CAUSE_DISK_USED,
                         "%s carries %s, which the plan does not expect; " AGAIN, shown, what);
}

int disk_same(Work *w, const char *name, const char *serial) {
        _free_ char *device = xasprintf("/sys/block/%s/device", name);
        _free_ char *model_path = xasprintf("/sys/block/%s/device/model", name), *model = NULL;
        _free_ char *serial_path = xasprintf("/sys/block/%s/device/serial", name), *now = NULL;
        /* A volume on Xen has neither model nor serial number; the hypervisor gave its name. */
        if (w->action->storage.volume && !*serial && root_exists(w->root, device) > 0)
                return 0;
        if (w->action->storage.volume && !*serial)
                return work_fail(w, -ENODEV, CAUSE_DISKS, "the disk %s is gone; nothing was written", name);
        int r = root_read_line(w->root, serial_path, &now);
        THEN(r, root_read_line(w->root, model_path, &model));
        if (r < 0)
                return work_fail(w, r, CAUSE_DISKS,
                                 "the disk %s (%s) is gone: %s: %m; dmesg shows whether a controller failed",
                                 name, serial, serial_path);
        if (!streq(now, serial))
                return work_fail(w, -ESTALE, CAUSE_DISKS,
                                 "%s is the disk %s now, and was %s when the plan was made; " AGAIN, name,
                                 now, serial);
        if (disk_kind(model) != (w->action->storage.volume ? DISK_EBS : DISK_INSTANCE_STORE))
                return work_fail(w, -EINVAL, CAUSE_DISK_USED,
                                 "%s (%s) is not an %s but \"%s\"; " AGAIN, name, serial,
                                 w->action->storage.volume ? "EBS volume" : "instance store", model);
        return 0;
}

static int no_partitions(Work *w, const char *name) {
        _free_ char *path = xasprintf("/sys/block/%s", name), *shown = disk_shown(w, name);
        _strv_ char **entries = NULL;
        int r = root_list(w->root, path, &entries);
        if (r < 0)
                return work_fail(w, r, CAUSE_DISKS, "%s is gone: %s: %m", shown, path);
        for (char **e = entries; e && *e; e++)
                if (startswith(*e, name))
                        return work_fail(w, -EBUSY, CAUSE_DISK_USED, "%s has a partition, %s; " AGAIN, shown,
                                         *e);
        return 0;
}

/* Such a device opens for writing, and mdadm would fail after it wrote to the others. */
static int not_read_only(Work *w, const char *name) {
        _free_ char *path = xasprintf("/sys/block/%s/ro", name), *shown = disk_shown(w, name);
        uint64_t value = 0;
        if (root_read_u64(w->root, path, &value) >= 0 && value != 0)
                return work_fail(w, -EROFS, CAUSE_DISK_ERROR,
                                 "%s cannot be written: the kernel made it read-only; dmesg shows why; "
                                 "nothing was written",
                                 shown);
        return 0;
}

/* O_EXCL fails for any exclusive user. */
static int not_in_use(Work *w, const char *name) {
        _free_ char *path = xasprintf("/dev/%s", name), *shown = disk_shown(w, name);
        int fd = root_open(w->root, path, O_RDONLY | O_EXCL);
        if (fd == -EBUSY)
                return work_fail(w, fd, CAUSE_DISK_USED,
                                 "%s is in use (findmnt and lsblk show by what); " AGAIN, shown);
        if (fd < 0)
                return work_fail(w, fd, CAUSE_DISK_ERROR, "%s cannot be opened: %m", shown);
        close(fd);
        return 0;
}

static int holders_of(Work *w, const char *name, char ***ret) {
        _free_ char *path = xasprintf("/sys/block/%s/holders", name);
        int r = root_list(w->root, path, ret);
        if (r >= 0 || r == -ENOENT)
                return 0;
        return work_fail(w, r, CAUSE_DISKS, "the holders of %s cannot be read: %s: %m", name, path);
}

int disk_still(Work *w, const char *name, const char *serial, const char *holder) {
        _strv_ char **holders = NULL;
        int r = disk_same(w, name, serial);
        THEN(r, no_partitions(w, name));
        THEN(r, not_read_only(w, name));
        THEN(r, holders_of(w, name, &holders));
        if (r < 0)
                return r;
        for (char **h = holders; h && *h; h++)
                if (!holder || !streq(*h, holder))
                        return work_fail(w, -EBUSY, CAUSE_DISK_USED, "%s (%s) is held by %s; " AGAIN, name,
                                         serial, *h);
        return holders ? 0 : not_in_use(w, name);
}

int disk_holder(Work *w, const char *name, char **ret) {
        _strv_ char **holders = NULL;
        _free_ char *shown = disk_shown(w, name);
        int r = holders_of(w, name, &holders);
        if (r < 0)
                return r;
        for (char **h = holders; h && *h; h++)
                if (h != holders || !startswith(*h, "md"))
                        return work_fail(w, -EBUSY, CAUSE_DISK_USED, "%s is held by %s; " AGAIN, shown, *h);
        *ret = holders ? xstrdup(holders[0]) : NULL;
        return 0;
}

bool array_runs(const Root *root, const char *array) {
        _free_ char *path = xasprintf("/sys/block/%s/md/array_state", array), *state = NULL;
        return root_read_line(root, path, &state) >= 0 && !streq(state, "inactive") && !streq(state, "clear");
}

static int step_array(Work *w, char **ret) {
        _strv_ char **disks = strv_copy(w->action->storage.disks), **members = NULL;
        _free_ char *array = NULL, *all = disks_shown(w);
        int r = disk_holder(w, disks[0], &array);
        if (r < 0)
                return r;
        if (!array)
                return work_fail(w, -ENODEV, CAUSE_ARRAY,
                                 "no array holds %s; cat /proc/mdstat and dmesg show why", all);
        _free_ char *path = xasprintf("/sys/block/%s/slaves", array);
        r = root_list(w->root, path, &members);
        if (r < 0)
                return work_fail(w, -ENODEV, CAUSE_ARRAY, "the members of %s cannot be read: %s: %s", array,
                                 path, strerror(-r));
        strv_sort(disks);
        _free_ char *is = strv_join(members, ", "), *should = strv_join(disks, ", ");
        if (!streq(is, should))
                return work_fail(w, -ENODEV, CAUSE_ARRAY,
                                 "the array %s has the disks %s but needs %s; mdadm --detail /dev/%s and "
                                 "dmesg show why",
                                 array, is, all, array);
        if (!array_runs(w->root, array))
                return work_fail(w, -ENODEV, CAUSE_ARRAY,
                                 "the array %s of %s is not running; mdadm --detail /dev/%s and dmesg show "
                                 "why",
                                 array, all, array);
        *ret = TAKE_PTR(array);
        return 0;
}

int step_device(Work *w, char **ret) {
        if (!w->action->storage.disks)
                return work_fail(w, -ENODEV, CAUSE_INTERNAL, "the plan does not name a disk for this step; "
                                                             "run nodestrap init again for a new plan");
        if (w->action->storage.array)
                return step_array(w, ret);
        *ret = xstrdup(w->action->storage.disks[0]);
        return 0;
}
