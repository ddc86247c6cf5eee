/* SPDX-License-Identifier: Apache-2.0
 * A device and a directory → a mount, through libmount; a directory and another → a bind, through mount(2)
 * itself. libmount comes by dlopen, since most nodes have no disk to mount. Its helpers (mount.xfs) and its
 * own table below /run stay out of it: nothing of ours needs them. */
#include "apply/mounts.h"

#include "base/library.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Libmount {
        __typeof__(&mnt_new_context) new_context;
        __typeof__(&mnt_free_context) free_context;
        __typeof__(&mnt_context_set_source) set_source;
        __typeof__(&mnt_context_set_target) set_target;
        __typeof__(&mnt_context_set_fstype) set_fstype;
        __typeof__(&mnt_context_set_options) set_options;
        __typeof__(&mnt_context_disable_helpers) disable_helpers;
        __typeof__(&mnt_context_disable_mtab) disable_mtab;
        __typeof__(&mnt_context_enable_rwonly_mount) only_writable;
        __typeof__(&mnt_context_mount) mount;
        __typeof__(&mnt_context_get_syscall_errno) get_errno;
        __typeof__(&mnt_context_get_excode) get_excode;
        __typeof__(&mnt_new_table) new_table;
        __typeof__(&mnt_unref_table) unref_table;
        __typeof__(&mnt_table_parse_file) parse_file;
        __typeof__(&mnt_new_iter) new_iter;
        __typeof__(&mnt_free_iter) free_iter;
        __typeof__(&mnt_table_next_fs) next_fs;
        __typeof__(&mnt_fs_get_target) get_target;
} Libmount;

static const Symbol symbols[] = {
        { "mnt_new_context",               offsetof(Libmount, new_context)     },
        { "mnt_free_context",              offsetof(Libmount, free_context)    },
        { "mnt_context_set_source",        offsetof(Libmount, set_source)      },
        { "mnt_context_set_target",        offsetof(Libmount, set_target)      },
        { "mnt_context_set_fstype",        offsetof(Libmount, set_fstype)      },
        { "mnt_context_set_options",       offsetof(Libmount, set_options)     },
        { "mnt_context_disable_helpers",   offsetof(Libmount, disable_helpers) },
        { "mnt_context_disable_mtab",      offsetof(Libmount, disable_mtab)    },
        { "mnt_context_enable_rwonly_mount", offsetof(Libmount, only_writable) },
        { "mnt_context_mount",             offsetof(Libmount, mount)           },
        { "mnt_context_get_syscall_errno", offsetof(Libmount, get_errno)       },
        { "mnt_context_get_excode",        offsetof(Libmount, get_excode)      },
        { "mnt_new_table",                 offsetof(Libmount, new_table)       },
        { "mnt_unref_table",               offsetof(Libmount, unref_table)     },
        { "mnt_table_parse_file",          offsetof(Libmount, parse_file)      },
        { "mnt_new_iter",                  offsetof(Libmount, new_iter)        },
        { "mnt_free_iter",                 offsetof(Libmount, free_iter)       },
        { "mnt_table_next_fs",             offsetof(Libmount, next_fs)         },
        { "mnt_fs_get_target",             offsetof(Libmount, get_target)      },
};

static Libmount mnt;
static char *load_error;          /* NULL: it is loaded */
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static void libmount_open(void) {
        (void)!library_load("libmount.so.1", symbols, ARRAY_SIZE(symbols), &mnt, &load_error);
}

static int libmount_load(Work *w) {
        pthread_once(&load_once, libmount_open);
        return load_error
                       ? work_fail(
                                 w, -ELIBACC, CAUSE_STORAGE_TOOL,
                                 "libmount.so.1 cannot be loaded: %s; the image needs the package libmount1",
                                 load_error)
                       : 0;
}

/* ---- where a directory is ---- */

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
        _cleanup_(freep) char *link = xasprintf("/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path);
        return n < 0 || n == sizeof path ? NULL : xstrndup(path, (size_t)n);
}

static int path_resolve(Work *w, const char *path, char **ret) {
        int fd = root_open(w->root, path, O_PATH);
        if (fd < 0)
                return work_fail(w, fd, CAUSE_MOUNT, "%s cannot be opened: %s", path, strerror(-fd));
        *ret = place_path(fd);
        close(fd);
        return *ret ? 0
                    : work_fail(w, -ENOSYS, CAUSE_MOUNT, "cannot tell where %s leads: is /proc mounted?",
                                path);
}

/* ---- mounts ---- */

/* only_writable: a device that cannot be written would be mounted read-only otherwise, and containerd would
 * fail instead of us. */
static int context_fill(struct libmnt_context *c, const char *source, const char *target, const char *type,
                        const char *options) {
        int r = mnt.disable_helpers(c, 1);
        if (r == 0)
                r = mnt.disable_mtab(c, 1);
        if (r == 0)
                r = mnt.only_writable(c, 1);
        if (r == 0)
                r = mnt.set_source(c, source);
        if (r == 0)
                r = mnt.set_target(c, target);
        if (r == 0)
                r = mnt.set_fstype(c, type);
        return r == 0 ? mnt.set_options(c, options) : r;
}

int mount_device(Work *w, const char *device, const char *target, const char *type, const char *options) {
        _cleanup_(freep) char *source = NULL, *where = NULL;
        char words[512] = "";
        int r = libmount_load(w);
        if (r >= 0)
                r = path_resolve(w, device, &source);
        if (r >= 0)
                r = path_resolve(w, target, &where);
        if (r < 0)
                return r;
        work_at(w, "mounting %s on %s", device, target);
        struct libmnt_context *c = mnt.new_context();
        if (!c)
                return work_fail(w, -ENOMEM, CAUSE_MOUNT, "%s cannot be mounted: libmount has no memory",
                                 device);
        r = context_fill(c, source, where, type, options);
        if (r == 0)
                r = mnt.mount(c);
        if (r != 0) {
                int e = r < 0 ? -r : mnt.get_errno(c);
                (void)mnt.get_excode(c, r, words, sizeof words);
                r = work_fail(w, -(e ?: EIO), CAUSE_MOUNT,
                              "%s (%s) cannot be mounted on %s: %s; dmesg may say more", device, type, target,
                              *words ? words : strerror(e ?: EIO));
        }
        mnt.free_context(c);
        return r;
}

int mount_bind(Work *w, const char *source, const char *target) {
        _cleanup_(freep) char *from = NULL, *to = NULL;
        int r = path_resolve(w, source, &from);
        if (r >= 0)
                r = path_resolve(w, target, &to);
        if (r < 0)
                return r;
        if (mount(from, to, "none", MS_BIND, NULL) < 0)
                return work_fail(w, -errno, CAUSE_MOUNT, "%s cannot be bound over %s: %s", source, target,
                                 strerror(errno));
        if (mount("none", to, "none", MS_REC | MS_SHARED, NULL) < 0) {
                r = work_fail(
                        w, -errno, CAUSE_MOUNT,
                        "%s cannot be made a shared mount, so pods would not see each other's volumes: %s",
                        target, strerror(errno));
                umount2(to, MNT_DETACH | UMOUNT_NOFOLLOW);
        }
        return r;
}

static bool mount_is_below(const char *path, const char *directory) {
        size_t n = strlen(directory);
        return strncmp(path, directory, n) == 0 && path[n] == '/' && path[n + 1];
}

int mount_below(Work *w, const char *path, char **ret) {
        struct libmnt_fs *fs = NULL;
        int r = libmount_load(w);
        if (r < 0)
                return r;
        struct libmnt_table *table = mnt.new_table();
        struct libmnt_iter *i = mnt.new_iter(MNT_ITER_FORWARD);
        r = table && i ? mnt.parse_file(table, "/proc/self/mountinfo") : -ENOMEM;
        if (r != 0)
                r = work_fail(w, r < 0 ? r : -EIO, CAUSE_MOUNT, "/proc/self/mountinfo cannot be read: %s",
                              strerror(r < 0 ? -r : EIO));
        while (r == 0 && mnt.next_fs(table, i, &fs) == 0)
                if (mount_is_below(mnt.get_target(fs), path)) {
                        *ret = xstrdup(mnt.get_target(fs));
                        r = 1;
                }
        mnt.free_iter(i);
        mnt.unref_table(table);
        return r;
}
