/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Executors of instance stores and volumes, which check disks right before they write, and of the sandbox
 * image that blank stores lack (image.c). */
#include "apply/work.h"
#include "disk/disk.h"

/* Locks a device by flock(LOCK_EX), which stops udev rules (systemd.io/BLOCK_DEVICE_LOCKING); may wait for
 * udev. flags: O_RDWR or O_RDONLY. Returns a descriptor or a negative errno; closing a writable one makes
 * udev look again. */
_must_check_ _nonnull_ int disk_lock(const Root *root, const char *name, int flags);
/* Checks serial and kind of /dev/NAME without opening it. 0, or work_fail() was called. */
_must_check_ _nonnull_ int disk_same(Work *w, const char *name, const char *serial);
_must_check_ _nonnull_ int disks_same(Work *w);
/* The same, and neither mounted nor held, except by holder (or NULL). 0, or work_fail() was called. */
_must_check_ _nonnull(1, 2, 3) int disk_still(Work *w, const char *name, const char *serial,
                                              const char *holder);
/* The device of a step: its one disk, or the running array of exactly its disks. -ENODEV after
 * work_fail(). */
_must_check_ _nonnull_ int step_device(Work *w, char **ret);
/* The md array of a disk, running or not; NULL: none. Fails for any other holder. */
_must_check_ _nonnull_ int disk_holder(Work *w, const char *name, char **ret);
_must_check_ _nonnull_ bool array_runs(const Root *root, const char *array);
_must_check_ _nonnull_ int device_content(Work *w, const char *name, Content *ret);
/* "nvme1n1 (AWS0123…)": one disk; all of them, with commas. */
_malloc_ _nonnull_ char *disk_shown(const Work *w, const char *name);
_malloc_ _nonnull_ char *disks_shown(const Work *w);
_nonnull_ int device_refuse(Work *w, const char *name, const Content *c);

/* CHECK_DONE_ALREADY for STEP_KEEP; fails for STEP_UNKNOWN. */
_must_check_ _nonnull_ int storage_check(Task *t);
_malloc_ _nonnull_ char *storage_waiting(Task *t);
WorkFunction raid_work, filesystem_work, mount_work, grow_work, move_work, bind_work, image_work, pin_work;

/* fill-marker.c. mark: a file on the volume at place. begin writes a token of this root disk to it; check
 * fails unless both agree; end removes it from the root disk. 0, or work_fail() was called. */
_must_check_ _nonnull_ int filling_begin(Work *w, const char *place, const char *mark);
_must_check_ _nonnull_ int filling_check(Work *w, const char *place, const char *mark);
_must_check_ _nonnull_ int filling_end(Work *w, const char *place);
/* fd: the volume; first: its first target; none: it has no folder for any target. Warns of another layout. */
_must_check_ _nonnull_ int layout_check(Work *w, int fd, const Move *first, bool none);

/* mounts.c. Paths are below the root of the work. */

/* Mounts a device path on target. 0, or work_fail() with the error of libmount. */
_must_check_ _nonnull_ int mount_device(Work *w, const char *device, const char *target, const char *type,
                                        const char *options);
/* Binds source over target and makes it recursively shared. */
_must_check_ _nonnull_ int mount_bind(Work *w, const char *source, const char *target);
/* 1 and a mount point below this real path, or 0. */
_must_check_ _nonnull_ int mount_below(Work *w, const char *path, char **ret);

/* Is the directory a mount of the device path? 1, 0, or work_fail(). */
_must_check_ _nonnull_ int device_is_mounted(Work *w, const char *device, int fd);
_must_check_ int attributes_copy(int from, int to);

/* An open directory; mount: it is a mount point. */
typedef struct Place { unsigned major, minor; uint64_t inode; bool mount; } Place;
_must_check_ _nonnull_ int place_look(int fd, Place *ret);
bool place_same(Place a, Place b);
/* Its path without links; NULL if /proc is not mounted. */
char *place_path(int fd);
