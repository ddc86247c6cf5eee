/* SPDX-License-Identifier: Apache-2.0
 * Mounts devices by libmount, and binds by mount(2). libmount is loaded by dlopen, since most nodes mount no
 * disk. Its helpers (mount.xfs) and its table below /run are not needed. */
#include "apply/storage.h"

#include "base/str.h"
#include "disk/libmount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int need_libmount(Work *w) {
        const char *why = libmount_load();
        return why ? work_fail(w, -ELIBACC, CAUSE_STORAGE_TOOL,
                               "libmount.so.1, which mounts disks, cannot be loaded: %s", why)
                   : 0;
}

int place_look(int fd, Place *ret) {
        struct statx st;
        if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st) < 0)
                return -errno;
        *ret = (Place){ .major = st.stx_dev_major, .minor = st.stx_dev_minor, .inode = st.stx_ino,
                        .mount = st.stx_attributes & STATX_ATTR_MOUNT_ROOT };
        return 0;
}

bool place_same(Place a, Place b) {
        return a.major == b.major && a.minor == b.minor && a.inode == b.inode;
}

char *place_path(int fd) {
        char path[4096];
        _free_ char *link = xasprintf("/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path);
        return n < 0 || n == sizeof path ? NULL : xstrndup(path, (size_t)n);
}

static int path_resolve(Work *w, const char *path, char **ret) {
        int fd = root_open(w->root, path, O_PATH);
        if (fd < 0)
                return work_fail(w, fd, CAUSE_MOUNT, "%s cannot be opened: %m", path);
        *ret = place_path(fd);
        close(fd);
        return *ret ? 0
                    : work_fail(w, -ENOSYS, CAUSE_MOUNT, "nodestrap cannot resolve the path of %s; check "
                                                         "that /proc is mounted",
                                path);
}

/* only_writable: else a read-only device would be mounted, and containerd would fail later. */
static int context_fill(struct libmnt_context *c, const char *source, const char *target, const char *type,
                        const char *options) {
        int r = libmount.disable_helpers(c, 1) ?: libmount.disable_mtab(c, 1) ?: libmount.only_writable(c, 1);
        r = r ?: libmount.set_source(c, source) ?: libmount.set_target(c, target);
        return r ?: libmount.set_fstype(c, type) ?: libmount.set_options(c, options);
}

int mount_device(Work *w, const char *device, const char *target, const char *type, const char *options) {
        _free_ char *source = NULL, *where = NULL;
        char words[512] = "";
        int r = need_libmount(w);
        THEN(r, path_resolve(w, device, &source));
        THEN(r, path_resolve(w, target, &where));
        if (r < 0)
                return r;
        work_at(w, "mounting %s on %s", device, target);
        struct libmnt_context *c = libmount.new_context();
        if (!c)
                return work_fail(w, -ENOMEM, CAUSE_MOUNT, "%s cannot be mounted: libmount is out of memory",
                                 device);
        r = context_fill(c, source, where, type, options) ?: libmount.mount(c);
        if (r != 0) {
                int e = r < 0 ? -r : libmount.get_errno(c);
                (void)libmount.get_excode(c, r, words, sizeof words);
                r = work_fail(w, -(e ?: EIO), CAUSE_MOUNT, "%s (%s) cannot be mounted on %s: %s; see dmesg",
                              device, type, target, *words ? words : strerror(e ?: EIO));
        }
        libmount.free_context(c);
        return r;
}

int mount_bind(Work *w, const char *source, const char *target) {
        _free_ char *from = NULL, *to = NULL;
        int r = path_resolve(w, source, &from);
        THEN(r, path_resolve(w, target, &to));
        if (r < 0)
                return r;
        if (mount(from, to, "none", MS_BIND, NULL) < 0)
                return work_fail(w, -errno, CAUSE_MOUNT, "%s cannot be bind-mounted over %s: %m", source,
                                 target);
        if (mount("none", to, "none", MS_REC | MS_SHARED, NULL) < 0) {
                r = work_fail(
                        w, -errno, CAUSE_MOUNT,
                        "%s cannot become a shared mount: %m; pods would not see volumes that CSI drivers "
                        "mount",
                        target);
                umount2(to, MNT_DETACH | UMOUNT_NOFOLLOW);
        }
        return r;
}

int mount_below(Work *w, const char *path, char **ret) {
        struct libmnt_fs *fs = NULL;
        size_t n = strlen(path);
        int r = need_libmount(w);
        if (r < 0)
                return r;
        struct libmnt_table *table = libmount.new_table();
        struct libmnt_iter *i = libmount.new_iter(MNT_ITER_FORWARD);
        r = table && i ? libmount.parse_file(table, "/proc/self/mountinfo") : -ENOMEM;
        if (r != 0)
                r = work_fail(w, r < 0 ? r : -EIO, CAUSE_MOUNT, "/proc/self/mountinfo cannot be read: %s",
                              strerror(r < 0 ? -r : EIO));
        while (r == 0 && libmount.next_fs(table, i, &fs) == 0)
                if (strncmp(libmount.get_target(fs), path, n) == 0 && libmount.get_target(fs)[n] == '/' &&
                    libmount.get_target(fs)[n + 1]) {
                        *ret = xstrdup(libmount.get_target(fs));
                        r = 1;
                }
        libmount.free_iter(i);
        libmount.unref_table(table);
        return r;
}
