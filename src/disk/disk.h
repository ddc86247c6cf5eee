/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kind of a disk by its name, and its content by libblkid and md superblocks. libblkid is loaded by
 * dlopen, as only nodes with local disks need it. Executors probe again right before they write. */
#include "base/error.h"
#include "base/root.h"

/* Guarantee: a disk is written only if it is zeros at all checked places (blank.c), or says that its content
 * is not needed. That is a superblock of our array with other members lost, our label of an unfinished file
 * system, or our mark. All else belongs to another owner, who must free it. For power cuts, the mark is
 * written before anything else that lacks such a superblock or label, and removed when that exists. Each step
 * is synced before the next. No state about disks is kept elsewhere, since disks move between machines. */

typedef enum DiskKind { DISK_OTHER, DISK_INSTANCE_STORE, DISK_EBS } DiskKind;
/* model: from the controller; NULL: DISK_OTHER. */
DiskKind disk_kind(const char *model);

typedef enum ContentKind {
        CONTENT_UNKNOWN,                /* not probed: a model, the config phase, not root */
        CONTENT_BLANK,                  /* zeros at all checked places */
        CONTENT_DATA,                   /* no signature, not zeros: encrypted or lost */
        CONTENT_REMAINS,                /* the same with our mark */
        CONTENT_FILESYSTEM,
        CONTENT_RAID_MEMBER,            /* md, any version of its metadata */
        CONTENT_OTHER,                  /* swap, LVM, LUKS, partitions, contradictions … */
        CONTENT_UNREADABLE,             /* reading failed: error says how */
} ContentKind;
/* An md superblock 1.x (linux/raid/md_p.h); uuid is NULL for other members. */
typedef struct RaidMember {
        char *uuid;                     /* of the array: "3aaa0122:29827cfa:5331ad66:ca767371" */
        char *name;                     /* as stored: "kubernetes", "ip-10-0-0-1:kubernetes" */
        int level;                      /* 0, 1, 10, … */
        unsigned layout;                /* raid10: number and layout of copies (md(4)) */
        unsigned disks;                 /* of the whole array */
        int role;                       /* 0 … disks - 1; -1: spare or faulty */
        uint64_t events;                /* the highest is the latest */
        uint64_t super_offset, data_offset;     /* bytes from the start of the device */
} RaidMember;
typedef struct Content {
        ContentKind kind;
        char *type;                     /* of libblkid: "xfs", "LVM2_member", "gpt"; NULL if blank */
        char *label, *uuid;             /* of a file system; or NULL */
        RaidMember raid;
        char *error;                    /* read error, damage, or contradicting signatures; or NULL */
} Content;
void content_done(Content *c);

/* Probes a device or image below root, read-only and not exclusive. 0 for any content, also
 * CONTENT_UNREADABLE; -EACCES, -EPERM or -ENOENT; -ELIBACC with a diagnostic without libblkid. */
_must_check_ _nonnull_ int content_probe(const Root *root, const char *path, Content *ret, Diag *diag);
/* "xfs file system \"data\"", "member 2 of md array host:kubernetes (raid0 of 4)" or "nothing", for messages;
 * the caller frees it. */
_malloc_ _nonnull_ char *content_describe(const Content *c);
#define LABEL_UNFINISHED "nodestrap-mk"         /* until all is on disk; xfs allows 12 characters */
#define LABEL_FINISHED   "kubernetes"
_nonnull_ bool content_unfinished(const Content *c);

/* The instance store array: the name of nodeadm, or ours if a foreign array has that name. Its members
 * identify it. */
#define RAID_NAME        "kubernetes"
#define RAID_OTHER_NAME  "nodestrap"
#define RAID_DEVICE      "/dev/md/" RAID_NAME
/* Our name and metadata 1.2, as mdadm and the AWS script make it? Before that metadata the disk is unused. */
_nonnull_ bool raid_is_ours(const RaidMember *m);

/* Parses an md superblock 1.x that was read at offset; -EINVAL if invalid or damaged. The caller frees the
 * strings. */
#define MD_SUPERBLOCK_SIZE 4096
_must_check_ _nonnull_ int raid_member_parse(const void *block, uint64_t offset, RaidMember *ret);
/* Without the host: "kubernetes" in "ip-10-0-0-1:kubernetes" (mdadm(8), --homehost). */
_nonnull_ const char *raid_short_name(const char *name);

/* Reads size bytes. NULL, or an error text that the caller frees. */
_must_check_ _nonnull_ char *disk_read(int fd, void *data, size_t size, uint64_t offset);
/* *ret_first: the first non-zero byte that was seen, or size. *ret_marked: our mark was seen. NULL, or a read
 * error that the caller frees. */
_must_check_ _nonnull_ char *blank_look(int fd, uint64_t size, uint64_t *ret_first, bool *ret_marked);
/* Writes or removes the mark that allows overwriting, and syncs. member: before the superblock of an array
 * member; else in many places. 0 or a negative errno. */
_must_check_ int disk_mark(int fd, bool member, bool set);
_nonnull_ bool disk_is_marked(const Root *root, const char *name);
