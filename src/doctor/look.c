/* SPDX-License-Identifier: Apache-2.0
 * Needs → Checks: a function for each kind, and what they share. They read only regular files. */
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

char *image_text(const Root *root, size_t limit, const char *format, ...) {
        _free_ char *path = FORMATTED(format);
        char *text = NULL;
        return image_read(root, path, limit, &text, NULL) < 0 ? NULL : text;
}

bool image_has(const Root *root, const char *format, ...) {
        _free_ char *path = FORMATTED(format);
        return root_exists(root, path) > 0;
}

char *line_value(const char *text, const char *key, const char *separators) {
        size_t n = strlen(key);
        for (const char *line = text; *line; line += *line == '\n') {
                size_t size = strcspn(line, "\n");
                if (size > n && strncmp(line, key, n) == 0 && strchr(separators, line[n])) {
                        _free_ char *value = xstrndup(line + n + 1, size - n - 1);
                        return str_strip(value);
                }
                line += size;
        }
        return NULL;
}

bool look_counts(const Look *l, const char *folder) {
        return l->image->running || !startswith(folder, "/run/");
}

static int compare_names(const void *a, const void *b) {
        return strcmp(path_last(*(char *const *)a), path_last(*(char *const *)b));
}

char **look_conf_files(const Look *l, const char *const *folders, size_t n, const char *below, size_t max) {
        _strv_ char **seen = NULL;
        char **paths = NULL;
        for (size_t i = 0; i < n; i++) {
                _free_ char *folder = xasprintf("%s%s", folders[i], below);
                _strv_ char **names = look_counts(l, folder) ? root_names(l->root, folder) : NULL;
                STRV_FOREACH(name, names)
                        if (endswith(*name, ".conf") && !strv_contains(seen, *name) &&
                            strv_length(seen) < max) {
                                strv_add(&seen, *name);
                                strv_push(&paths, xasprintf("%s/%s", folder, *name));
                        }
        }
        if (paths)
                qsort(paths, strv_length(paths), sizeof *paths, compare_names);
        return paths;
}

Check *look_fault(Look *l, const Need *need, const char *code, const char *found) {
        return checks_add(l->checks, need->optional ? CHECK_WARNING : CHECK_FAILED, code, need->name, found);
}

void look_well(Look *l, const Need *need, const char *code, const char *found) {
        Check *c = TELL(l->checks, CHECK_OK, code, need->name, found, need, "%s", "");
        RENEW(c->text, NULL);
}

bool look_is_later(Look *l, const Need *need, const char *code) {
        /* The container toolkit is versioned apart from the driver, so the image itself has it. */
        static const char driver[][20] = { "nvidia", "nv-", "libnvidia", "libcuda", "nvlsm", "neuron",
                                           "set-nvidia-", "gdrdrv", "fabricmanager.cfg" };
        static const char toolkit[][20] = { "nvidia-ctk", "nvidia-container-", "nvidia-cdi-",
                                            "libnvidia-container" };
        const char *base = path_last(need->name);
        bool brought = ANY(prefix, driver, ARRAY_SIZE(driver), startswith(base, *prefix)) &&
                       !ANY(prefix, toolkit, ARRAY_SIZE(toolkit), startswith(base, *prefix));
        const char *loader = brought ? image_loader(l->image, need->name) : NULL;
        if (!loader || streq(loader, need->name))
                return false;
        TELL(l->checks, CHECK_UNKNOWN, code, need->name, NULL, need,
             "%s installs it at boot: check a machine that has booted the image", loader);
        return true;
}

bool look_is_closed(Look *l, const Need *need, const char *code, const char *path) {
        _cleanup_(close_fd) int fd = image_file(l->root, path);
        if (fd != -EACCES && fd != -EPERM)
                return false;
        TELL(l->checks, CHECK_UNKNOWN, code, need->name, NULL, need, "%s is not readable: %s; run this as "
                                                                     "root",
             path, strerror(-fd));
        return true;
}

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
        [NEED_TUNING] = look_tuning,   [NEED_NRI] = look_nri,
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
