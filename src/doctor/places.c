/* SPDX-License-Identifier: Apache-2.0
 * Directories that steps write to, and files that they read → Checks. */
#include "doctor/look.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static void tell_foreign(Look *l, const Need *need, const char *path, const struct stat *st) {
        _free_ char *found =
                xasprintf("%s %04o, owner %u", path, (unsigned)st->st_mode & 07777, (unsigned)st->st_uid);
        check_tell(checks_add(l->checks, CHECK_WARNING, "directory-mode", need->name, found), need,
                   "others than root may change what is in it, and root writes there: chown root %s, chmod "
                   "go-w %s",
                   path, path);
}

static bool is_read_only(int fd) {
        struct statvfs fs;
        return fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

char *parent_of(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash && slash > path ? xstrndup(path, (size_t)(slash - path)) : xstrdup("/");
}

static bool is_dangling(const Look *l, const char *path) {
        _free_ char *target = NULL;
        return root_read_link(l->root, path, &target) >= 0;
}

void look_directory(Look *l, const Need *need) {
        _free_ char *path = xstrdup(need->name);
        bool itself = true;
        struct stat st;
        for (unsigned i = 0; i < 64; i++) {
                _cleanup_(close_fd) int fd = root_open(l->root, path, O_PATH);
                if (fd == -ENOENT && !is_dangling(l, path) && !streq(path, "/")) {
                        RENEW(path, parent_of(path));
                        itself = false;
                        continue;
                }
                if (fd == -ENOENT)
                        check_tell(look_fault(l, need, "directory", path), need,
                                   "%s is a link that leads nowhere, so no directory can be made there: make "
                                   "what it leads to, or remove it",
                                   path);
                else if (fd < 0 && fd != -ENOTDIR)
                        check_tell(checks_add(l->checks, CHECK_UNKNOWN, "directory", need->name, NULL), need,
                                   "%s cannot be looked at: %s", path, strerror(-fd));
                else if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
                        check_tell(look_fault(l, need, "directory", path), need,
                                   "%s is no directory, and one has to be there: move it away", path);
                else if (is_foreign(l, &st))
                        tell_foreign(l, need, path, &st);
                else if (l->image->running && is_read_only(fd))
                        check_tell(look_fault(l, need, "directory-read-only", path), need,
                                   "it lies on a file system that is mounted read-only, and files are "
                                   "written there");
                else
                        look_well(l, need, "directory", itself ? path : "can be made");
                if (fd >= 0 && itself)
                        labels_look(l->labels, l->root, path);
                return;
        }
}

/* In the image, or in a tree. */
static char *find_file(const Look *l, const char *name) {
        char *path = xstrdup(name);
        for (char **tree = l->image->trees; tree && *tree && root_exists(l->root, path) == 0; tree++) {
                RENEW(path, xasprintf("%s%s", *tree, name));
        }
        return path;
}

void look_file(Look *l, const Need *need) {
        struct stat st;
        _free_ char *path = find_file(l, need->name);
        _cleanup_(close_fd) int fd = root_open(l->root, path, O_PATH);
        bool dangling = fd < 0 && is_dangling(l, need->name);
        if (fd < 0 && !dangling && look_is_later(l, need, "file"))
                return;
        bool there = fd >= 0 && fstat(fd, &st) == 0;
        if (!there || !S_ISREG(st.st_mode) || st.st_size == 0)
                check_tell(look_fault(l, need, "file", there ? path : NULL), need,
                           "%s: add it to the image%s",
                           dangling               ? "it is a link that leads nowhere"
                           : !there               ? "it is not there"
                           : !S_ISREG(st.st_mode) ? "it is no regular file"
                                                  : "it is empty",
                           need->optional ? ", where a boot cannot do without" : "");
        else {
                labels_look(l->labels, l->root, path);
                owners_look(l, path);
                look_well(l, need, "file", path);
        }
}
