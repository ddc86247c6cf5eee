/* SPDX-License-Identifier: Apache-2.0
 * Needs → Checks: a function for each kind. */
#include "doctor/look.h"

#include "base/str.h"

#include <fcntl.h>

Look look_begin(const Image *image, Checks *checks) {
        Look l = { .image = image, .root = image->root, .checks = checks };
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(image->root, "/", O_PATH | O_DIRECTORY);
        if (fd >= 0 && fstat(fd, &st) == 0) {
                l.owner = st.st_uid;
                l.group = st.st_gid;
        }
        l.directories = library_directories(image);
        return l;
}

void look_end(Look *l) {
        strv_free(l->directories);
        kernels_done(l);
        labels_free(l->labels);
        owners_free(l->owners);
}

static void (*const look_at[_NEED_KIND_MAX])(Look *, const Need *) = {
        [NEED_PROGRAM] = look_program, [NEED_UNIT] = look_unit,           [NEED_MODULE] = look_module,
        [NEED_LIBRARY] = look_library, [NEED_DIRECTORY] = look_directory, [NEED_FILE] = look_file,
        [NEED_FEATURE] = look_feature, [NEED_SYSCTL] = look_sysctl,       [NEED_NO_SWAP] = look_swap,
};

void image_look(const Image *image, const Needs *needs, Checks *checks) {
        _cleanup_(look_end) Look l = look_begin(image, checks);
        l.labels = labels_open(image->root);
        l.owners = owners_new(image->root);
        kernels_read(&l);
        for (size_t i = 0; i < needs->n; i++)
                look_at[needs->items[i].kind](&l, &needs->items[i]);
        labels_report(l.labels, checks);
        owners_report(l.owners, checks);
}
