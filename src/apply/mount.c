/* SPDX-License-Identifier: Apache-2.0
 * mount: mounts a file system with noatime. A new one gets its final label once all of it is on disk;
 * otherwise the next boot makes it again. bind: mounts a directory of the disks over that of a daemon. Both
 * verify the result. */
#include "apply/storage.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LABEL_ATTRIBUTE "security.selinux"

int attributes_copy(int from, int to) {
        struct stat st;
        char label[256];
        if (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0 ||
            fchmod(to, st.st_mode & 07777) < 0)
                return -errno;
        ssize_t n = fgetxattr(from, LABEL_ATTRIBUTE, label, sizeof label);
        if (n < 0)              /* no label, or no label support */
                return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
        return fsetxattr(to, LABEL_ATTRIBUTE, label, (size_t)n, 0) < 0 && errno != EOPNOTSUPP ? -errno : 0;
}

static int open_directory(Work *w, const char *path) {
        int fd = root_open(w->root, path, O_RDONLY | O_DIRECTORY);
        return fd < 0 ? work_fail(w, fd, CAUSE_MOUNT, "%s cannot be opened as a directory: %m", path) : fd;
}

static int look_again(Work *w, const char *name, Content *ret) {
        const Action *a = w->action;
        int r = device_content(w, name, ret);
        if (r < 0)
                return r;
        if (ret->kind != CONTENT_FILESYSTEM || (!streq(ret->type, "xfs") && !streq(ret->type, "ext4")))
                return device_refuse(w, name, ret);
        if (a->storage.uuid && a->storage.state != STEP_ASSEMBLE &&
            !streq(ret->uuid ?: "", a->storage.uuid)) {
                _free_ char *shown = disk_shown(w, name), *there = content_describe(ret);
                return work_fail(
                        w, -ESTALE, CAUSE_MOUNT,
                        "%s carries %s with the UUID %s instead of %s: it changed after planning. Run "
                        "nodestrap init again for a new plan",
                        shown, there, ret->uuid ?: "(none)", a->storage.uuid);
        }
        return 0;
}

/* With this label the next boot keeps the content. A kernel that cannot set it is refused, or each reboot
 * would empty the disks: xfs needs Linux 4.18, ext4 5.17. */
static int label_set(Work *w, int fd, const char *type) {
        char label[FSLABEL_MAX] = LABEL_FINISHED;
        struct utsname kernel;
        if (ioctl(fd, FS_IOC_SETFSLABEL, label) == 0)
                return 0;
        int r = -errno;
        if ((r == -ENOTTY || r == -EOPNOTSUPP) && uname(&kernel) == 0)
                return work_fail(
                        w, r, CAUSE_MOUNT,
                        "this kernel (%s) cannot label a mounted %s file system as finished, so nodestrap "
                        "would delete its content at the next boot. Use kernel 5.17 or later, or set "
                        "filesystem: xfs",
                        kernel.release, type);
        return work_fail(w, r, CAUSE_MOUNT, "the label of the new file system on %s cannot be set: %m",
                         w->action->target);
}

static int sync_mount(Work *w, int fd) {
        work_at(w, "writing the new file system to the disks");
        if (syncfs(fd) == 0)
                return 0;
        return work_fail(w, -errno, CAUSE_DISK_ERROR, "the new file system on %s cannot be written: %m",
                         w->action->target);
}

static int mark(Work *w, int mounted, const char *type) {
        int r = sync_mount(w, mounted);
        THEN(r, label_set(w, mounted, type));
        return r < 0 ? r : sync_mount(w, mounted);
}

int device_is_mounted(Work *w, const char *device, int fd) {
        struct stat st = {};
        Place place = {};
        int node = root_open(w->root, device, O_PATH), r = node < 0               ? node
                                                           : fstat(node, &st) < 0 ? -errno
                                                                                  : place_look(fd, &place);
        close_fd(&node);
        if (r < 0)
                return work_fail(w, r, CAUSE_MOUNT, "%s cannot be examined: %m", device);
        return place.mount && place.major == major(st.st_rdev) && place.minor == minor(st.st_rdev);
}

static int mount_undo(int *fd) {
        _free_ char *path = place_path(*fd);
        close_fd(fd);
        return !path ? -ENOSYS : umount2(path, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

/* 0: not mounted, or unfinished and unmounted again. 1: mounted and finished. */
static int unmount_unfinished(Work *w, const char *device, const Content *content) {
        const char *target = w->action->target;
        int fd = open_directory(w, target), r = fd < 0 ? fd : device_is_mounted(w, device, fd);
        if (r > 0 && content_unfinished(content)) {
                r = mount_undo(&fd);
                if (r < 0)
                        (void)work_fail(w, r, CAUSE_MOUNT,
                                        "the unfinished file system %s on %s cannot be unmounted: %s; fuser "
                                        "-vm %s shows the processes that use it",
                                        device, target, strerror(-r), target);
        }
        close_fd(&fd);
        return r;
}

static int mount_and_finish(Work *w, const char *device, const Content *content) {
        const char *target = w->action->target;
        int r = unmount_unfinished(w, device, content);
        if (r != 0)
                return r < 0 ? r : 0;
        _cleanup_(close_fd) int covered = open_directory(w, target);
        r = covered < 0 ? covered : mount_device(w, device, target, content->type, "noatime");
        if (r < 0)
                return r;
        _cleanup_(close_fd) int mounted = open_directory(w, target);
        r = mounted < 0 ? mounted : device_is_mounted(w, device, mounted);
        if (r == 0)
                r = work_fail(w, -EBUSY, CAUSE_MOUNT,
                              "%s was mounted, but %s shows another file system; findmnt shows which", device,
                              target);
        if (r > 0 && content_unfinished(content)) {
                r = attributes_copy(covered, mounted);
                r = r < 0 ? work_fail(w, r, CAUSE_MOUNT,
                                      "the file system on %s cannot be given the mode, owner and label of "
                                      "the directory under it: %m", target)
                          : mark(w, mounted, content->type);
        }
        /* a daemon must not find it; the next boot makes it again */
        if (r < 0 && mounted >= 0)
                (void)mount_undo(&mounted);
        return r < 0 ? r : 1;
}

/* An earlier run of this boot mounted it and ended before setting the label. */
static int mark_mounted(Work *w, const char *device, const Content *content) {
        _cleanup_(close_fd) int mounted = open_directory(w, w->action->target);
        int r = mounted < 0 ? mounted : device_is_mounted(w, device, mounted);
        if (r == 0)
                return work_fail(w, -ESTALE, CAUSE_MOUNT,
                                 "%s was mounted on %s when the plan was made, but is not now; nothing was "
                                 "written; run nodestrap init again for a new plan",
                                 device, w->action->target);
        if (r > 0)
                r = content_unfinished(content) ? mark(w, mounted, content->type) : 0;
        return r < 0 ? r : content_unfinished(content);
}

int mount_work(Work *w) {
        _cleanup_(content_done) Content content = {};
        _free_ char *name = NULL;
        int r = root_make_dirs(w->root, w->action->target, 0755);
        if (r < 0)
                return work_fail(w, r, CAUSE_MOUNT, "%s cannot be made: %s", w->action->target,
                                 r == -ENOTDIR ? "it or a directory above it is a file" : strerror(-r));
        r = disks_same(w);
        THEN(r, step_device(w, &name));
        if (r < 0)
                return r;
        _free_ char *device = xasprintf("/dev/%s", name);
        work_at(w, "waiting for udev to release %s", device);
        /* The lock keeps udev away. Read-only: without BLK_DEV_WRITE_MOUNTED the kernel mounts no device that
         * is open for writing. */
        _cleanup_(close_fd) int lock = disk_lock(w->root, name, O_RDONLY);
        if (lock < 0)
                return work_fail(w, lock, CAUSE_MOUNT, "%s cannot be locked: %m", device);
        r = look_again(w, name, &content);
        if (r < 0)
                return r;
        return w->action->storage.state == STEP_REPAIR ? mark_mounted(w, device, &content)
                                                       : mount_and_finish(w, device, &content);
}

static int bind_target(Work *w, int source) {
        const char *target = w->action->target;
        int there = root_exists(w->root, target),
            r = there < 0 ? there : root_make_dirs(w->root, target, 0755);
        _cleanup_(close_fd) int fd = r < 0 ? -1 : root_open(w->root, target, O_RDONLY | O_DIRECTORY);
        if (r >= 0)
                r = fd < 0 ? fd : there ? 0 : attributes_copy(source, fd);
        return r < 0 ? work_fail(w, r, CAUSE_MOUNT, "%s cannot be made: %m", target) : 0;
}

/* 1: mounted, 0: not mounted; another mount is an error. */
static int bind_is_there(Work *w, int source) {
        const char *target = w->action->target;
        Place from = {}, to = {};
        _cleanup_(close_fd) int fd = open_directory(w, target);
        if (fd < 0)
                return fd;
        int r = place_look(source, &from);
        THEN(r, place_look(fd, &to));
        if (r < 0)
                return work_fail(w, r, CAUSE_MOUNT, "%s cannot be examined: %m", target);
        if (to.mount && !place_same(from, to))
                return work_fail(
                        w, -EBUSY, CAUSE_MOUNT,
                        "another file system is mounted on %s (findmnt shows it); unmount it, or name %s",
                        target,
                        w->action->storage.volume ? "another target"
                                                  : "the directory in "
                                                    "spec.instance.localStorage.disabledMounts");
        return to.mount;
}

int bind_work(Work *w) {
        const char *from = w->action->storage.source, *target = w->action->target;
        _cleanup_(close_fd) int source = open_directory(w, from);
        int r = source < 0 ? source : bind_target(w, source);
        THEN(r, bind_is_there(w, source));
        if (r != 0)
                return r < 0 ? r : 0;
        r = mount_bind(w, from, target);
        THEN(r, bind_is_there(w, source));
        return r != 0 ? r
                      : work_fail(w, -EBUSY, CAUSE_MOUNT,
                                  "%s was bind-mounted, but %s does not show it; see findmnt", from, target);
}
