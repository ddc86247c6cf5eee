/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a disk is by its name, and what lies on it: libblkid's superblock and partition table probes, and md's
 * own superblock behind its signature. libblkid comes by dlopen, for only a node with local disks wants it.
 * The host is detected with it, and the executors look again right before they write. */
#include "base/error.h"
#include "base/root.h"

/* What is promised: a disk is written to only if it is zeros wherever it is looked at (blank.c), or if it
 * says itself that nothing on it is needed: a superblock of our array of which other members are lost, our
 * label of a file system whose making was not finished, or our mark. Everything else is somebody's, and
 * whoever that is has to free it. So that the power may fail at any moment, the mark is on the disks before
 * anything else is written that has no such superblock or label yet, and it goes when that is there; each
 * step of this is down on the disks before the next one begins. No file elsewhere says anything of disks, for
 * they go to other machines, and come back. */

typedef enum DiskKind { DISK_OTHER, DISK_INSTANCE_STORE, DISK_EBS } DiskKind;
/* By the model that the disk's controller reports; NULL: DISK_OTHER. */
DiskKind disk_kind(const char *model);

/* What lies on a block device, by libblkid's signatures. */
typedef enum ContentKind {
        CONTENT_UNKNOWN,                /* nobody looked: a model, the config phase, not root */
        CONTENT_BLANK,                  /* zeros, wherever it was looked at */
        CONTENT_DATA,                   /* no signature, and not zeros: enciphered, or
                                         * its superblock is lost */
        CONTENT_REMAINS,                /* the same under our mark */
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
/* Does it carry the label of a file system whose making was not finished, or our mark? */
#define LABEL_UNFINISHED "nodestrap-mk"         /* while mkfs runs and until all is on the
                                                 * disk; 12 characters is xfs's limit */
#define LABEL_FINISHED   "kubernetes"
_nonnull_ bool content_unfinished(const Content *c);

/* The array of the instance stores: as nodeadm has it, or with a name of its own where somebody else's array
 * has that one already. What belongs to it is told by its members. */
#define RAID_NAME        "kubernetes"
#define RAID_OTHER_NAME  "nodestrap"
#define RAID_DEVICE      "/dev/md/" RAID_NAME
/* Is it a member of an array of ours, by its name, and by metadata 1.2, before which the start of the disk is
 * nobody's: mdadm's default, by which AWS's script makes its arrays, too? */
_nonnull_ bool raid_is_ours(const RaidMember *m);

/* The 4096 bytes at offset of a device as an md superblock of metadata 1.x; -EINVAL where they are none, or a
 * damaged one. The strings are the caller's. */
#define MD_SUPERBLOCK_SIZE 4096
_must_check_ _nonnull_ int raid_member_parse(const void *block, uint64_t offset, RaidMember *ret);
/* The name of an array without the host's before it: "kubernetes" for "ip-10-0-0-1:kubernetes" (mdadm(8),
 * --homehost). */
_nonnull_ const char *raid_short_name(const char *name);

/* ---- blank.c ---- */
/* Reads it all: NULL, or a sentence that the caller frees. */
_must_check_ _nonnull_ char *disk_read(int fd, void *data, size_t size, uint64_t offset);
/* Is it zeros? *ret_first: a byte that is not, the first that was seen; size: none was. *ret_marked: our mark
 * was seen. NULL, or why it cannot be read: a sentence that the caller frees. */
_must_check_ _nonnull_ char *blank_look(int fd, uint64_t size, uint64_t *ret_first, bool *ret_marked);
/* Writes the mark that nothing on the device is needed, or takes away what is left of it; down to the disk.
 * member: in front of the superblock of an array that the disk becomes a member of; else all over it. 0 or a
 * negative errno. */
_must_check_ int disk_mark(int fd, bool member);
_must_check_ int disk_unmark(int fd, bool member);
/* Does the member /dev/NAME of an array carry it? */
_nonnull_ bool disk_is_marked(const Root *root, const char *name);
