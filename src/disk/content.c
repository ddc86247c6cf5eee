/* SPDX-License-Identifier: Apache-2.0
 * Finds what is on a device by libblkid (util-linux), with the same signatures as udev, mkfs and lsblk. For
 * an md member it also reads the superblock (linux/raid/md_p.h; md(4)). */
#include "disk/disk.h"

#include "base/library.h"
#include "base/package.h"
#include "base/str.h"

#include <blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLKID_FUNCTIONS(X)                                          \
        X(new_probe, blkid_new_probe)                               \
        X(free_probe, blkid_free_probe)                             \
        X(set_device, blkid_probe_set_device)                       \
        X(enable_superblocks, blkid_probe_enable_superblocks)       \
        X(set_superblocks_flags, blkid_probe_set_superblocks_flags) \
        X(enable_partitions, blkid_probe_enable_partitions)         \
        X(do_safeprobe, blkid_do_safeprobe)                         \
        X(do_probe, blkid_do_probe)                                 \
        X(reset_probe, blkid_reset_probe)                           \
        X(lookup_value, blkid_probe_lookup_value)
typedef struct Blkid { BLKID_FUNCTIONS(LIBRARY_POINTER) } Blkid;

static Blkid blkid;
static pthread_once_t blkid_once = PTHREAD_ONCE_INIT;   /* executors probe on threads */
static char *blkid_error;                              /* NULL: it is loaded */

static void load_blkid(void) {
        (void)!library_load("libblkid.so.1", BLKID_FUNCTIONS(LIBRARY_NAME), BLKID_PACKAGE, &blkid,
                            &blkid_error);
}

static void probe_freep(blkid_probe *p) {
        if (*p)
                blkid.free_probe(*p);
}

static int unreadable(Content *c, char *error) {
        content_done(c);
        *c = (Content){ .kind = CONTENT_UNREADABLE, .error = error };
        return 0;
}

static char *value_of(blkid_probe p, const char *name) {
        const char *data = NULL;
        return blkid.lookup_value(p, name, &data, NULL) == 0 ? xstrdup(data) : NULL;
}

/* All members of an existing array: a single one may have an old mark. */
static bool members_are_marked(const Root *root, const char *path) {
        _free_ char *slaves = xasprintf("/sys/block/%s/slaves", path_last(path));
        _strv_ char **members = NULL;
        if (root_list(root, slaves, &members) < 0 || !members)
                return false;
        for (char **m = members; *m; m++)
                if (!disk_is_marked(root, *m))
                        return false;
        return true;
}

/* No signature; libblkid also reports some read errors as that. */
static int take_unknown(const Root *root, const char *path, int fd, uint64_t size, Content *c) {
        uint64_t first;
        bool marked;
        char *error = blank_look(fd, size, &first, &marked);
        if (error)
                return unreadable(c, error);
        c->kind = first == size                              ? CONTENT_BLANK
                  : marked || members_are_marked(root, path) ? CONTENT_REMAINS
                                                             : CONTENT_DATA;
        if (c->kind == CONTENT_DATA)
                c->error = xasprintf("byte %ju is not zero", (uintmax_t)first);
        return 0;
}

static int take_ambivalent(blkid_probe p, Content *c) {
        _strv_ char **found = NULL;
        blkid.reset_probe(p);
        while (blkid.do_probe(p) == 0) {
                char *name = value_of(p, "TYPE") ?: value_of(p, "PTTYPE");
                if (name)
                        strv_push(&found, name);
        }
        c->kind = CONTENT_OTHER;
        c->type = xstrdup("ambivalent");
        c->error = strv_join(found, ", ");
        return 0;
}

static int take_raid(int fd, blkid_probe p, Content *c) {
        _free_ char *where = value_of(p, "SBMAGIC_OFFSET"), *version = value_of(p, "VERSION"),
                    *block = xcalloc(MD_SUPERBLOCK_SIZE, 1);
        uint64_t offset = 0;

        c->kind = CONTENT_RAID_MEMBER;
        if (!streq(c->type, "linux_raid_member") || !version || !startswith(version, "1.") || !where ||
            parse_u64(where, &offset) < 0)
                return 0;
        char *error = disk_read(fd, block, MD_SUPERBLOCK_SIZE, offset);
        if (error)
                return unreadable(c, error);
        if (raid_member_parse(block, offset, &c->raid) < 0)
                c->error = xstrdup("its superblock is damaged");
        return 0;
}

static int take_values(int fd, blkid_probe p, Content *c) {
        _free_ char *usage = value_of(p, "USAGE"), *table = value_of(p, "PTTYPE"),
                    *broken = value_of(p, "SBBADCSUM");
        bool filesystem = usage && streq(usage, "filesystem");

        c->type = value_of(p, "TYPE");
        /* These are md members with any metadata (mdadm(8): imsm, ddf). */
        if (c->type && ONE_OF(c->type, "linux_raid_member", "isw_raid_member", "ddf_raid_member"))
                return take_raid(fd, p, c);
        c->kind = filesystem && !table && !broken ? CONTENT_FILESYSTEM : CONTENT_OTHER;
        c->label = value_of(p, "LABEL");
        c->uuid = value_of(p, "UUID");
        if (broken)
                c->error = xstrdup("its superblock is damaged");
        else if (c->type && table) {
                c->error = xasprintf("%s, %s", c->type, table);
                free(c->type);
                c->type = xstrdup("ambivalent");
        } else if (!c->type)
                c->type = TAKE_PTR(table);
        return 0;
}

static int probe(const Root *root, const char *path, int fd, uint64_t size, Content *c) {
        _cleanup_(probe_freep) blkid_probe p = blkid.new_probe();
        if (!p || blkid.set_device(p, fd, 0, 0) < 0)
                return unreadable(c, xstrdup(strerror(errno)));
        blkid.enable_superblocks(p, 1);
        /* BADCSUM: a file system with a damaged superblock still counts. */
        blkid.set_superblocks_flags(p, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE | BLKID_SUBLKS_LABEL |
                                               BLKID_SUBLKS_UUID | BLKID_SUBLKS_VERSION | BLKID_SUBLKS_MAGIC |
                                               BLKID_SUBLKS_BADCSUM);
        blkid.enable_partitions(p, 1);
        errno = 0;
        switch (blkid.do_safeprobe(p)) {
        case 0:
                return take_values(fd, p, c);
        case 1:
                return take_unknown(root, path, fd, size, c);
        case -2:
                return take_ambivalent(p, c);
        default:
                return unreadable(c, xstrdup(strerror(errno ?: EIO)));
        }
}

static int probe_file(const Root *root, const char *path, int fd, Content *c, Diag *diag) {
        struct stat st;
        if (fstat(fd, &st) < 0)
                return unreadable(c, xstrdup(strerror(errno)));
        if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
                return unreadable(c, xstrdup("it is not a block device"));
        off_t size = lseek(fd, 0, SEEK_END);
        if (size <= 0)
                return unreadable(c, xstrdup(size < 0 ? strerror(errno) : "its size is 0"));
        pthread_once(&blkid_once, load_blkid);
        if (blkid_error)
                return diag_error(diag, -ELIBACC, CAUSE_STORAGE_TOOL,
                                  "libblkid.so.1, which identifies disk content, cannot be loaded: %s",
                                  blkid_error);
        /* md bypasses the page cache of members: read from the disk. */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        return probe(root, path, fd, (uint64_t)size, c);
}

int content_probe(const Root *root, const char *path, Content *ret, Diag *diag) {
        Content c = {};
        _cleanup_(close_fd) int fd = root_open(root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);

        if (fd == -EACCES || fd == -EPERM || fd == -ENOENT || fd == -ENOTDIR)
                return fd == -ENOTDIR ? -ENOENT : fd;
        int r = fd < 0 ? unreadable(&c, xstrdup(strerror(-fd))) : probe_file(root, path, fd, &c, diag);
        if (r >= 0)
                *ret = c;
        return r;
}

void content_done(Content *c) {
        FREE_ALL(c->type, c->label, c->uuid, c->raid.uuid, c->raid.name, c->error);
        *c = (Content){};
}

bool content_unfinished(const Content *c) {
        return c->kind == CONTENT_REMAINS || ((c->kind == CONTENT_FILESYSTEM || c->kind == CONTENT_OTHER) &&
                                              c->label && streq(c->label, LABEL_UNFINISHED));
}

static const struct { const char *type, *words; } others[] = {
        { "crypto_LUKS",  "LUKS container"          },
        { "LVM2_member",  "LVM physical volume"     },
        { "swap",         "swap space"              },
        { "swsuspend",    "hibernation image" },
        { "gpt",          "partition table (gpt)"   },
        { "dos",          "partition table (dos)"   },
        { "PMBR",         "partition table (gpt: only the protective MBR)" },
        { "ambivalent",   "signatures that contradict each other" },
};

static void describe_member(const Content *c, Text *t) {
        static const char *const levels[] = {
                [0] = "raid0", [1] = "raid1", [4] = "raid4", [5] = "raid5", [6] = "raid6", [10] = "raid10"
        };
        const RaidMember *m = &c->raid;

        if (!m->uuid) {
                text_add(t, "member of an array (%s)", c->type);
                return;
        }
        if (m->role >= 0)
                text_add(t, "member %d of md array ", m->role);
        else
                text_add(t, "spare of md array ");
        text_add_shown(t, m->name, strlen(m->name), 64, 0);
        if (m->level >= 0 && (size_t)m->level < ARRAY_SIZE(levels) && levels[m->level])
                text_add(t, " (%s of %u)", levels[m->level], m->disks);
        else
                text_add(t, " (level %d, %u disks)", m->level, m->disks);
}

char *content_describe(const Content *c) {
        static const char *const words[] = {
                [CONTENT_UNKNOWN] = "unknown content",
                [CONTENT_BLANK] = "nothing",
                [CONTENT_DATA] = "data without a signature",
                [CONTENT_REMAINS] = "an unfinished nodestrap file system or array",
                [CONTENT_UNREADABLE] = "unreadable content",
        };
        Text t = {};
        if (c->kind == CONTENT_RAID_MEMBER)
                describe_member(c, &t);
        else if (c->kind == CONTENT_FILESYSTEM)
                text_add(&t, "%s file system", c->type);
        else if (c->kind == CONTENT_OTHER)
                text_add(&t, "%s",
                         PICK(o, others, ARRAY_SIZE(others), streq(o->type, c->type), o->words, c->type));
        else
                text_add(&t, "%s", words[c->kind]);
        if (c->label) {
                text_add(&t, " \"");
                text_add_shown(&t, c->label, strlen(c->label), 64, '"');
                text_add(&t, "\"");
        }
        if (c->error)
                text_add(&t, " (%s)", c->error);
        return text_take(&t);
}
