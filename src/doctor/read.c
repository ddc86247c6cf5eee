/* SPDX-License-Identifier: Apache-2.0
 * Reads regular files of an image, and nothing else. */
#include "doctor/look.h"

#include <errno.h>
#include <fcntl.h>

static int is_regular(const Root *root, const char *path) {
        struct stat st;
        _cleanup_(close_fd) int there = root_open(root, path, O_PATH);
        if (there < 0)
                return there;
        return fstat(there, &st) < 0 || !S_ISREG(st.st_mode) ? -EINVAL : 0;
}

int image_file(const Root *root, const char *path) {
        int r = is_regular(root, path);
        return r < 0 ? r : root_open(root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
}

int image_read(const Root *root, const char *path, size_t limit, char **ret, size_t *ret_size) {
        int r = is_regular(root, path);
        return r < 0 ? r : root_read(root, path, limit, ret, ret_size);
}

int image_read_line(const Root *root, const char *path, char **ret) {
        int r = is_regular(root, path);
        return r < 0 ? r : root_read_line(root, path, ret);
}
