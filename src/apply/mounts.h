/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* mount(2) and what is mounted: libmount knows why a mount failed and reads mountinfo; it is loaded only
 * where there is something to mount. Paths lie below the work's root, links in them are followed there. */
#include "apply/work.h"

/* Mounts device (a path) of this type and options ("noatime") on target, which exists. 0, or work_fail() with
 * the device, the target and libmount's own words. */
_must_check_ _nonnull_ int mount_device(Work *w, const char *device, const char *target, const char *type,
                                        const char *options);
/* Binds source over target and makes it and all below it shared. */
_must_check_ _nonnull_ int mount_bind(Work *w, const char *source, const char *target);
/* A mount point below the directory with this real path: 1 and its path, or 0. */
_must_check_ _nonnull_ int mount_below(Work *w, const char *path, char **ret);

/* Is what is seen through this directory a mount of the device (a path)? 1, 0, or work_fail(). */
_must_check_ _nonnull_ int device_is_mounted(Work *w, const char *device, int fd);
/* A directory that covers another looks like it from outside: mode, owner, SELinux label. */
_must_check_ int attributes_copy(int from, int to);

/* An open directory: which one it is, and whether a mount begins there. */
typedef struct Place { unsigned major, minor; uint64_t inode; bool mount; } Place;
_must_check_ _nonnull_ int place_look(int fd, Place *ret);
bool place_same(Place a, Place b);
/* Its path for programs and system calls that want one, without links; NULL where /proc is not mounted. */
char *place_path(int fd);
