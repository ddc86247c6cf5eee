/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All file access goes through a Root: the directory given with --root, "/" by default. Paths are absolute
 * and stay inside it: openat2(RESOLVE_IN_ROOT) resolves absolute links and ".." of a fixture below the root
 * (openat2(2)). */
#include "base/macro.h"
#include <sys/types.h>

struct stat;
typedef struct Root Root;
_must_check_ _nonnull_ int root_new(const char *path, Root **ret);
Root *root_free(Root *r);
DEFINE_CLEANUP(Root *, root_free)
bool root_is_host(const Root *r);               /* is it the running system's "/"? */
const char *root_path(const Root *r);           /* as it was given */

/* A path as a user gives it → one for the functions below: a relative one starts at the working directory;
 * below another root there is none, so it starts at that root. NULL where the working directory is gone. The
 * caller frees it. */
_must_check_ _nonnull_ char *root_absolute(const Root *r, const char *path);

/* Opens below the root; a file descriptor with O_CLOEXEC, or a negative errno. What O_CREAT makes has mode
 * 0600. */
_must_check_ _nonnull_ int root_open(const Root *r, const char *path, int flags);
/* The whole file, NUL behind it; -EFBIG past limit bytes. Never waits for a writer of a pipe. ret_size may be
 * NULL. */
_must_check_ _nonnull(1, 2, 4) int root_read(const Root *r, const char *path, size_t limit, char **ret,
                                             size_t *ret_size);
/* The same of what is open already: from where it stands to its end, however long a pipe takes. */
_must_check_ _nonnull(3) int fd_read(int fd, size_t limit, char **ret, size_t *ret_size);
/* The first line without white space at its ends, as sysfs attributes are read. */
_must_check_ _nonnull_ int root_read_line(const Root *r, const char *path, char **ret);
_must_check_ _nonnull_ int root_read_u64(const Root *r, const char *path, uint64_t *ret);
/* The kernel's name of this boot; a root without /proc has none. */
_must_check_ _nonnull_ int root_boot_id(const Root *r, char **ret);
/* The names in a directory, sorted by bytes, without "." and "..". */
_must_check_ _nonnull_ int root_list(const Root *r, const char *path, char ***ret);
/* The same for who does with those that can be seen; the caller's, NULL: none. */
_must_check_ _nonnull_ static inline char **root_names(const Root *r, const char *path) {
        char **names = NULL;
        return root_list(r, path, &names) < 0 ? NULL : names;
}
/* What a link says that it points to. -EINVAL: none. */
_must_check_ _nonnull_ int root_read_link(const Root *r, const char *path, char **ret);
/* The last component of what a link points to: "efa" for …/driver. */
_must_check_ _nonnull_ int root_link_name(const Root *r, const char *path, char **ret);
/* "/a/b is a link to /c, which is not there": of the first such link that the path leads through. NULL: of
 * none. The caller's. */
_must_check_ _nonnull_ char *root_dead_link(const Root *r, const char *path);
_must_check_ _nonnull_ int root_exists(const Root *r, const char *path);        /* 1, 0 or a negative errno */
/* 1 if a regular file with an x bit */
_must_check_ _nonnull_ int root_executable(const Root *r, const char *path);
/* Where a program of that name may be: in the directories of systemd's PATH, in their order; an absolute name
 * is one. New. */
_must_check_ _nonnull_ char **program_paths(const char *name);
/* 1 if one of them is there and may be executed */
_must_check_ _nonnull_ int root_program(const Root *r, const char *name);

/* -EPERM where RUN_DIR is not a directory that root alone may write to, and should be: then all that changes
 * something below it answers so, too. *ret tells what is there. 0: it is well, or not there. */
_must_check_ _nonnull_ int root_check_run(const Root *r, struct stat *ret);
/* Hands a value to a file of the kernel's (sysfs, procfs), which takes it with one write or answers with an
 * error. */
_must_check_ _nonnull_ int root_write_value(const Root *r, const char *path, const char *value);
_must_check_ _nonnull_ int root_make_dirs(const Root *r, const char *path, mode_t mode);
/* 1 if it was removed, 0 if it was not there. */
_must_check_ _nonnull_ int root_remove(const Root *r, const char *path);

/* 1 if an empty directory was removed, 0 if none is there or something is in it. */
_must_check_ _nonnull_ int root_remove_dir(const Root *r, const char *path);
/* A symbolic link at path that leads to target, as it is written; missing directories are made 0755. 1 made,
 * in one step also where a file or another link was, 0 if it was there. */
_must_check_ _nonnull_ int root_link(const Root *r, const char *path, const char *target);

/* How what is at path differs from what would be written there: bits of these, 0 in nothing, or a negative
 * errno. Never through a link at path itself. */
enum {
        ROOT_MISSING = 1,
        ROOT_KIND = 2,                  /* it is no regular file, or no link */
        ROOT_CONTENT = 4,
        ROOT_MODE = 8,
        ROOT_OWNER = 16,
};
/* As an owner: whoever it is. */
#define ROOT_ANYBODY ((uid_t)-1)
/* Whose the files of a node are: root's; ROOT_ANYBODY below another root for who is not root, and can make no
 * others than his own. */
_nonnull_ uid_t root_owner(const Root *r);
_must_check_ _nonnull_ int root_compare(const Root *r, const char *path, const void *data, size_t size,
                                        mode_t mode, uid_t owner);
/* The same of a symbolic link; what it leads to is its content. */
_must_check_ _nonnull_ int root_compare_link(const Root *r, const char *path, const char *target);

/* A file is replaced in steps, so that many can share the wait for the disk: stage (temporary file beside
 * path, 0 when root_compare() says so and nothing is staged), sync, publish (rename). Never through a link at
 * path itself. */
typedef struct RootTmp { int dir_fd, fd; char *name, *temporary; } RootTmp;
_must_check_ _nonnull_ int root_tmp_stage(const Root *r, const char *path, const void *data, size_t size,
                                          mode_t mode, uid_t owner, RootTmp *ret);
_must_check_ _nonnull_ int root_tmp_sync(RootTmp *t);
_must_check_ _nonnull_ int root_tmp_publish(RootTmp *t);
_nonnull_ void root_tmp_release(RootTmp *t);    /* always, published or not */
/* Removes the temporary files that a killed run has left beside path: they may hold what path no longer does.
 * Nobody else may be staging below the root. Returns how many there were. */
_must_check_ _nonnull_ int root_tmp_sweep(const Root *r, const char *path);
/* All steps at once, missing directories made 0755: 1 replaced, 0 was the same. */
_must_check_ _nonnull_ int root_replace(const Root *r, const char *path, const void *data, size_t size,
                                        mode_t mode);
/* The same without the wait for the disk: for /run, which no power cut outlives. */
_must_check_ _nonnull_ int root_replace_volatile(const Root *r, const char *path, const void *data,
                                                 size_t size, mode_t mode);
