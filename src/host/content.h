/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What lies on a block device: libblkid's superblock and partition table probes, and md's own superblock
 * behind its signature. libblkid comes by dlopen, for only a node with local disks wants it. Used to detect,
 * and again by apply right before a write. */
#include "host/host.h"

/* Probes the device (or, in a fixture, the image) at path below root; never writes, never takes it
 * exclusively. 0 whatever lies there, CONTENT_UNREADABLE included; -EACCES and -EPERM where we may not look,
 * -ENOENT where it is not there; -ELIBACC with a diagnostic where libblkid cannot be loaded. */
_must_check_ _nonnull_ int content_probe(const Root *root, const char *path, Content *ret, Diag *diag);
/* "xfs file system \"data\"", "member 2 of md array host:kubernetes (raid0 of 4)", "partition table (gpt)",
 * "nothing": one clause for a person; the caller frees it. */
_malloc_ _nonnull_ char *content_describe(const Content *c);
/* The 4096 bytes at offset of a device as an md superblock of metadata 1.x; -EINVAL where they are none, or a
 * damaged one. */
#define MD_SUPERBLOCK_SIZE 4096
_must_check_ _nonnull_ int raid_member_parse(const void *block, uint64_t offset, RaidMember *ret);
/* The name of an array without the host's before it: "kubernetes" for "ip-10-0-0-1:kubernetes" (mdadm(8),
 * --homehost). */
_nonnull_ const char *raid_short_name(const char *name);
/* Does the superblock at the start of the device carry the label of a file system whose making was not
 * finished? */
#define LABEL_UNFINISHED "nodestrap-mk"         /* while mkfs runs and until all is on the
                                                 * disk; 12 characters is xfs's limit */
#define LABEL_FINISHED   "kubernetes"
_nonnull_ bool content_unfinished(const Content *c);
