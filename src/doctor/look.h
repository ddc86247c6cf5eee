/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by checks of an image. The image may be hostile: every read has a limit, and links stay below the
 * root (base/root.h). */
#include "doctor/checks.h"
#include "doctor/elf.h"

#include <sys/stat.h>

#define IMAGE_TEXT_MAX (1U << 20)       /* bytes of a unit, a list, a configuration */
#define MODULES_MAX    (64U << 20)      /* bytes of the lists of all kernels together */

/* ---- look.c ---- */
/* Opens only a regular file: opening devices may have side effects. A negative errno. */
_must_check_ _nonnull_ int image_file(const Root *root, const char *path);
/* root_read() and root_read_line(); -EINVAL for anything but a regular file. */
_must_check_ _nonnull(1, 2, 4) int image_read(const Root *root, const char *path, size_t limit, char **ret,
                                              size_t *ret_size);
_must_check_ _nonnull_ int image_read_line(const Root *root, const char *path, char **ret);
/* The text of the file at the path that format makes; NULL: not readable. The caller frees it. */
_must_check_ _nonnull_ char *image_text(const Root *root, size_t limit, const char *format, ...)
        _printf_(3, 4);
/* Is there something at the path that format makes? */
_nonnull_ bool image_has(const Root *root, const char *format, ...) _printf_(2, 3);
/* The value of the first line that begins with key and one of these separators; NULL: none. The caller frees
 * it. */
_must_check_ _nonnull_ char *line_value(const char *text, const char *key, const char *separators);

/* ---- modules.c ---- */
/* modules.dep(5) of a kernel. Its size is subtracted from *rest; -EFBIG if it does not fit. */
_must_check_ _nonnull_ int modules_list(const Root *root, const char *kernel, size_t *rest, char **ret);
/* A copy with "_" for "-". */
_malloc_ _nonnull_ char *module_name(const char *name);
/* Compares a word of size bytes with a module name: "-" and "_" are the same. */
_nonnull_ bool same_module(const char *s, size_t size, const char *name);
/* "/lib/modules/6.1.0/extra/nvidia.ko.xz", as the modules.dep in list has it; NULL: not in it. The caller
 * frees it. */
_must_check_ _nonnull_ char *module_path(const char *kernel, const char *list, const char *name);
/* "version", "vermagic" or "license" of a module; NULL: not there, or compressed. The caller frees it. */
_must_check_ _nonnull_ char *module_information(const Root *root, const char *path, const char *key);

/* ---- driver.c ---- */
/* Sets drivers and driver of an image with kernels and trees. */
_nonnull_ void drivers_find(Image *image);
_nonnull_ void drivers_done(Image *image);
/* The file of a module in the first flavor of a tree that has it; NULL: none for this kernel. The caller
 * frees it. */
_must_check_ _nonnull_ char *tree_module(const Root *root, const char *tree, const char *kernel,
                                         const char *name);

/* ---- image.c ---- */
/* The unit that installs the NVIDIA or Neuron driver at boot: "nvidia-kmod-load.service"; NULL: the image
 * has it. */
_nonnull_ const char *image_loader(const Image *image, const char *name);

/* The kernel command line of the boot entry; NULL: not known. The caller frees it. */
_must_check_ _nonnull_ char *image_command_line(const Image *image);

/* ---- a look at all needs ---- */
typedef struct Labels Labels;
typedef struct Owners Owners;
typedef struct KernelLook {
        const char *version;
        char *modules, *builtin, *features;
        int error;              /* of a list that cannot be read: -EACCES; or 0 */
} KernelLook;
typedef struct RuleFile { char *path, *text; } RuleFile;
typedef struct Look {
        const Image *image;
        const Root *root;
        Checks *checks;
        uid_t owner; gid_t group;       /* of the root directory */
        char **directories;             /* of libraries, as ld.so(8) searches them */
        KernelLook *kernels; size_t n_kernels;
        RuleFile *rules; size_t n_rules;        /* modprobe.d(5) */
        Labels *labels;
        Owners *owners;                 /* NULL: not checked */
        bool features_unknown, no_kernels;      /* already reported */
} Look;
/* Without kernels and labels; look_end() frees all of it. */
_must_check_ _nonnull_ Look look_begin(const Image *image, Checks *checks);
_nonnull_ void look_end(Look *l);

/* /run of an image does not survive a boot. */
_nonnull_ bool look_counts(const Look *l, const char *folder);
/* The .conf files below these n folders, each with `below` appended, ordered by name: of files with the same
 * name, the first. A new list of max paths at most. */
_must_check_ _nonnull_ char **look_conf_files(const Look *l, const char *const *folders, size_t n,
                                              const char *below, size_t max);
/* CHECK_OK. */
_nonnull_ void look_well(Look *l, const Need *need, const char *code, const char *found);
/* true, and CHECK_UNKNOWN: this user may not read the file. */
_nonnull_ bool look_is_closed(Look *l, const Need *need, const char *code, const char *path);
/* CHECK_FAILED, or CHECK_WARNING if the need is optional. */
_nonnull(1, 2, 3) Check *look_fault(Look *l, const Need *need, const char *code, const char *found);
#define FAULT(l, need, code, found, ...)                                                       \
        check_tell(look_fault(l, need, code, found), need, __VA_ARGS__)
/* true, and CHECK_UNKNOWN: a unit installs this NVIDIA or Neuron part at boot. */
_nonnull_ bool look_is_later(Look *l, const Need *need, const char *code);

/* ---- places.c ---- */
_nonnull_ void look_directory(Look *l, const Need *need);
_nonnull_ void look_file(Look *l, const Need *need);
_nonnull_ void look_nri(Look *l, const Need *need);

/* ---- units.c ---- */
_nonnull_ void look_unit(Look *l, const Need *need);
/* Is there a link in a .wants or .requires directory? */
_nonnull_ bool unit_is_enabled(const Look *l, const char *unit);
/* false: also if masked. */
_nonnull_ bool unit_exists(const Look *l, const char *name);
/* A directory that this user may not read, and that may have the link that enables it; NULL: none. The
 * caller frees it. */
_must_check_ _nonnull_ char *unit_closed(const Look *l, const char *unit);
/* Does it start this program ("/usr/bin/nodestrap"), even by a link? */
_nonnull_ bool unit_starts(const Look *l, const char *unit, const char *program);

/* ---- modules.c ---- */
_nonnull_ void look_module(Look *l, const Need *need);
_nonnull_ void look_feature(Look *l, const Need *need);
/* The text of the option in the configuration of the kernel that boots, or of the newest: "y", "10". "": not
 * set, NULL: no configuration. The caller frees it. */
_must_check_ _nonnull_ char *feature_text(const Look *l, const char *name);
_nonnull_ void kernels_read(Look *l);
_nonnull_ void kernels_done(Look *l);

/* ---- sysctl.c, fstab.c ---- */
_nonnull_ void look_sysctl(Look *l, const Need *need);
_nonnull_ void look_swap(Look *l, const Need *need);
/* ---- tuning.c ---- */
#define TUNED_SETTINGS "host settings"
#define TUNED_OTHERS   "host settings except CPUs" /* a boot sets those of CPUs */
_nonnull_ void look_tuning(Look *l, const Need *need);
/* fstab and mount units with disks of another machine. */
_nonnull_ void search_mounts(const Look *l);

/* ---- programs.c ---- */
/* The program in PATH of systemd below a tree ("": none), or at an absolute path; NULL: none. *ret_odd: a
 * file of that name that is not executable; may be NULL. The caller frees both. */
_must_check_ _nonnull(1, 2, 3) char *program_find(const Root *root, const char *tree, const char *name,
                                                   char **ret_odd);
/* program_find(), else in a tree of the image. */
_must_check_ _nonnull(1, 2) char *image_program(const Image *image, const char *name, char **ret_odd);
/* Why it cannot run: architecture, interpreter, a library; NULL: it can. The caller frees it; *ret_code is
 * static. */
_must_check_ _nonnull_ char *program_fault(const Look *l, const char *path, const char **ret_code);
_nonnull_ void look_program(Look *l, const Need *need);
_nonnull_ void look_library(Look *l, const Need *need);
_must_check_ _nonnull_ char **library_directories(const Image *image);

/* ---- labels.c: SELinux ---- */
/* The path of an open file below base; NULL: not below it. The caller frees it. */
_must_check_ _nonnull_ char *real_path(int fd, const char *base);
/* NULL: no SELinux, or disabled. */
_must_check_ _nonnull_ Labels *labels_open(const Root *root);
/* Compares the label of a file or directory with the policy. NULL does nothing. */
_nonnull(2, 3) void labels_look(Labels *labels, const Root *root, const char *path);
_nonnull(2) void labels_report(Labels *labels, Checks *checks);
Labels *labels_free(Labels *labels);
DEFINE_CLEANUP(Labels *, labels_free)

/* ---- owners.c: who may change what root trusts ---- */
/* May a user other than root change it, or its entries? System groups are trusted. */
_nonnull_ bool is_foreign(const Look *l, const struct stat *st);
_malloc_ _nonnull_ Owners *owners_new(const Root *root);
/* The file or directory at this path, all directories above it, and where links lead, each once. */
_nonnull_ void owners_look(const Look *l, const char *path);
_nonnull_ void owners_report(const Owners *owners, Checks *checks);
Owners *owners_free(Owners *owners);

/* The path without its last component; "/" for "/". The caller frees it. */
_malloc_ _nonnull_ char *parent_of(const char *path);

/* ---- packages.c ---- */

/* The upstream version of the first installed package of these names (ends with NULL), with or without a
 * branch ("nvidia-imex-580"). NULL: none, or not known. The caller frees it. */
_must_check_ _nonnull_ char *package_version(const Root *root, const char *const *names);
/* "580.126.09" or "470.82": the form of an NVIDIA driver version. */
_nonnull_ bool driver_is_version(const char *s, size_t size);
/* The one string in a program that has the form of an NVIDIA driver version, or wanted, if that is among
 * several. NULL: none, or several. The caller frees it. */
_must_check_ _nonnull(1, 2) char *program_version(const Root *root, const char *path, const char *wanted);
