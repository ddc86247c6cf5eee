/* SPDX-License-Identifier: Apache-2.0
 * A root directory → Image: architecture, kernels, the one that boots, and trees. An image that does not
 * run is read from its files only. */
#include "doctor/look.h"

#include "base/str.h"
#include "base/version.h"
#include "host/detect.h"
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>


#define MODULES     "/lib/modules"
#define LOADER      "/boot/loader/entries"
#define MAX_KERNELS 32u
#define MAX_ENTRIES 128u

void image_done(Image *i) {
        strv_free(i->kernels);
        free(i->kernel);
        strv_free(i->trees);
        drivers_done(i);
        FREE_ALL(i->kubelet, i->containerd);
        *i = (Image){};
}

/* ---- architecture ---- */

static unsigned machine_of(const Root *root, const char *path) {
        _cleanup_(elf_done) Elf e = {};
        _cleanup_(close_fd) int fd = image_file(root, path);
        return fd >= 0 && elf_read(fd, &e) == 0 ? e.machine : 0;
}

static unsigned image_machine(const Root *root) {
        /* kubelet last: people download it by hand, so it may have the wrong architecture. */
        static const char *const programs[] = { "/usr/lib/systemd/systemd",
                                                "/lib/systemd/systemd",
                                                "/sbin/init",
                                                "/usr/bin/bash",
                                                "/bin/sh",
                                                "/usr/bin/nodestrap",
                                                "/usr/bin/containerd",
                                                "/usr/bin/kubelet" };
        unsigned machine = 0;
        for (size_t i = 0; i < ARRAY_SIZE(programs) && machine == 0; i++)
                machine = machine_of(root, programs[i]);
        return machine;
}

static bool has_programs(const Root *root) {
        static const char *const folders[] = { "/usr/bin", "/usr/sbin", "/bin", "/sbin" };
        bool any = false;
        for (size_t i = 0; i < ARRAY_SIZE(folders) && !any; i++) {
                _strv_ char **names = root_names(root, folders[i]);
                any = names;
        }
        return any;
}

/* ---- kernels ---- */

/* A removed kernel leaves a directory with modules that no package owns. */
static bool is_kernel(const Root *root, const char *name) {
        static const char *const marks[] = { "modules.builtin", "modules.order", "kernel" };
        bool is = false;
        for (size_t i = 0; i < ARRAY_SIZE(marks) && !is; i++) {
                _free_ char *path = xasprintf(MODULES "/%s/%s", name, marks[i]);
                is = root_exists(root, path) > 0;
        }
        return is;
}

static int compare_names(const void *a, const void *b) {
        return version_compare(*(char *const *)a, *(char *const *)b);
}

static char **find_kernels(const Root *root) {
        _strv_ char **names = root_names(root, MODULES);
        char **found = NULL;
        if (!names)
                return NULL;
        qsort(names, strv_length(names), sizeof *names, compare_names);
        for (char **name = names; name && *name && strv_length(found) < MAX_KERNELS; name++)
                if (is_kernel(root, *name))
                        strv_add(&found, *name);
        return found;
}

/* "key value" of the Boot Loader Specification
 * (uapi-group.org/specifications/specs/boot_loader_specification), "key=value" of grubenv. The caller frees
 * it. */
static char *line_value(const char *text, const char *key, const char *separators) {
        size_t n = strlen(key);
        for (const char *line = text; *line;) {
                size_t size = strcspn(line, "\n");
                if (size > n && strncmp(line, key, n) == 0 && strchr(separators, line[n])) {
                        _free_ char *value = xstrndup(line + n + 1, size - n - 1);
                        return str_strip(value);
                }
                line += size + (line[size] == '\n');
        }
        return NULL;
}

static char *entry_version(const Root *root, const char *file) {
        _free_ char *path = xasprintf(LOADER "/%s", file), *text = NULL;
        return image_read(root, path, IMAGE_TEXT_MAX, &text, NULL) < 0 ? NULL
                                                                      : line_value(text, "version", " \t");
}

/* The entry set by grub2-set-default or grubby; else the newest. */
static char *loader_kernel(const Root *root, char *const *kernels) {
        static const char *const environments[] = { "/boot/grub2/grubenv", "/boot/grub/grubenv" };
        _free_ char *text = NULL, *saved = NULL, *newest = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(environments) && !saved; i++) {
                free(TAKE_PTR(text));
                if (image_read(root, environments[i], IMAGE_TEXT_MAX, &text, NULL) >= 0)
                        saved = line_value(text, "saved_entry", "=");
        }
        _strv_ char **files = root_names(root, LOADER);
        for (char **f = files; f && *f && f < files + MAX_ENTRIES; f++) {
                _free_ char *version = endswith(*f, ".conf") ? entry_version(root, *f) : NULL;
                if (!version || !strv_contains(kernels, version))
                        continue;
                size_t n = strlen(*f) - strlen(".conf");
                if (saved && strlen(saved) == n && strncmp(saved, *f, n) == 0)
                        return TAKE_PTR(version);
                if (!newest || version_compare(version, newest) > 0) {
                        RENEW(newest, TAKE_PTR(version));
                }
        }
        return TAKE_PTR(newest);
}

/* /vmlinuz of Debian, or the only kernel. */
static char *only_kernel(const Root *root, char *const *kernels) {
        _free_ char *name = NULL;
        const char *only = NULL;
        if (root_link_name(root, "/vmlinuz", &name) >= 0 && startswith(name, "vmlinuz-") &&
            strv_contains(kernels, name + strlen("vmlinuz-")))
                return xstrdup(name + strlen("vmlinuz-"));
        for (char *const *k = kernels; k && *k; k++) {
                _free_ char *boot = xasprintf("/boot/vmlinuz-%s", *k),
                            *module = xasprintf(MODULES "/%s/vmlinuz", *k);
                if (root_exists(root, boot) <= 0 && root_exists(root, module) <= 0)
                        continue;
                if (only)
                        return NULL;
                only = *k;
        }
        return xstrdup_or_null(only);
}

static char *boot_kernel(const Image *image) {
        _free_ char *running = NULL;
        if (image->running) {
                if (root_read_line(image->root, "/proc/sys/kernel/osrelease", &running) < 0 ||
                    !strv_contains(image->kernels, running))
                        return NULL;
                return TAKE_PTR(running);
        }
        if (strv_length(image->kernels) == 1)
                return xstrdup(image->kernels[0]);
        char *kernel = loader_kernel(image->root, image->kernels);
        return kernel ?: only_kernel(image->root, image->kernels);
}

/* ---- what comes at boot ---- */

/* A boot that has chosen one removes the others (awslabs/amazon-eks-ami: resolve-nvidia-driver.sh). */
static char **find_trees(const Root *root) {
        static const char *const trees[] = { "/opt/nvidia/current", "/opt/nvidia/lts", "/opt/nvidia/pb" };
        char **found = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
                _free_ char *usr = xasprintf("%s/usr", trees[i]);
                if (root_exists(root, usr) <= 0)
                        continue;
                strv_add(&found, trees[i]);
                if (i == 0)
                        break;
        }
        return found;
}

const char *image_loader(const Image *image, const char *name) {
        static const char *const setups[][2] = { { "nvidia-setup.service", NULL },
                                                 { "neuron-package-install.service", NULL } };
        static const char *const builders[][2] = { { "nvidia-kmod-load.service", NULL },
                                                   { "neuron-kmod-load.service", NULL } };
        bool neuron = startswith(name, "neuron"), library = strstr(name, ".so"),
             unit = strchr(name, '.') && !library;
        if (!neuron && image->trees)
                return NULL; /* the tree has it already */
        if (image_has_unit(image->root, setups[neuron]))
                return setups[neuron][0];
        /* This one builds modules and installs no program. */
        return !library && !unit && *name != '/' && image_has_unit(image->root, builders[neuron])
                       ? builders[neuron][0]
                       : NULL;
}

/* A mount root; a plain directory is "/" only by chroot(2). */
static bool is_mounted(void) {
        struct statx st;
        return statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, 0, &st) == 0 &&
               st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* In a chroot, as image builders use it, "/" differs from that of init. Not every user may compare them. */
bool image_is_running(const Root *root) {
        struct stat first, own;
        if (!root_is_host(root) || !streq(root_path(root), "/") || stat("/", &own) < 0)
                return false;
        if (stat("/proc/1/root/", &first) < 0)
                return (errno == EACCES || errno == EPERM) && is_mounted();
        return first.st_dev == own.st_dev && first.st_ino == own.st_ino;
}

int image_open(const Root *root, bool running, Image *ret, Diag *diag) {
        _cleanup_(image_done) Image image = { .root = root, .running = running };
        if (!has_programs(root))
                return diag_error(diag, -ENOENT, CAUSE_USAGE,
                                  "There are no programs below %s: it is not the root directory of an image. "
                                  "Mount its root file system, and name the directory that has its /usr",
                                  root_path(root));
        image.machine = image_machine(root);
        image.kernels = find_kernels(root);
        image.kernel = boot_kernel(&image);
        image.trees = find_trees(root);
        drivers_find(&image);
        *ret = image;
        image = (Image){};
        return 0;
}
