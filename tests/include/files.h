/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Questions of tests about files. */
#include "base/root.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

/* Is there a regular file of this mode at path itself, not behind a link, that holds this and nothing else? */
_unused_ static bool file_is(const Root *root, const char *path, const void *data, size_t size, mode_t mode) {
        _free_ char *there = NULL;
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH | O_NOFOLLOW);
        struct stat st;
        size_t n = 0;
        return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 07777) == mode &&
               root_read(root, path, size + 1, &there, &n) >= 0 && n == size && memcmp(there, data, size) == 0;
}

static int tree_remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

/* Whatever is at path, and below it. 0, or -1 where something of it stayed. */
_unused_ static int tree_remove(const char *path) {
        return nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
