/* SPDX-License-Identifier: Apache-2.0
 * A root directory → Image: architecture, kernels, the one that boots, and trees. An image that does not
 * run is read from its files only. */
#include "doctor/look.h"

#include "base/str.h"
#include "host/detect.h"
#include "host/host.h"
#include "host/tables.h"

#include <elf.h>
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

static unsigned image_machine(const Root *root) {
        /* kubelet last: people download it by hand, so it may have the wrong architecture. */
        static const char programs[][28] = { "/usr/lib/systemd/systemd", "/lib/systemd/systemd",
                                             "/sbin/init", "/usr/bin/bash", "/bin/sh",
                                             "/usr/bin/nodestrap", "/usr/bin/containerd",
                                             "/usr/bin/kubelet" };
        unsigned machine = 0;
        for (size_t i = 0; i < ARRAY_SIZE(programs) && machine == 0; i++) {
                _cleanup_(elf_done) Elf e = {};
                _cleanup_(close_fd) int fd = image_file(root, programs[i]);
                machine = fd >= 0 && elf_read(fd, &e) == 0 ? e.machine : 0;
        }
        return machine;
}

static bool has_names(const Root *root, const char *folder) {
        _strv_ char **names = root_names(root, folder);
        return names;
}

/* A removed kernel leaves a directory with modules that no package owns. */
static bool is_kernel(const Root *root, const char *name) {
        static const char marks[][16] = { "modules.builtin", "modules.order", "kernel" };
        return ANY(mark, marks, ARRAY_SIZE(marks), image_has(root, MODULES "/%s/%s", name, *mark));
}

static int compare_names(const void *a, const void *b) {
        return version_compare(*(char *const *)a, *(char *const *)b);
}

static char **find_kernels(const Root *root) {
        _strv_ char **names = root_names(root, MODULES);
        char **found = NULL;
        if (names)
                qsort(names, strv_length(names), sizeof *names, compare_names);
        STRV_FOREACH(name, names)
                if (strv_length(found) < MAX_KERNELS && is_kernel(root, *name))
                        strv_add(&found, *name);
        return found;
}

/* Of a Boot Loader Specification entry (uapi-group.org/specifications/specs/boot_loader_specification). */
static char *entry_version(const Root *root, const char *file) {
        _free_ char *text = image_text(root, IMAGE_TEXT_MAX, LOADER "/%s", file);
        return text ? line_value(text, "version", " \t") : NULL;
}

/* The entry set by grub2-set-default or grubby; else the newest. */
static char *loader_kernel(const Root *root, char *const *kernels) {
        static const char *const environments[] = { "/boot/grub2/grubenv", "/boot/grub/grubenv" };
        _free_ char *saved = NULL, *newest = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(environments) && !saved; i++) {
                _free_ char *text = image_text(root, IMAGE_TEXT_MAX, "%s", environments[i]);
                saved = text ? line_value(text, "saved_entry", "=") : NULL;
        }
        _strv_ char **files = root_names(root, LOADER);
        for (char **f = files; f && *f && f < files + MAX_ENTRIES; f++) {
                _free_ char *version = endswith(*f, ".conf") ? entry_version(root, *f) : NULL;
                if (!version || !strv_contains(kernels, version))
                        continue;
                size_t n = strlen(*f) - strlen(".conf");
                if (saved && strlen(saved) == n && strncmp(saved, *f, n) == 0)
                        return TAKE_PTR(version);
                if (!newest || version_compare(version, newest) > 0)
                        RENEW(newest, TAKE_PTR(version));
        }
        return TAKE_PTR(newest);
}

/* Of grub.cfg: the line that loads this kernel. Entries of the boot loader specification win. */
static char *grub_line(const Root *root, const char *kernel) {
        static const char *const files[] = { "/boot/grub2/grub.cfg", "/boot/grub/grub.cfg" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _free_ char *text = image_text(root, IMAGE_TEXT_MAX, "%s", files[i]);
                for (const char *rest = text ?: ""; *rest;) {
                        _free_ char *line = str_cut(&rest, "\n");
                        const char *found = strstr(line, kernel);
                        if (found && startswith(line + strspn(line, " \t"), "linux"))
                                return xstrdup(found);
                }
        }
        return NULL;
}

/* $kernelopts of an entry is in grubenv (grub2, blscfg). */
char *image_command_line(const Image *image) {
        _strv_ char **files = root_names(image->root, LOADER);
        for (char **f = files; image->kernel && f && *f && f < files + MAX_ENTRIES; f++) {
                _free_ char *version = endswith(*f, ".conf") ? entry_version(image->root, *f) : NULL;
                if (!version || !streq(version, image->kernel))
                        continue;
                _free_ char *text = image_text(image->root, IMAGE_TEXT_MAX, LOADER "/%s", *f),
                            *options = text ? line_value(text, "options", " \t") : NULL,
                            *grub = image_text(image->root, IMAGE_TEXT_MAX, "/boot/grub2/grubenv"),
                            *more = grub ? line_value(grub, "kernelopts", "=") : NULL;
                if (options)
                        return strstr(options, "$kernelopts") ? xasprintf("%s %s", options, more ?: "")
                                                              : TAKE_PTR(options);
        }
        return image->kernel ? grub_line(image->root, image->kernel) : NULL;
}

/* /vmlinuz of Debian, or the only kernel. */
static char *only_kernel(const Root *root, char *const *kernels) {
        _free_ char *name = NULL;
        const char *only = NULL;
        if (root_link_name(root, "/vmlinuz", &name) >= 0 && startswith(name, "vmlinuz-") &&
            strv_contains(kernels, name + strlen("vmlinuz-")))
                return xstrdup(name + strlen("vmlinuz-"));
        STRV_FOREACH(k, kernels) {
                if (!image_has(root, "/boot/vmlinuz-%s", *k) && !image_has(root, MODULES "/%s/vmlinuz", *k))
                        continue;
                if (only)
                        return NULL;
                only = *k;
        }
        return xstrdup_or_null(only);
}

static char *boot_kernel(const Image *image) {
        _free_ char *running = NULL;
        if (image->running)
                return root_read_line(image->root, "/proc/sys/kernel/osrelease", &running) >= 0 &&
                                       strv_contains(image->kernels, running)
                               ? TAKE_PTR(running)
                               : NULL;
        if (strv_length(image->kernels) == 1)
                return xstrdup(image->kernels[0]);
        return loader_kernel(image->root, image->kernels) ?: only_kernel(image->root, image->kernels);
}

/* A boot that has chosen one removes the others (awslabs/amazon-eks-ami: resolve-nvidia-driver.sh). */
static char **find_trees(const Root *root) {
        static const char trees[][20] = { "/opt/nvidia/current", "/opt/nvidia/lts", "/opt/nvidia/pb" };
        char **found = NULL;
        bool chosen = image_has(root, "%s/usr", trees[0]);
        for (size_t i = 0; i < (chosen ? 1 : ARRAY_SIZE(trees)); i++)
                if (image_has(root, "%s/usr", trees[i]))
                        strv_add(&found, trees[i]);
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

/* In a chroot of an image builder, "/" differs from that of init. Where this user may not compare: "/" is a
 * mount root, as a plain directory is "/" only by chroot(2). */
bool image_is_running(const Root *root) {
        struct statx mounted;
        struct stat first, own;
        if (!root_is_host(root) || !streq(root_path(root), "/") || stat("/", &own) < 0)
                return false;
        if (stat("/proc/1/root/", &first) < 0)
                return (errno == EACCES || errno == EPERM) &&
                       statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, 0, &mounted) == 0 &&
                       mounted.stx_attributes & STATX_ATTR_MOUNT_ROOT;
        return first.st_dev == own.st_dev && first.st_ino == own.st_ino;
}

int image_open(const Root *root, bool running, Image *ret, Diag *diag) {
        static const char folders[][12] = { "/usr/bin", "/usr/sbin", "/bin", "/sbin" };
        if (!ANY(folder, folders, ARRAY_SIZE(folders), has_names(root, *folder)))
                return diag_error(diag, -ENOENT, CAUSE_USAGE,
                                  "%s has no programs, so it is not the root directory of an image. Mount "
                                  "its root file system, and name the directory that has its /usr",
                                  root_path(root));
        *ret = (Image){ .root = root, .running = running, .machine = image_machine(root),
                        .kernels = find_kernels(root), .trees = find_trees(root) };
        ret->kernel = boot_kernel(ret);
        drivers_find(ret);
        return 0;
}

#define PRODUCT_NAME "/sys/devices/virtual/dmi/id/product_name"

/* Without and with instance stores: examples of general purpose types, which no table lists. */
static const struct { unsigned machine; const char *name; } plain[] = {
        { EM_X86_64, "m6i.4xlarge" },  { EM_X86_64, "m6id.8xlarge" },
        { EM_AARCH64, "m6g.4xlarge" }, { EM_AARCH64, "m6gd.8xlarge" },
};

const char *machine_name(unsigned machine) {
        return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "arm64" : NULL;
}

bool image_serves(const Image *image, const char *type) {
        const InstanceType *t = instance_type_find(type);
        const char *arch = machine_name(image->machine), *wanted = t ? t->arch : "";
        return !arch || !*wanted || streq(arch, wanted);
}

bool type_has_stores(const char *type) {
        size_t letters = strspn(type, "abcdefghijklmnopqrstuvwxyz"), digits = letters;
        digits += strspn(type + letters, "0123456789");
        bool storage = letters > 0 && strchr("idh", type[0]) && is_digit(type[1]);
        return storage || memchr(type + digits, 'd', strcspn(type + digits, "."));
}

static bool brings(const Image *image, bool (*has)(const Root *root, const char *kernel)) {
        bool found = has(image->root, NULL);
        for (char **kernel = image->kernels; kernel && *kernel && !found; kernel++)
                found = has(image->root, *kernel);
        return found;
}

char **image_types(const Image *image, char **ret_why) {
        char **types = NULL;
        _free_ char *own = NULL;
        /* Only types in our tables: a laptop has a product name, too. */
        if (image->running && root_read_line(image->root, PRODUCT_NAME, &own) >= 0 &&
            instance_type_is_known(own)) {
                strv_push(&types, TAKE_PTR(own));
                *ret_why = xstrdup("this machine");
                return types;
        }
        _strv_ char **unknown = NULL;
        bool nvidia = image->driver || brings(image, image_has_nvidia),
             neuron = brings(image, image_has_neuron);
        for (size_t i = 0; i < n_instance_types; i++) {
                const InstanceType *t = &instance_types[i];
                bool wanted = *t->gpu_devices ? nvidia : neuron && startswith(t->gpu_model, "aws-");
                bool known = *t->arch || image->machine == EM_NONE;
                if (wanted && known && image_serves(image, t->name))
                        strv_add(image_drives(image, t->name) ? &types : &unknown, t->name);
        }
        for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
                if (plain[i].machine == image->machine || !machine_name(image->machine))
                        strv_add(&types, plain[i].name);
        _free_ char *others = types_text(unknown);
        const char *arch = machine_name(image->machine) ?: "", *blank = *arch ? " " : "",
                   *drivers = nvidia && neuron ? "NVIDIA or AWS Neuron" : nvidia ? "NVIDIA" : "AWS Neuron";
        *ret_why = nvidia || neuron
                           ? xasprintf("all %s%stypes for its %s driver, and plain ones%s%s%s "
                                       "(--instance-type names others)",
                                       arch, blank, drivers, unknown ? ", but not " : "", others,
                                       unknown ? ", whose GPUs the driver does not support" : "")
                           : xasprintf("plain %s%stypes only: the image has no NVIDIA or AWS Neuron driver "
                                       "(--instance-type names others)",
                                       arch, blank);
        return types;
}
