/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the looks at an image share: where things are below its root. Everything that is read there may be
 * anybody's: all reads have limits, links lead nowhere else (base/root.h). */
#include "doctor/checks.h"
#include "doctor/elf.h"

#include <sys/stat.h>
#include "base/root.h"

#define IMAGE_TEXT_MAX (1U << 20)       /* of a unit, a list, a configuration */
#define MODULES_MAX    (64U << 20)      /* of the lists of all kernels together */

/* ---- read.c ---- */
/* Opens a regular file for reading, and nothing else: to open a device may have effects. A negative errno. */
_must_check_ _nonnull_ int image_file(const Root *root, const char *path);
/* root_read() and root_read_line(), of a regular file: -EINVAL of anything else. */
_must_check_ _nonnull(1, 2, 4) int image_read(const Root *root, const char *path, size_t limit, char **ret,
                                              size_t *ret_size);
_must_check_ _nonnull_ int image_read_line(const Root *root, const char *path, char **ret);

/* ---- module-file.c ---- */
/* modules.dep(5) of a kernel, whose size is taken from the rest that may still be read: beyond it -EFBIG. */
_must_check_ _nonnull_ int modules_list(const Root *root, const char *kernel, size_t *rest, char **ret);
/* Is the word at s, size bytes long, this module's name? "-" and "_" are the same. */
_nonnull_ bool same_module(const char *s, size_t size, const char *name);
/* The file of a module ("/lib/modules/6.1.0/extra/nvidia.ko.xz") of a kernel whose modules.dep this is.
 * NULL: not among them; the caller's. */
_must_check_ _nonnull_ char *module_path(const char *kernel, const char *list, const char *name);
/* What the module says of itself ("version", "vermagic", "license"); NULL where it says nothing, or is
 * compressed. The caller's. */
_must_check_ _nonnull_ char *module_information(const Root *root, const char *path, const char *key);

/* ---- driver.c ---- */
/* Fills in drivers and driver of an image whose kernels and trees are known. */
_nonnull_ void drivers_find(Image *image);
_nonnull_ void drivers_done(Image *image);
/* The file of a module in a tree, of the flavor that is tried first; which one counts is chosen at boot.
 * NULL: it has none for this kernel; the caller's. */
_must_check_ _nonnull_ char *tree_module(const Root *root, const char *tree, const char *kernel,
                                         const char *name);

/* ---- image.c ---- */
/* What brings NVIDIA's, or Neuron's, driver at boot: "nvidia-kmod-load.service"; NULL: it is in the image. */
_nonnull_ const char *image_loader(const Image *image, const char *name);

/* ---- a look at all needs ---- */
typedef struct Labels Labels;
typedef struct Owners Owners;
typedef struct KernelLook {
        const char *version;
        char *modules, *builtin, *features;
        int error;              /* why there are no modules though a list of them is there: -EACCES; or 0 */
} KernelLook;
typedef struct RuleFile { char *path, *text; } RuleFile;
typedef struct Look {
        const Image *image;
        const Root *root;
        Checks *checks;
        uid_t owner; gid_t group;       /* whom the image's files belong to: root, where it is a system */
        char **directories;             /* where ld.so(8) looks for libraries */
        KernelLook *kernels; size_t n_kernels;
        RuleFile *rules; size_t n_rules;        /* modprobe.d(5) */
        Labels *labels;
        Owners *owners;                 /* NULL: they are not looked at */
        bool features_unknown, no_kernels;      /* has been said */
} Look;
/* A look that has no kernels and labels read yet; everything of it ends with look_end(). */
_must_check_ _nonnull_ Look look_begin(const Image *image, Checks *checks);
_nonnull_ void look_end(Look *l);

/* ---- fault.c ---- */
/* All is well, and what was found. */
_nonnull_ void look_well(Look *l, const Need *need, const char *code, const char *found);
/* What this user may not look at is not missing. true: a check says so, of this file. */
_nonnull_ bool look_is_closed(Look *l, const Need *need, const char *code, const char *path);
/* What is not there, or not as it must be: CHECK_FAILED, or CHECK_WARNING where the need is optional. */
_nonnull(1, 2, 3) Check *look_fault(Look *l, const Need *need, const char *code, const char *found);
/* Whom the missing thing of NVIDIA or Neuron is brought by when the image boots. true: a check says so. */
_nonnull_ bool look_is_later(Look *l, const Need *need, const char *code);

/* ---- places.c ---- */
_nonnull_ void look_directory(Look *l, const Need *need);
_nonnull_ void look_file(Look *l, const Need *need);

/* ---- units.c ---- */
_nonnull_ void look_unit(Look *l, const Need *need);
/* Does a link of another unit's want or require it? */
_nonnull_ bool unit_is_enabled(const Look *l, const char *unit);
/* Is it masked, and where? *ret_path is the caller's, whatever is found. */
_nonnull_ bool unit_is_masked(const Look *l, const char *name, char **ret_path);
_nonnull_ bool unit_exists(const Look *l, const char *name);
/* The directory that this user may not look into, and that may have a link which enables it. NULL: none; the
 * caller's. */
_must_check_ _nonnull_ char *unit_closed(const Look *l, const char *unit);
/* Does it start this program ("/usr/bin/nodestrap"), by whatever link? */
_nonnull_ bool unit_starts(const Look *l, const char *unit, const char *program);

/* ---- modules.c ---- */
_nonnull_ void look_module(Look *l, const Need *need);
_nonnull_ void look_feature(Look *l, const Need *need);
/* The option's text in the configuration of the kernel that boots, where there is a choice the newest: "y",
 * "10"; "" where it is not set, NULL where nothing tells. The caller's. */
_must_check_ _nonnull_ char *feature_text(const Look *l, const char *name);
_nonnull_ void kernels_read(Look *l);
_nonnull_ void kernels_done(Look *l);

/* ---- sysctl.c, fstab.c ---- */
_nonnull_ void look_sysctl(Look *l, const Need *need);
_nonnull_ void look_swap(Look *l, const Need *need);
/* What mounts the disks of another machine. */
_nonnull_ void search_mounts(const Look *l);

/* ---- programs.c ---- */
/* systemd's PATH → where a program is: "/usr/sbin/mdadm"; an absolute name is one. NULL: nowhere; then
 * *ret_odd is, where not NULL, a file of that name that nobody may execute. Both the caller's. */
_must_check_ _nonnull_ char *program_find(const Root *root, const char *name, char **ret_odd);
/* Likewise, but below a tree ("" is none); a name in PATH, or a path. */
_must_check_ _nonnull_ char *tree_program(const Root *root, const char *tree, const char *name);
/* program_find(), and else what a tree will bring. */
_must_check_ _nonnull_ char *image_program(const Image *image, const char *name, char **ret_odd);
/* Why it cannot be run on the image: of another architecture, without its interpreter or a library. NULL: it
 * can. The caller's. *ret_code is static. */
_must_check_ _nonnull_ char *program_fault(const Look *l, const char *path, const char **ret_code);
_nonnull_ void look_program(Look *l, const Need *need);
_nonnull_ void look_library(Look *l, const Need *need);
_must_check_ _nonnull_ char **library_directories(const Image *image);

/* ---- labels.c: SELinux ---- */
/* The path of what is open, below a directory whose own this is; NULL: it is not below. The caller's. */
_must_check_ _nonnull_ char *real_path(int fd, const char *base);
/* NULL: the image has none, or they are switched off. */
_must_check_ _nonnull_ Labels *labels_open(const Root *root);
/* The label of this file or directory, against what the image's policy says. NULL is nothing to do. */
_nonnull(2, 3) void labels_look(Labels *labels, const Root *root, const char *path);
_nonnull(2) void labels_report(Labels *labels, Checks *checks);
Labels *labels_free(Labels *labels);
DEFINE_CLEANUP(Labels *, labels_free)

/* ---- owners.c: who may change what root trusts ---- */
/* Is it, or what is in it where it is a directory, somebody else's than root's to change? Groups of the
 * system may. */
_nonnull_ bool is_foreign(const Look *l, const struct stat *st);
_malloc_ _nonnull_ Owners *owners_new(const Root *root);
/* The file or directory at this path, each that the path leads through, and where links lead, each once. */
_nonnull_ void owners_look(const Look *l, const char *path);
_nonnull_ void owners_report(const Owners *owners, Checks *checks);
Owners *owners_free(Owners *owners);

/* The path without its last component; "/" of "/". The caller's. */
_malloc_ _nonnull_ char *parent_of(const char *path);

/* ---- packages.c ---- */
/* Versions of what an image has, from what its package managers wrote and from its files. */

/* The upstream version of the first of these packages (names ends with NULL) that is installed, under that
 * name or with a branch behind it ("nvidia-imex-580"); NULL: none is, or nothing tells it. The caller's. */
_must_check_ _nonnull_ char *package_version(const Root *root, const char *const *names);
/* Is it a version as those of NVIDIA's driver are, "580.126.09" or "470.82", and nothing else? */
_nonnull_ bool driver_is_version(const char *s, size_t size);
/* The version of NVIDIA's driver that a program was built with: the one string of that form in it. wanted,
 * where not NULL, is enough where it is among several. NULL: none, or several. The caller's. */
_must_check_ _nonnull(1, 2) char *program_version(const Root *root, const char *path, const char *wanted);
