/* SPDX-License-Identifier: Apache-2.0
 * A mount point or a source of moved files → Directory. Follows links, as mount(2) does. */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The directory at path, or its nearest existing parent. */
static int open_nearest_directory(const Root *root, const char *path) {
        _free_ char *part = xstrdup(path);
        for (;;) {
                int fd = root_open(root, part, O_PATH | O_DIRECTORY);
                char *slash = strrchr(part, '/');
                if ((fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP) || !slash || !part[1])
                        return fd;
                slash[slash == part] = 0;
        }
}

static char *descriptor_path(int fd) {
        char target[4096];
        _free_ char *link = xasprintf("/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target);
        return xstrndup(target, (size_t)MAX(n, 0));
}

/* The path of a descriptor below root without links, as mountinfo has it. */
static char *path_below_root(const Root *root, int fd) {
        _cleanup_(close_fd) int top = root_open(root, "/", O_PATH | O_DIRECTORY);
        if (top < 0)
                return xstrdup("/");
        _free_ char *above = descriptor_path(top), *name = descriptor_path(fd);
        const char *rest = startswith(name, above) ? name + strlen(above) : name;
        return xasprintf("%s%s", *rest == '/' ? "" : "/", rest);
}

/* Not for data. */
static bool is_virtual(const char *type) {
        return ONE_OF(type, "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "securityfs",
                      "debugfs", "tracefs", "configfs", "pstore", "bpf", "efivarfs", "mqueue", "hugetlbfs",
                      "binfmt_misc", "fusectl", "nsfs");
}

static int look_around(const Root *root, const Storage *s, Directory *d) {
        _cleanup_(close_fd) int fd = open_nearest_directory(root, d->path);
        if (fd < 0)
                return fd;
        _free_ char *real = path_below_root(root, fd);
        const Mount *m = storage_mount_of(s, real);
        d->read_only = m && m->read_only;
        d->on = m && is_virtual(m->type) ? xstrdup(m->type) : NULL;
        d->real = d->kind == DIRECTORY_THERE ? TAKE_PTR(real) : NULL;
        return 0;
}

/* The size of all files below, without mounts. Ignores files that vanish meanwhile, and paths that are too
 * long: containers may nest directories without limit. */
static int count_bytes(int fd, uint64_t *ret) {
        _free_ char *path = xasprintf("/proc/self/fd/%d", fd);
        uint64_t sum = 0;
        int r = 0;
        FTS *tree = fts_open((char *[]){ path, NULL }, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_XDEV | FTS_NOCHDIR,
                             NULL);
        if (!tree)
                return -errno;
        for (FTSENT *e; errno = 0, r == 0 && (e = fts_read(tree));)
                if (e->fts_info != FTS_DNR && e->fts_info != FTS_ERR && e->fts_info != FTS_NS)
                        sum += e->fts_info != FTS_DP ? (uint64_t)e->fts_statp->st_blocks * 512 : 0;
                else if (e->fts_errno != ENOENT && e->fts_errno != ENAMETOOLONG)
                        r = -e->fts_errno;
        r = r < 0 ? r : -errno;
        fts_close(tree);
        *ret = sum;
        return r;
}

static int look_inside(const Root *root, uint64_t from, Directory *d) {
        _strv_ char **names = NULL;
        struct statvfs fs;
        int r = root_list(root, d->path, &names);
        if (r < 0)
                return r;
        d->empty = !names;
        _cleanup_(close_fd) int fd = root_open(root, d->path, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return fd;
        if (fstatvfs(fd, &fs) < 0)
                return -errno;
        if (root_is_host(root))
                d->size = (uint64_t)fs.f_blocks * fs.f_frsize;
        d->used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
        return names && d->used >= from ? count_bytes(fd, &d->bytes) : 0;
}

/* The owner of / counts as root: below another root a user may own all. ACLs show in the group bits
 * (acl(5)). */
static char *why_foreign(int fd, const struct stat *top, const struct stat *st) {
        if (st->st_uid != 0 && st->st_uid != top->st_uid)
                return xasprintf("belongs to user %u", (unsigned)st->st_uid);
        _free_ char *path = xasprintf("/proc/self/fd/%d", fd);
        bool acl = st->st_mode & S_IWGRP && getxattr(path, "system.posix_acl_access", NULL, 0) > 0,
             group = st->st_mode & S_IWGRP && st->st_gid != 0 && st->st_gid != top->st_gid;
        return acl || group || st->st_mode & S_IWOTH
                       ? xasprintf("is writable by users other than root (mode %04o%s)",
                                   (unsigned)st->st_mode & 07777, acl ? "; getfacl shows who" : "")
                       : NULL;
}

/* Goes from directory `at` to the next component of *way, through links. */
static char *step_on(const Root *root, char *at, char **way) {
        _free_ char *rest = TAKE_PTR(*way), *from = at, *target = NULL;
        const char *name = rest + strspn(rest, "/");
        size_t n = strcspn(name, "/");
        _free_ char *next = xasprintf("%s/%.*s", from, (int)n, name);
        *way = xstrdup(name + n);
        if (n == 2 && startswith(name, "..")) {
                *(strrchr(from, '/') ?: from) = 0;
                return TAKE_PTR(from);
        }
        if (n == 0 || (n == 1 && *name == '.'))
                return TAKE_PTR(from);
        if (root_read_link(root, next, &target) < 0)
                return TAKE_PTR(next);
        free(*way);
        *way = xasprintf("%s%s", target, name + n);
        return *target == '/' ? xstrdup("") : TAKE_PTR(from);
}

/* Root will make missing components. */
static void look_at_way(const Root *root, Directory *d) {
        _free_ char *at = xstrdup(""), *way = xstrdup(d->path);
        struct stat top, st;
        for (unsigned i = 0; i < 256 && !d->foreign; i++) {
                _cleanup_(close_fd) int fd = root_open(root, *at ? at : "/", O_PATH | O_DIRECTORY);
                if (fd < 0 || fstat(fd, &st) < 0)
                        return;
                top = i == 0 ? st : top;
                _free_ char *why = why_foreign(fd, &top, &st);
                d->foreign = why ? xasprintf("%s %s", *at ? at : "/", why) : NULL;
                d->foreign_itself = !way[strspn(way, "/")];
                if (d->foreign_itself)
                        return;
                at = step_on(root, at, &way);
        }
}

static int directory_read(const Root *root, const Storage *s, uint64_t from, Directory *d) {
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(root, d->path, O_PATH);

        if (fd == -ENOENT)
                fd = root_open(root, d->path, O_PATH | O_NOFOLLOW);     /* a dead link */
        if (fd >= 0) {
                if (fstat(fd, &st) < 0)
                        return -errno;
                d->kind = S_ISDIR(st.st_mode) ? DIRECTORY_THERE : DIRECTORY_NO_DIRECTORY;
                d->dead = S_ISLNK(st.st_mode) ? root_dead_link(root, d->path) : NULL;
        } else if (fd == -ENOTDIR || fd == -ELOOP)
                d->kind = DIRECTORY_NO_DIRECTORY;
        else if (fd != -ENOENT)
                return fd;
        look_at_way(root, d);
        int r = look_around(root, s, d);
        return r >= 0 && d->kind == DIRECTORY_THERE ? look_inside(root, from, d) : r;
}

/* statfs(2) below another root would describe this machine. */
void detect_places(const Root *root, const Config *config, Host *h) {
        struct statvfs fs;
        _cleanup_(storage_places_done) StoragePlaces places = storage_binds_of(config, h->containerd_version);
        const char *path = places.all[PLACE_KUBELET].path;
        bool here = root_is_host(root) && *path == '/';
        _cleanup_(close_fd) int fd = here ? open_nearest_directory(root, path) : -ENOENT;
        for (const StorageBind *b = places.all; b < places.all + places.n; b++) {
                char *dead = *b->path == '/' ? root_dead_link(root, b->path) : NULL;
                if (dead)
                        strv_push(&h->dead_links, dead);
        }
        if (fd >= 0 && fstatvfs(fd, &fs) == 0)
                h->kubelet_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
}

int detect_directory(const Root *root, const char *path, const Storage *s, uint64_t from, Directory *ret,
                     Diag *diag) {
        Directory d = { .path = xstrdup(path), .empty = true };
        int r = directory_read(root, s, from, &d);
        if (r < 0) {
                FREE_ALL(d.path, d.real, d.on, d.dead, d.foreign);
                return r == -EACCES || r == -EPERM
                               ? r
                               : fact_error(diag, r, path, "its content is not known");
        }
        *ret = d;
        return 0;
}
