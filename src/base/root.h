/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All file access goes through a Root: the directory of --root, "/" by default. Paths are absolute;
 * openat2(2) with RESOLVE_IN_ROOT keeps absolute links and ".." inside. */
#include "base/macro.h"
#include <sys/types.h>

struct stat;
typedef struct Root Root;
_must_check_ _nonnull_ int root_new(const char *path, Root **ret);
Root *root_free(Root *r);
DEFINE_CLEANUP(Root *, root_free)
bool root_is_host(const Root *r);               /* the "/" of this machine? */
const char *root_path(const Root *r);

/* Makes a path of a user absolute; the caller frees it. On this machine a relative path starts at the working
 * directory (NULL: it is gone), below another root at that root. */
_must_check_ _nonnull_ char *root_absolute(const Root *r, const char *path);

/* A file descriptor with O_CLOEXEC; O_CREAT makes mode 0600. */
_must_check_ _nonnull_ int root_open(const Root *r, const char *path, int flags);
/* The whole file, NUL-terminated; -EFBIG above limit. Does not wait for a pipe. ret_size may be NULL. */
_must_check_ _nonnull(1, 2, 4) int root_read(const Root *r, const char *path, size_t limit, char **ret,
                                             size_t *ret_size);
/* The same from an open descriptor, to its end; waits for a pipe. */
_must_check_ _nonnull(3) int fd_read(int fd, size_t limit, char **ret, size_t *ret_size);
/* The first line, stripped: a sysfs attribute. */
_must_check_ _nonnull_ int root_read_line(const Root *r, const char *path, char **ret);
_must_check_ _nonnull_ int root_read_u64(const Root *r, const char *path, uint64_t *ret);
/* The id of this boot; fails below a root without /proc. */
_must_check_ _nonnull_ int root_boot_id(const Root *r, char **ret);
/* Sorted by bytes, without "." and "..". */
_must_check_ _nonnull_ int root_list(const Root *r, const char *path, char ***ret);
/* The same; NULL also for an error. */
_must_check_ _nonnull_ static inline char **root_names(const Root *r, const char *path) {
        char **names = NULL;
        return root_list(r, path, &names) < 0 ? NULL : names;
}
/* The target of a link; -EINVAL: not a link. */
_must_check_ _nonnull_ int root_read_link(const Root *r, const char *path, char **ret);
/* Its last component: "efa" for …/driver. */
_must_check_ _nonnull_ int root_link_name(const Root *r, const char *path, char **ret);
/* A new "/a/b is a link to /c, which does not exist" for the first dead link in a path, or NULL. */
_must_check_ _nonnull_ char *root_dead_link(const Root *r, const char *path);
_must_check_ _nonnull_ int root_exists(const Root *r, const char *path);        /* 1, 0 or an error */
/* 1: a regular file with an x bit */
_must_check_ _nonnull_ int root_executable(const Root *r, const char *path);
/* A new list of the paths of a program, in systemd PATH order (absolute name: itself). */
_must_check_ _nonnull_ char **program_paths(const char *name);
/* 1: one of the candidates is executable */
_must_check_ _nonnull_ int root_program(const Root *r, const char *name);

/* -EPERM: other users could write to RUN_DIR, described by *ret; then each change below it fails, too. */
_must_check_ _nonnull_ int root_check_run(const Root *r, struct stat *ret);
/* Writes a sysfs or procfs attribute, with one write(2). */
_must_check_ _nonnull_ int root_write_value(const Root *r, const char *path, const char *value);
_must_check_ _nonnull_ int root_make_dirs(const Root *r, const char *path, mode_t mode);
/* 1: removed, 0: was not there */
_must_check_ _nonnull_ int root_remove(const Root *r, const char *path);

/* 1: removed, 0: not there, or not empty */
_must_check_ _nonnull_ int root_remove_dir(const Root *r, const char *path);
/* Makes or replaces a symbolic link in one step, and missing directories (0755). 1: changed, 0: same. */
_must_check_ _nonnull_ int root_link(const Root *r, const char *path, const char *target);

/* Differences between a file and its wanted state, 0: none. Never through a link at path itself. */
enum {
        ROOT_MISSING = 1,
        ROOT_KIND = 2,                  /* not a regular file, or not a link */
        ROOT_CONTENT = 4,
        ROOT_MODE = 8,
        ROOT_OWNER = 16,
};
/* For any owner. */
#define ROOT_ANYBODY ((uid_t)-1)
/* The owner of the node files: root. ROOT_ANYBODY below another root, for a user who cannot chown. */
_nonnull_ uid_t root_owner(const Root *r);
_must_check_ _nonnull_ int root_compare(const Root *r, const char *path, const void *data, size_t size,
                                        mode_t mode, uid_t owner);
/* The same for a symbolic link; its target is its content. */
_must_check_ _nonnull_ int root_compare_link(const Root *r, const char *path, const char *target);

/* Replaces a file in steps, so that many share one wait for the disk: stage (0: root_compare() found no
 * difference), sync, publish. A link at path itself is not followed. */
typedef struct RootTmp { int dir_fd, fd; char *name, *temporary; } RootTmp;
_must_check_ _nonnull_ int root_tmp_stage(const Root *r, const char *path, const void *data, size_t size,
                                          mode_t mode, uid_t owner, RootTmp *ret);
_must_check_ _nonnull_ int root_tmp_sync(RootTmp *t);
_must_check_ _nonnull_ int root_tmp_publish(RootTmp *t);
_nonnull_ void root_tmp_release(RootTmp *t);    /* in any case */
/* Removes temporary files that a killed run left beside path; they may hold old secrets. No other process may
 * stage files meanwhile. Returns their number. */
_must_check_ _nonnull_ int root_tmp_sweep(const Root *r, const char *path);
/* All steps; missing directories get mode 0755. 1: replaced, 0: was already so. */
_must_check_ _nonnull_ int root_replace(const Root *r, const char *path, const void *data, size_t size,
                                        mode_t mode);
/* The same without the sync, for /run. */
_must_check_ _nonnull_ int root_replace_volatile(const Root *r, const char *path, const void *data,
                                                 size_t size, mode_t mode);

/* Could only root make the file at this path? 1: the file and all directories above belong to root (below
 * another root: to its owner), and none is a link. Others can write only to sticky ones. 0: *ret_why, which
 * the caller frees: "/etc/nodestrap is writable by users other than root". Or a negative errno. */
_must_check_ _nonnull_ int path_is_guarded(const Root *root, const char *path, char **ret_why);
