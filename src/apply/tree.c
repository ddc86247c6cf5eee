/* SPDX-License-Identifier: Apache-2.0
 * Removes, merges and compares trees. It works on names in open directories, so a swapped link cannot
 * redirect it. openat2(2) with RESOLVE_NO_XDEV stays on the mount. */
#include "apply/tree.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int tree_open(int dir, const char *name) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int open_directory(int dir, const char *name) {
        struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS };
        long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
        return fd < 0 ? -errno : (int)fd;
}

int tree_list(int dir, char ***ret) {
        _strv_ char **names = NULL;
        size_t n = 0;
        int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  /* with its own read position */
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        if (!d) {
                int r = -errno;
                close_fd(&fd);
                return r;
        }
        for (;;) {
                errno = 0;
                const struct dirent *e = readdir(d);
                if (!e)
                        break;
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        strv_push_at(&names, n++, xstrdup(e->d_name));
        }
        int r = -errno;
        closedir(d);
        strv_sort(names);
        if (r == 0)
                *ret = TAKE_PTR(names);
        return r;
}

static int failed_in(const char *name, int r, char **where) {
        if (r < 0) {
                RENEW(*where, *where ? xasprintf("%s/%s", name, *where) : xstrdup(name));
        }
        return r;
}

int tree_remove(int dir, const char *name, char **where) {
        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR)
                return failed_in(name, -errno, where);
        _cleanup_(close_fd) int fd = open_directory(dir, name);
        _strv_ char **names = NULL;
        int r = fd < 0 ? fd : tree_list(fd, &names);
        for (char **entry = names; r >= 0 && entry && *entry; entry++)
                r = tree_remove(fd, *entry, where);
        if (r >= 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
                r = -errno;
        return failed_in(name, r, where);
}

static int set_aside(int dir, const char *name) {
        for (unsigned n = 1; n < 1000; n++) {
                _free_ char *old = n == 1 ? xasprintf("%s.nodestrap-old", name)
                                          : xasprintf("%s.nodestrap-old.%u", name, n);
                if (renameat2(dir, name, dir, old, RENAME_NOREPLACE) == 0)
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

static int merge_directories(int from, const char *name, int to, const char *as, char **where) {
        _cleanup_(close_fd) int source = open_directory(from, name), target = open_directory(to, as);
        _strv_ char **names = NULL;
        int r = source < 0 ? source : target < 0 ? target : tree_list(source, &names);
        for (char **entry = names; r >= 0 && entry && *entry; entry++)
                r = tree_merge(source, *entry, target, *entry, where);
        if (r >= 0 && unlinkat(from, name, AT_REMOVEDIR) < 0)
                r = -errno;
        return r;
}

int tree_merge(int from, const char *name, int to, const char *as, char **where) {
        struct stat new = {}, old = {};
        if (renameat2(from, name, to, as, RENAME_NOREPLACE) == 0)
                return 0;
        int r = errno != EEXIST ? -errno : 0;
        if (r == 0 && (fstatat(from, name, &new, AT_SYMLINK_NOFOLLOW) < 0 ||
                       fstatat(to, as, &old, AT_SYMLINK_NOFOLLOW) < 0))
                r = -errno;
        if (r == 0 && S_ISDIR(new.st_mode) && S_ISDIR(old.st_mode))
                return failed_in(as, merge_directories(from, name, to, as, where), where);
        if (r == 0 && S_ISDIR(new.st_mode) != S_ISDIR(old.st_mode))
                r = set_aside(to, as);
        if (r == 0 && renameat(from, name, to, as) < 0)
                r = -errno;
        return failed_in(as, r, where);
}

static bool is_copy(const struct stat *a, const struct stat *b) {
        /* the size of a link is its length */
        bool sized = S_ISREG(a->st_mode) || S_ISLNK(a->st_mode);
        /* A file system may have coarser times, or none after 2038 (xfs without bigtime). */
        bool timed = S_ISREG(a->st_mode) && a->st_mtim.tv_sec <= INT32_MAX;
        return (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT) && (!sized || a->st_size == b->st_size) &&
               (!timed || (a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
                           (a->st_mtim.tv_nsec == b->st_mtim.tv_nsec || b->st_mtim.tv_nsec == 0)));
}

static int entry_check(int dir, int copy, const char *name, bool *ret_directory) {
        struct stat a, b;
        if (fstatat(dir, name, &a, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (fstatat(copy, name, &b, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? -ESTALE : -errno;
        *ret_directory = S_ISDIR(a.st_mode);
        return is_copy(&a, &b) ? 0 : -ESTALE;
}

static int entry_copied(int dir, int copy, const char *name, bool remove, char **where);

static int all_copied(int dir, int copy, bool remove, char **where) {
        _strv_ char **names = NULL;
        int r = tree_list(dir, &names);
        for (char **name = names; r >= 0 && name && *name; name++)
                r = entry_copied(dir, copy, *name, remove, where);
        return r;
}

static int entry_copied(int dir, int copy, const char *name, bool remove, char **where) {
        bool directory = false;
        int r = entry_check(dir, copy, name, &directory);
        if (r >= 0 && directory) {
                _cleanup_(close_fd) int inner = open_directory(dir, name),
                                        copied = open_directory(copy, name);
                r = inner < 0 ? inner : copied < 0 ? copied : all_copied(inner, copied, remove, where);
        }
        if (r >= 0 && remove && unlinkat(dir, name, directory ? AT_REMOVEDIR : 0) < 0)
                r = -errno;
        return failed_in(name, r, where);
}

int tree_check_copied(int dir, int copy, char **where) {
        return all_copied(dir, copy, false, where);
}

int tree_remove_copied(int dir, int copy, char **where) {
        return all_copied(dir, copy, true, where);
}
