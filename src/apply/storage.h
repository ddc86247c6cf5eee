/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The executors of instance stores (raid.c, filesystem.c, mount.c, move.c) and what they share (disk.c): each
 * looks again, right before it writes, whether the disk is what the plan says. And that of what a store lacks
 * when the disks came back blank (image.c). */
#include "apply/work.h"
#include "disk/disk.h"

/* One block device is ours for a moment: flock(LOCK_EX), which udev respects, so that no rule probes or
 * assembles it meanwhile (systemd.io/BLOCK_DEVICE_LOCKING). Waits for udev where that has it. Close the
 * descriptor, which can write, to let it go: udev looks at it anew then. A descriptor or a negative errno. */
_must_check_ _nonnull_ int disk_lock(const Root *root, const char *name);
/* Is /dev/NAME still the disk with this serial, and an instance store? Opens nothing. 0, or work_fail() was
 * called. */
_must_check_ _nonnull_ int disk_same(Work *w, const char *name, const char *serial);
/* The same of all disks of the step. */
_must_check_ _nonnull_ int disks_same(Work *w);
/* Is /dev/NAME still the disk with this serial, an instance store, and neither mounted nor held by anything
 * but `holder` (NULL: by nothing)? 0, or work_fail() was called. */
_must_check_ _nonnull(1, 2, 3) int disk_still(Work *w, const char *name, const char *serial,
                                              const char *holder);
/* The kernel name of what a step works on: the array that runs and holds all its disks and no others, or its
 * one disk. -ENODEV (failed) if there is none. */
_must_check_ _nonnull_ int step_device(Work *w, char **ret);
/* The md array that holds a disk, running or not; *ret is NULL where nothing does. Fails where anything else
 * does. */
_must_check_ _nonnull_ int disk_holder(Work *w, const char *name, char **ret);
/* Does the array (it exists) run? */
_must_check_ _nonnull_ bool array_runs(const Root *root, const char *array);
/* content_probe() of /dev/NAME; failed where it cannot be read. */
_must_check_ _nonnull_ int device_content(Work *w, const char *name, Content *ret);
/* "nvme1n1 (AWS0123…)": a disk of this step for a person; all of them with commas between. */
_malloc_ _nonnull_ char *disk_shown(const Work *w, const char *name);
_malloc_ _nonnull_ char *disks_shown(const Work *w);
/* Fails because the device carries what the plan did not expect; nothing was written. */
_nonnull_ int device_refuse(Work *w, const char *name, const Content *c);

/* CHECK_DONE_ALREADY for STEP_KEEP; fails for STEP_UNKNOWN */
_must_check_ _nonnull_ int storage_check(Task *t);
_malloc_ _nonnull_ char *storage_waiting(Task *t);
/* On a thread: > 0 done, 0 unchanged, < 0 after work_fail(). */
_must_check_ _nonnull_ int raid_work(Work *w);
_must_check_ _nonnull_ int filesystem_work(Work *w);
_must_check_ _nonnull_ int mount_work(Work *w);
_must_check_ _nonnull_ int grow_work(Work *w);
_must_check_ _nonnull_ int move_work(Work *w);
_must_check_ _nonnull_ int bind_work(Work *w);
_must_check_ _nonnull_ int image_work(Work *w);

/* ---- fill-marker.c ---- */
/* mark: a file on the volume that is mounted at place. begin: it gets the word that this root disk keeps for
 * the volume; end: the root disk's is removed; check: fails unless both are there and the same. 0, or
 * work_fail() was called. */
_must_check_ _nonnull_ int filling_begin(Work *w, const char *place, const char *mark);
_must_check_ _nonnull_ int filling_check(Work *w, const char *place, const char *mark);
_must_check_ _nonnull_ int filling_end(Work *w, const char *place);
/* fd: the volume of the work's move-files, before it takes anything in; first: its first target; none: it has
 * a folder for none of them. Warns where it was filled under another layout. */
_must_check_ _nonnull_ int layout_check(Work *w, int fd, const Move *first, bool none);

/* ---- mounts.c ---- */
/* mount(2) and what is mounted: libmount knows why a mount failed and reads mountinfo; it is loaded only
 * where there is something to mount. Paths lie below the work's root, links in them are followed there. */

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
