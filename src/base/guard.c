/* SPDX-License-Identifier: Apache-2.0
 * Checks each component of a path. A link fails: its owner chooses among all files, old ones too. ACLs show
 * in the group bits (acl(5)). */
#include "base/root.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int status_of(const Root *root, const char *path, struct stat *ret) {
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH | O_NOFOLLOW);
        return fd < 0 ? fd : fstat(fd, ret) < 0 ? -errno : 0;
}

static const char *weakness(const struct stat *st, uid_t owner) {
        bool sticky = S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX;
        if (S_ISLNK(st->st_mode))
                return "is a symbolic link";
        if (st->st_uid != 0 && st->st_uid != owner)
                return "does not belong to root";
        return st->st_mode & (S_IWGRP | S_IWOTH) && !sticky ? "is writable by users other than root" : NULL;
}

int path_is_guarded(const Root *root, const char *path, char **ret_why) {
        struct stat st = {};
        int r = status_of(root, "/", &st);
        uid_t owner = st.st_uid;
        for (size_t n = 1; r >= 0; n += strcspn(path + n, "/")) {
                _free_ char *prefix = xstrndup(path, n);
                r = status_of(root, prefix, &st);
                const char *why = r < 0 ? NULL : weakness(&st, owner);
                if (why)
                        *ret_why = xasprintf("%s %s", prefix, why);
                if (why || (r >= 0 && !path[n]))
                        return !why;
                n += path[n] == '/';
        }
        return r;
}
