/* SPDX-License-Identifier: Apache-2.0
 * make-filesystem: mkfs.xfs(8) or mkfs.ext4(8) on a blank device or an unfinished file system. A label marks
 * it as unfinished until mount has everything on the disks. Nothing is discarded: instance stores come
 * trimmed, and discarding terabytes takes minutes (scylladb/scylladb#901, #1896). */
#include "apply/storage.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* lazy_journal_init leaves blocks of an old journal; jbd2 rejects them by checksums with the UUID. The kernel
 * clears inode tables after the mount. */
static int mkfs(Work *w, const char *device) {
        const Action *a = w->action;
        _free_ char *path = xasprintf("/dev/%s", device), *disks = disks_shown(w),
                    *uuid = xasprintf("uuid=%s", a->storage.uuid);
        _free_ char *what =
                xasprintf("no %s file system can be made on %s (%s)", a->storage.filesystem, device, disks);
        _strv_ char **argv = streq(a->storage.filesystem, "xfs")
                                     ? command("mkfs.xfs", "-q", "-f", "-K", "-L", LABEL_UNFINISHED, "-m",
                                               uuid, path, NULL)
                                     : command("mkfs.ext4", "-q", "-F", "-E",
                                               "nodiscard,lazy_itable_init=1,lazy_journal_init=1", "-L",
                                               LABEL_UNFINISHED, "-U", a->storage.uuid, path, NULL);
        return work_run(w, CAUSE_FILESYSTEM, what, argv);
}

/* Returns a locked descriptor. The disks are checked before they are opened for writing, which an owner would
 * notice, and again under the lock. */
static int device_take(Work *w, const char *device) {
        int r = disks_same(w);
        if (r < 0)
                return r;
        work_at(w, "waiting for udev to release %s", device);
        int fd = disk_lock(w->root, device, O_RDWR);
        if (fd < 0)
                return work_fail(w, fd, CAUSE_DISK_ERROR,
                                 "%s cannot be opened for writing: %m; dmesg shows whether a disk failed",
                                 device);
        char **disks = w->action->storage.disks, **serials = w->action->storage.serials;
        for (size_t i = 0; disks[i] && r >= 0; i++)
                r = disk_still(w, disks[i], serials[i], w->action->storage.array ? device : NULL);
        if (r >= 0)
                return fd;
        close(fd);
        return r;
}

/* A mark says that the device may be overwritten, in case power fails during mkfs. */
static int mark(Work *w, int fd, bool set) {
        const Action *a = w->action;
        int r = a->storage.array ? 0 : disk_mark(fd, false, set);
        for (char **d = a->storage.disks; a->storage.array && *d && r >= 0; d++) {
                _free_ char *path = xasprintf("/dev/%s", *d);
                _cleanup_(close_fd) int member = root_open(w->root, path, O_RDWR | O_NOFOLLOW);
                r = member < 0 ? member : disk_mark(member, true, set);
        }
        _free_ char *disks = r < 0 ? disks_shown(w) : NULL;
        return r < 0 ? work_fail(w, r, CAUSE_DISK_ERROR,
                                 "%s cannot be written: %m; dmesg shows which disk fails", disks)
                     : 0;
}

/* 1: make one; 0: exists, which the plan could not see before the array ran. */
static int wanted(Work *w, const char *device) {
        _cleanup_(content_done) Content c = {};
        int r = device_content(w, device, &c);
        if (r < 0)
                return r;
        if (c.kind == CONTENT_BLANK || content_unfinished(&c))
                return 1;
        if (w->action->storage.state == STEP_ASSEMBLE && c.kind == CONTENT_FILESYSTEM &&
            (streq(c.type, "xfs") || streq(c.type, "ext4")))
                return 0;
        return device_refuse(w, device, &c);
}

int filesystem_work(Work *w) {
        _free_ char *device = NULL;
        _cleanup_(close_fd) int fd = -1;
        const Action *a = w->action;
        if (!a->storage.uuid || !a->storage.filesystem ||
            !(streq(a->storage.filesystem, "xfs") || streq(a->storage.filesystem, "ext4")))
                return work_fail(w, -EINVAL, CAUSE_INTERNAL,
                                 "the plan does not say which file system to make; run nodestrap init "
                                 "again for a new plan");
        int r = step_device(w, &device);
        if (r < 0)
                return r;
        fd = device_take(w, device);
        r = fd < 0 ? fd : wanted(w, device);
        if (r <= 0)
                return r;
        r = mark(w, fd, true);
        THEN(r, mkfs(w, device));
        if (r < 0)
                return r;
        work_at(w, "flushing the cache of the file system on %s", device);
        if (fsync(fd) < 0)
                return work_fail(w, -errno, CAUSE_DISK_ERROR,
                                 "%s cannot be written: %m; dmesg shows which disk fails", device);
        r = mark(w, fd, false);
        return r < 0 ? r : 1;
}
