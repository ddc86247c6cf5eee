/* SPDX-License-Identifier: Apache-2.0
 * Paths → files below one directory. No link leads a read out of it (openat2(2), RESOLVE_IN_ROOT). A write
 * goes to a temporary file beside the target, which is synced and renamed. */
#include "base/root.h"

#include "base/paths.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct Root { int fd; char *path; bool host; };

int root_new(const char *path, Root **ret) {
        _cleanup_(root_freep) Root *root = NULL;
        struct stat here, host;
        _cleanup_(close_fd) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &here) < 0 || stat("/", &host) < 0)
                return -errno;
        root = xcalloc(1, sizeof *root);
        *root = (Root){ .fd = TAKE_FD(fd),
                        .path = xstrdup(path),
                        .host = here.st_dev == host.st_dev && here.st_ino == host.st_ino };
        /* Fails here, and only once. A seccomp filter that does not know the call answers EPERM. */
        _cleanup_(close_fd) int probe = root_open(root, ".", O_PATH);
        if (probe >= 0)
                *ret = TAKE_PTR(root);
        return probe == -EPERM ? -ENOSYS : MIN(probe, 0);
}

Root *root_free(Root *r) {
        if (!r)
                return NULL;
        close(r->fd);
        FREE_ALL(r->path, r);
        return NULL;
}

bool root_is_host(const Root *r) {
        return r->host;
}

const char *root_path(const Root *r) {
        return r->path;
}

char *root_absolute(const Root *r, const char *path) {
        if (path[0] == '/' || !r->host)
                return xasprintf("%s%s", path[0] == '/' ? "" : "/", path);
        _free_ char *here = getcwd(NULL, 0);
        return here ? xasprintf("%s/%s", streq(here, "/") ? "" : here, path) : NULL;
}

/* The owner of such a directory could redirect root writes and removals with a link. */
int root_check_run(const Root *r, struct stat *ret) {
        _cleanup_(close_fd) int fd = root_open(r, RUN_DIR, O_PATH | O_NOFOLLOW);
        return fd < 0 || fstat(fd, ret) < 0 || root_owner(r) != 0 ||
                               (S_ISDIR(ret->st_mode) && ret->st_uid == 0 &&
                                !(ret->st_mode & (S_IWGRP | S_IWOTH)))
                       ? 0
                       : -EPERM;
}

static int check_change(const Root *r, const char *path) {
        struct stat st;
        return startswith(path, RUN_DIR "/") ? root_check_run(r, &st) : 0;
}

int root_open(const Root *r, const char *path, int flags) {
        bool changes = !(flags & O_PATH) && flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
        int refused = changes ? check_change(r, path) : 0;
        if (refused < 0)
                return refused;
        struct open_how how = {
                .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                .mode = flags & O_CREAT ? 0600 : 0,
                .resolve = RESOLVE_IN_ROOT,
        };
        long fd = -1;
        /* A mount or rename anywhere can break paths with ".." (links of /sys): openat2(2). */
        for (unsigned n = 0; fd < 0 && n < 100000 && (n == 0 || errno == EAGAIN); n++)
                fd = syscall(SYS_openat2, r->fd, path, &how, sizeof how);
        return fd < 0 ? -errno : (int)fd;
}

int fd_read(int fd, size_t limit, char **ret, size_t *ret_size) {
        _free_ char *data = NULL;
        size_t size = 0, room = 0;

        for (;;) {                      /* files of /proc and /sys have size 0 or 4096 */
                if (room - size < 2) {
                        room = room ? 2 * room : 4096;
                        data = xrealloc(data, room, 1);
                }
                ssize_t n = read(fd, data + size, room - size - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                int r = n < 0 ? -errno : 0;
                size += (size_t)MAX(n, 0);
                if (r < 0 || size > limit)
                        return r < 0 ? r : -EFBIG;
                if (n <= 0)
                        break;
        }
        data[size] = 0;
        if (ret_size)
                *ret_size = size;
        *ret = TAKE_PTR(data);
        return 0;
}

int root_read(const Root *r, const char *path, size_t limit, char **ret, size_t *ret_size) {
        _cleanup_(close_fd) int fd = root_open(r, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? fd : fd_read(fd, limit, ret, ret_size);
}

int root_read_line(const Root *r, const char *path, char **ret) {
        _free_ char *data = NULL;
        int result = root_read(r, path, 64 << 10, &data, NULL);
        if (result < 0)
                return result;
        data[strcspn(data, "\n")] = 0;
        *ret = str_strip(data);
        return 0;
}

int root_read_u64(const Root *r, const char *path, uint64_t *ret) {
        _free_ char *line = NULL;
        int result = root_read_line(r, path, &line);
        return result < 0 ? result : parse_u64(line, ret);
}

int root_boot_id(const Root *r, char **ret) {
        return root_read_line(r, "/proc/sys/kernel/random/boot_id", ret);
}

int root_list(const Root *r, const char *path, char ***ret) {
        _strv_ char **names = NULL;
        size_t n = 0;
        _cleanup_(close_fd) int fd = root_open(r, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        DIR *dir = fdopendir(fd);
        if (!dir)
                return -errno;
        (void)TAKE_FD(fd);
        for (const struct dirent *e; errno = 0, (e = readdir(dir));)
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        strv_push_at(&names, n++, xstrdup(e->d_name));
        int result = -errno;            /* half a list would look complete */
        closedir(dir);
        strv_sort(names);
        if (result == 0)
                *ret = TAKE_PTR(names);
        return result;
}

int root_read_link(const Root *r, const char *path, char **ret) {
        char target[4096];
        _cleanup_(close_fd) int fd = root_open(r, path, O_PATH | O_NOFOLLOW);
        if (fd < 0)
                return fd;
        ssize_t n = readlinkat(fd, "", target, sizeof target - 1);
        if (n < 0)
                return errno == ENOENT ? -EINVAL : -errno;      /* not a link */
        *ret = xstrndup(target, (size_t)n);
        return 0;
}

int root_link_name(const Root *r, const char *path, char **ret) {
        _free_ char *target = NULL;
        int e = root_read_link(r, path, &target);
        if (target)
                *ret = xstrdup(path_last(target));
        return e;
}

char *root_dead_link(const Root *r, const char *path) {
        const char *end = path;
        int found = 0;
        while (found >= 0 && *end) {
                end = strchrnul(end + 1, '/');
                _free_ char *part = xstrndup(path, (size_t)(end - path)), *target = NULL;
                found = root_exists(r, part) == 0 ? root_read_link(r, part, &target) : 0;
                if (target)
                        return xasprintf("%s is a link to %s, which does not exist", part, target);
        }
        return NULL;
}

int root_exists(const Root *r, const char *path) {
        _cleanup_(close_fd) int fd = root_open(r, path, O_PATH);
        if (fd == -ENOENT || fd == -ENOTDIR)
                return 0;
        return fd < 0 ? fd : 1;
}

int root_executable(const Root *r, const char *path) {
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(r, path, O_PATH);
        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
        return fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

char **program_paths(const char *name) {
        static const char folders[][16] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                            "/usr/bin",        "/sbin",          "/bin" };
        char **paths = NULL;
        if (*name == '/')
                strv_add(&paths, name);
        for (size_t i = 0; i < ARRAY_SIZE(folders) && *name != '/'; i++)
                strv_push(&paths, xasprintf("%s/%s", folders[i], name));
        return paths;
}

int root_program(const Root *r, const char *name) {
        _strv_ char **paths = program_paths(name);
        int result = 0;
        for (char **path = paths; *path && result == 0; path++)
                result = root_executable(r, *path);
        return result;
}

/* Opens the parent directory of path; make_mode (0: none) creates missing ones. */
static int open_parent(const Root *r, const char *path, mode_t make_mode, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        if (path[0] != '/' || !slash[1])
                return -EINVAL;
        int refused = check_change(r, path);
        if (refused < 0)
                return refused;
        _free_ char *parent = slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
        int fd = root_open(r, parent, O_RDONLY | O_DIRECTORY);
        if (fd == -ENOENT && make_mode) {
                int result = root_make_dirs(r, parent, make_mode);
                if (result < 0)
                        return result;
                fd = root_open(r, parent, O_RDONLY | O_DIRECTORY);
        }
        if (fd >= 0)
                *ret_name = slash + 1;
        return fd;
}

/* 0: path is a directory. */
static int find_directory(const Root *r, const char *path) {
        _cleanup_(close_fd) int fd = root_open(r, path, O_PATH | O_DIRECTORY);
        return MIN(fd, 0);
}

int root_write_value(const Root *r, const char *path, const char *value) {
        size_t size = strlen(value);
        _cleanup_(close_fd) int fd = root_open(r, path, O_WRONLY | O_TRUNC | O_NOCTTY);
        if (fd < 0)
                return fd;
        ssize_t n = write(fd, value, size);
        if (n < 0)
                return -errno;
        return (size_t)n < size ? -EIO : 0;
}

int root_make_dirs(const Root *r, const char *path, mode_t mode) {
        _free_ char *plain = xstrdup(path);
        const char *name = NULL;
        for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
                plain[n - 1] = 0;
        int result = find_directory(r, plain);
        if (result != -ENOENT)
                return result;
        _cleanup_(close_fd) int parent = open_parent(r, plain, mode, &name);
        if (parent < 0)
                return parent;
        result = mkdirat(parent, name, mode) < 0 ? -errno : 1;
        /* another process was faster, or this is a dead link */
        return result == -EEXIST ? find_directory(r, plain) : result;
}

static int remove_entry(const Root *r, const char *path, int flags) {
        const char *name = NULL;
        _cleanup_(close_fd) int parent = open_parent(r, path, 0, &name);
        if (parent < 0)
                return parent == -ENOENT || parent == -ENOTDIR ? 0 : parent;
        if (unlinkat(parent, name, flags) == 0)
                return 1;
        return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ? 0 : -errno;
}

int root_remove(const Root *r, const char *path) {
        return remove_entry(r, path, 0);
}

int root_remove_dir(const Root *r, const char *path) {
        return remove_entry(r, path, AT_REMOVEDIR);
}

static bool link_leads(int dir_fd, const char *name, const char *target) {
        size_t size = strlen(target);
        _free_ char *there = xcalloc(size + 1, 1);
        ssize_t n = readlinkat(dir_fd, name, there, size + 1);
        return n >= 0 && (size_t)n == size && memcmp(there, target, size) == 0;
}

static char *temporary_name(const char *name) {
        uint64_t salt = 0;
        if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) < 0)
                salt = (uint64_t)getpid();      /* early boot without entropy; uniqueness is enough */
        return xasprintf(".%s.%016llx.tmp", name, (unsigned long long)salt);
}

int root_link(const Root *r, const char *path, const char *target) {
        const char *name = NULL;
        _cleanup_(close_fd) int parent = open_parent(r, path, 0755, &name);
        if (parent < 0)
                return parent;
        if (link_leads(parent, name, target))
                return 0;
        _free_ char *temporary = temporary_name(name);
        if (symlinkat(target, parent, temporary) < 0)
                return -errno;
        int result = renameat(parent, temporary, parent, name) < 0 ? -errno : 1;
        if (result < 0)
                unlinkat(parent, temporary, 0);
        return result;
}

int root_compare_link(const Root *r, const char *path, const char *target) {
        const char *name = NULL;
        struct stat st;
        _cleanup_(close_fd) int parent = open_parent(r, path, 0, &name);
        if (parent < 0)
                return parent == -ENOENT ? ROOT_MISSING : parent;
        if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? ROOT_MISSING : -errno;
        if (link_leads(parent, name, target))
                return 0;
        return S_ISLNK(st.st_mode) ? ROOT_CONTENT : ROOT_KIND;
}

static int compare_bytes(int fd, const struct stat *st, const void *data, size_t size) {
        if ((size_t)st->st_size != size)
                return ROOT_CONTENT;
        _free_ char *there = xcalloc(size + 1, 1);
        ssize_t n = pread(fd, there, size + 1, 0);
        return n < 0 ? -errno : (size_t)n == size && memcmp(there, data, size) == 0 ? 0 : ROOT_CONTENT;
}

static int compare_at(int dir_fd, const char *name, const void *data, size_t size, mode_t mode, uid_t owner) {
        struct stat st;
        _cleanup_(close_fd) int fd =
                openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 && (errno == ELOOP || errno == ENXIO))
                return ROOT_KIND;
        if (fd < 0 || fstat(fd, &st) < 0)
                return errno == ENOENT ? ROOT_MISSING : -errno;
        if (S_ISDIR(st.st_mode))        /* fails before other files are renamed */
                return -EISDIR;
        if (!S_ISREG(st.st_mode))
                return ROOT_KIND;
        int result = compare_bytes(fd, &st, data, size);
        if (result >= 0)
                result |= ((st.st_mode & 07777) == mode ? 0 : ROOT_MODE) |
                          (owner == ROOT_ANYBODY || st.st_uid == owner ? 0 : ROOT_OWNER);
        return result;
}

int root_compare(const Root *r, const char *path, const void *data, size_t size, mode_t mode, uid_t owner) {
        const char *name = NULL;
        _cleanup_(close_fd) int parent = open_parent(r, path, 0, &name);
        if (parent < 0)
                return parent == -ENOENT ? ROOT_MISSING : parent;
        return compare_at(parent, name, data, size, mode, owner);
}

uid_t root_owner(const Root *r) {
        return r->host || geteuid() == 0 ? 0 : ROOT_ANYBODY;
}

static int write_all(int fd, const void *data, size_t size) {
        for (const char *p = data; size > 0;) {
                ssize_t n = write(fd, p, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                size -= (size_t)n;
        }
        return 0;
}

int root_tmp_stage(const Root *r, const char *path, const void *data, size_t size, mode_t mode, uid_t owner,
                   RootTmp *ret) {
        const char *name = NULL;

        *ret = (RootTmp){ .dir_fd = -1, .fd = -1 };
        int dir = open_parent(r, path, 0755, &name);
        if (dir < 0)
                return dir;
        int result = compare_at(dir, name, data, size, mode, owner);
        if (result <= 0) {
                close(dir);
                return result;
        }
        *ret = (RootTmp){ .dir_fd = dir, .fd = -1, .name = xstrdup(name), .temporary = temporary_name(name) };
        ret->fd = openat(dir, ret->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        result = ret->fd < 0 ? -errno : write_all(ret->fd, data, size);
        if (result == 0 && fchmod(ret->fd, mode) < 0)
                result = -errno;
        if (result < 0) {
                root_tmp_release(ret);
                return result;
        }
        /* Starts the write-back, so that the sync waits less. */
        (void)sync_file_range(ret->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        return 1;
}

int root_tmp_sync(RootTmp *t) {
        return t->fd >= 0 && fsync(t->fd) < 0 ? -errno : 0;
}

int root_tmp_publish(RootTmp *t) {
        if (t->fd < 0)
                return 0;
        if (renameat(t->dir_fd, t->temporary, t->dir_fd, t->name) < 0)
                return -errno;
        t->temporary[0] = 0;
        return 1;
}

void root_tmp_release(RootTmp *t) {
        if (t->temporary && t->temporary[0] && t->fd >= 0)
                unlinkat(t->dir_fd, t->temporary, 0);
        close_fd(&t->fd);
        close_fd(&t->dir_fd);
        FREE_ALL(t->name, t->temporary);
        *t = (RootTmp){ .dir_fd = -1, .fd = -1 };
}

static bool is_temporary_of(const char *entry, const char *name) {
        size_t n = strlen(name);
        return entry[0] == '.' && strncmp(entry + 1, name, n) == 0 && entry[n + 1] == '.' &&
               strspn(entry + n + 2, "0123456789abcdef") == 16 && streq(entry + n + 18, ".tmp");
}

int root_tmp_sweep(const Root *r, const char *path) {
        _strv_ char **names = NULL;
        const char *slash = strrchr(path, '/');
        int removed = 0;
        if (!slash || !slash[1])
                return -EINVAL;
        _free_ char *dir = slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
        int result = root_list(r, dir, &names);
        if (result < 0)
                return result == -ENOENT || result == -ENOTDIR ? 0 : result;
        STRV_FOREACH(name, names)
                if (is_temporary_of(*name, slash + 1)) {
                        _free_ char *left =
                                xasprintf("%.*s%s", (int)(slash - path + 1), path, *name);
                        removed += root_remove(r, left) > 0;
                }
        return removed;
}

static int replace(const Root *r, const char *path, const void *data, size_t size, mode_t mode, bool sync) {
        RootTmp t;
        int result = root_tmp_stage(r, path, data, size, mode, ROOT_ANYBODY, &t);
        THEN(result, sync ? root_tmp_sync(&t) : 0);
        THEN(result, root_tmp_publish(&t));
        root_tmp_release(&t);
        return result;
}

int root_replace(const Root *r, const char *path, const void *data, size_t size, mode_t mode) {
        return replace(r, path, data, size, mode, true);
}

int root_replace_volatile(const Root *r, const char *path, const void *data, size_t size, mode_t mode) {
        return replace(r, path, data, size, mode, false);
}
