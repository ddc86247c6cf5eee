/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a disk is by its name, and what lies on it: libblkid's superblock and partition table probes, and md's
 * own superblock behind its signature. libblkid comes by dlopen, for only a node with local disks wants it.
 * The host is detected with it, and the executors look again right before they write. */
#include "base/error.h"
#include "base/root.h"

typedef enum DiskKind { DISK_OTHER, DISK_INSTANCE_STORE, DISK_EBS } DiskKind;
/* By the model that the disk's controller reports; NULL: DISK_OTHER. */
DiskKind disk_kind(const char *model);

/* What lies on a block device, by libblkid's signatures. */
typedef enum ContentKind {
        CONTENT_UNKNOWN,                /* nobody looked: a model, the config phase, not root */
        CONTENT_BLANK,
        CONTENT_FILESYSTEM,
        CONTENT_RAID_MEMBER,            /* md, any version of its metadata */
        CONTENT_OTHER,                  /* swap, LVM, LUKS, a partition table, two
                                         * signatures that contradict each other … */
        CONTENT_UNREADABLE,             /* reading failed: error says how */
} ContentKind;
/* The superblock of an md member with metadata 1.x (linux/raid/md_p.h); anything else leaves uuid NULL. */
typedef struct RaidMember {
        char *uuid;                     /* of the array, as md prints it:
                                         * "3aaa0122:29827cfa:5331ad66:ca767371" */
        char *name;                     /* as stored: "kubernetes", "ip-10-0-0-1:kubernetes" */
        int level;                      /* 0, 1, 10, … */
        unsigned layout;                /* of raid10: how many copies, and where (md(4)) */
        unsigned disks;                 /* of the whole array */
        int role;                       /* 0 … disks - 1; -1: spare or faulty */
        uint64_t events;                /* the highest among members is the latest */
        uint64_t super_offset, data_offset;     /* bytes from the start of the device */
} RaidMember;
typedef struct Content {
        ContentKind kind;
        char *type;                     /* libblkid's: "xfs", "linux_raid_member",
                                         * "LVM2_member", "gpt"; NULL where blank */
        char *label, *uuid;             /* of a file system; or NULL */
        RaidMember raid;
        char *error;                    /* why it cannot be read, what is damaged, or which
                                         * signatures contradict each other; or NULL */
} Content;
void content_done(Content *c);

/* Probes the device (or, in a fixture, the image) at path below root; never writes, never takes it
 * exclusively. 0 whatever lies there, CONTENT_UNREADABLE included; -EACCES and -EPERM where we may not look,
 * -ENOENT where it is not there; -ELIBACC with a diagnostic where libblkid cannot be loaded. */
_must_check_ _nonnull_ int content_probe(const Root *root, const char *path, Content *ret, Diag *diag);
/* "xfs file system \"data\"", "member 2 of md array host:kubernetes (raid0 of 4)", "partition table (gpt)",
 * "nothing": one clause for a person; the caller frees it. */
_malloc_ _nonnull_ char *content_describe(const Content *c);
/* Does the superblock at the start of the device carry the label of a file system whose making was not
 * finished? */
#define LABEL_UNFINISHED "nodestrap-mk"         /* while mkfs runs and until all is on the
                                                 * disk; 12 characters is xfs's limit */
#define LABEL_FINISHED   "kubernetes"
_nonnull_ bool content_unfinished(const Content *c);

/* The 4096 bytes at offset of a device as an md superblock of metadata 1.x; -EINVAL where they are none, or a
 * damaged one. The strings are the caller's. */
#define MD_SUPERBLOCK_SIZE 4096
_must_check_ _nonnull_ int raid_member_parse(const void *block, uint64_t offset, RaidMember *ret);
/* The name of an array without the host's before it: "kubernetes" for "ip-10-0-0-1:kubernetes" (mdadm(8),
 * --homehost). */
_nonnull_ const char *raid_short_name(const char *name);
