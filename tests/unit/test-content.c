/* SPDX-License-Identifier: Apache-2.0
 * The content of a disk, on images: mkfs makes them if it is installed; where mkfs would need a device, the
 * bytes are hand-written. */
#include "disk/disk.h"

#include "superblock.h"
#include "test.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MIB (1ULL << 20)

typedef struct Image { char dir[32]; Root *root; int fd; uint64_t size; Content content; Diag diag; } Image;

static bool run_program(char *const *argv) {
        _cleanup_(child_result_done) ChildResult c = {};
        int r = child_run(argv, 60 * USEC_PER_SEC, 4096, &c);
        if (r == -ENOENT)
                return false;
        if (r < 0 || c.status != 0)
                FAIL("%s: %s", argv[0], c.errors ?: strerror(-r));
        return true;
}

static void image_open(Image *i, uint64_t size) {
        strcpy(i->dir, P_tmpdir "/test-content-XXXXXX");
        ASSERT_TRUE(mkdtemp(i->dir));
        ASSERT_OK(root_new(i->dir, &i->root));
        i->fd = ASSERT_OK(root_open(i->root, "/disk", O_RDWR | O_CREAT));
        ASSERT_EQ(ftruncate(i->fd, (off_t)size), 0);
        i->size = size;
}

static void image_done(Image *i) {
        close(i->fd);
        root_free(i->root);
        content_done(&i->content);
        diag_done(&i->diag);
        run_program((char *[]){ (char *)"rm", (char *)"-r", i->dir, NULL });
}

#define IMAGE(name, size) _cleanup_(image_done) Image name = {}; image_open(&name, size)

static void image_write(Image *i, uint64_t at, const void *data, size_t size) {
        ASSERT_EQ(pwrite(i->fd, data, size, (off_t)at), size);
}

static void image_read(Image *i, uint64_t at, void *data, size_t size) {
        ASSERT_EQ(pread(i->fd, data, size, (off_t)at), size);
}

/* Runs program with these arguments and then the image; false if the program is missing. */
static bool image_make(Image *i, const char *program, const char *a, const char *b, const char *c) {
        _free_ char *path = xasprintf("%s/disk", i->dir);
        char *argv[] = { (char *)program, (char *)a, (char *)b, (char *)c, path, NULL };
        if (run_program(argv))
                return true;
        printf("# no %s here\n", program);
        ASSERT_TRUE(!getenv("NODESTRAP_TEST_REQUIRE"));
        return false;
}

static void image_probe(Image *i) {
        content_done(&i->content);
        ASSERT_EQ(content_probe(i->root, "/disk", &i->content, &i->diag), 0);
}

static void image_is(Image *i, ContentKind kind, const char *type, const char *described) {
        image_probe(i);
        _free_ char *text = content_describe(&i->content);
        ASSERT_STREQ(text, described);
        ASSERT_EQ(i->content.kind, kind);
        if (type)
                ASSERT_STREQ(i->content.type, type);
        else
                ASSERT_TRUE(!i->content.type);
}

static void put_super_at(Image *i) {
        uint8_t block[MD_SUPER_SIZE];
        md_super_make(block, &(MdSuper){ .name = "kubernetes", .disks = 2, .at = 4096, .data = 2 * MIB });
        image_write(i, 4096, block, sizeof block);
}

/* ---- blank, data, unreadable ---- */

TEST(blank) {
        IMAGE(i, 16 * MIB);
        image_is(&i, CONTENT_BLANK, NULL, "nothing");
}

TEST(blank_and_small) {
        IMAGE(i, 512);
        image_is(&i, CONTENT_BLANK, NULL, "nothing");
}

/* Data without a signature: in each place that the probe reads, in one block and between two. */
TEST(data_without_a_signature) {
        static const struct { uint64_t at; const char *described; } places[] = {
                { 0,                     "data without a signature (byte 0 is not zero)"         },
                { 511,                   "data without a signature (byte 511 is not zero)"       },
                { 1 * MIB - 1,           "data without a signature (byte 1048575 is not zero)"   },
                { 16 * MIB + 4095,       "data without a signature (byte 16781311 is not zero)"  },
                { 65 * MIB,              "data without a signature (byte 68157440 is not zero)"  },
                { 960 * MIB,             "data without a signature (byte 1006632960 is not zero)" },
                { 4096 * MIB - MIB,      "data without a signature (byte 4293918720 is not zero)" },
                { 4096 * MIB - 1,        "data without a signature (byte 4294967295 is not zero)" },
                { 960 * MIB + 4096,      "nothing" },           /* the probe does not read all of a disk */
        };
        for (size_t n = 0; n < ARRAY_SIZE(places); n++) {
                IMAGE(i, 4096 * MIB);
                image_write(&i, places[n].at, "\x5a", 1);
                image_is(&i, n + 1 < ARRAY_SIZE(places) ? CONTENT_DATA : CONTENT_BLANK, NULL, places[n].described);
                ASSERT_TRUE(!content_unfinished(&i.content));
        }
}

TEST(data_on_small_disks) {
        static const uint64_t sizes[] = { 512, 4096, 65536, MIB, 2 * MIB, 2 * MIB + 512, 3 * MIB + 4096 };
        for (size_t n = 0; n < ARRAY_SIZE(sizes); n++) {
                IMAGE(i, sizes[n]);
                image_write(&i, sizes[n] - 1, "\1", 1);
                image_probe(&i);
                ASSERT_EQ(i.content.kind, CONTENT_DATA);
        }
}

/* The superblock is gone, but the other data of the file system is there. */
TEST(data_of_a_lost_superblock) {
        IMAGE(i, 320 * MIB);
        if (!image_make(&i, "mkfs.xfs", "-q", "-L", "data"))
                return;
        _free_ char *zeros = xcalloc(1, MIB);
        for (uint64_t at = 0; at < 16; at++) {
                image_write(&i, at * MIB, zeros, MIB);
                image_write(&i, i.size - (at + 1) * MIB, zeros, MIB);
        }
        image_probe(&i);
        ASSERT_EQ(i.content.kind, CONTENT_DATA);
}

/* The read calls of this process so far, as the kernel counts them. */
static uint64_t reads(void) {
        _cleanup_(root_freep) Root *root = NULL;
        _free_ char *text = NULL;
        uint64_t n = 0;
        ASSERT_OK(root_new("/", &root));
        if (root_read(root, "/proc/self/io", 4096, &text, NULL) < 0)
                return 0;
        char *at = strstr(text, "syscr: ");
        ASSERT_TRUE(at);
        for (at += strlen("syscr: "); is_digit(*at); at++)
                n = 10 * n + (unsigned)(*at - '0');
        return n;
}

TEST(a_probe_takes_few_reads_on_a_large_disk) {
        IMAGE(i, 30720000ULL * MIB / 4);
        uint64_t before = reads();
        image_is(&i, CONTENT_BLANK, NULL, "nothing");
        if (before > 0 && !TRANSLATED_BY("valgrind"))   /* which itself reads between */
                ASSERT_TRUE(reads() - before < 1200);
}

/* Marked, a disk holds the remains of a format that a power failure ended; a signature counts more. */
TEST(marked_disks) {
        IMAGE(i, 1024 * MIB);
        ASSERT_OK(disk_mark(i.fd, false, true));
        image_is(&i, CONTENT_REMAINS, NULL, "an unfinished nodestrap file system or array");
        ASSERT_TRUE(content_unfinished(&i.content));
        image_write(&i, 4711, "half of a file system", 21);
        image_probe(&i);
        ASSERT_EQ(i.content.kind, CONTENT_REMAINS);
        ASSERT_OK(disk_mark(i.fd, false, false));
        image_is(&i, CONTENT_DATA, NULL, "data without a signature (byte 4711 is not zero)");
        image_write(&i, 4711, (char[21]){}, 21);
        image_is(&i, CONTENT_BLANK, NULL, "nothing");
        ASSERT_OK(disk_mark(i.fd, true, true));
        image_probe(&i);
        ASSERT_EQ(i.content.kind, CONTENT_REMAINS);
        ASSERT_TRUE(disk_is_marked(i.root, "disk") == false);  /* of /dev/disk, which is not there */
        put_super_at(&i);
        image_probe(&i);
        ASSERT_EQ(i.content.kind, CONTENT_RAID_MEMBER);
        ASSERT_OK(disk_mark(i.fd, true, false));
        image_probe(&i);
        ASSERT_EQ(i.content.kind, CONTENT_RAID_MEMBER);
}

/* An array is marked if all its members are: a single member may have kept an earlier mark. */
TEST(array_of_marked_members) {
        static const char *const members[] = { "m1", "m2" };
        IMAGE(i, 16 * MIB);
        image_write(&i, 4711, "half of a file system", 21);
        ASSERT_OK(root_make_dirs(i.root, "/dev", 0755));
        for (size_t n = 0; n < ARRAY_SIZE(members); n++) {
                _free_ char *slave = xasprintf("/sys/block/disk/slaves/%s", members[n]), *path = xasprintf("/dev/%s", members[n]);
                ASSERT_OK(root_make_dirs(i.root, slave, 0755));
                int fd = ASSERT_OK(root_open(i.root, path, O_RDWR | O_CREAT));
                ASSERT_EQ(ftruncate(fd, 4 * MIB), 0);
                close(fd);
        }
        for (size_t n = 0; n <= ARRAY_SIZE(members); n++) {
                image_probe(&i);
                ASSERT_EQ(i.content.kind, n < ARRAY_SIZE(members) ? CONTENT_DATA : CONTENT_REMAINS);
                if (n == ARRAY_SIZE(members))
                        break;
                _free_ char *path = xasprintf("/dev/%s", members[n]);
                int fd = ASSERT_OK(root_open(i.root, path, O_RDWR));
                ASSERT_OK(disk_mark(fd, true, true));
                close(fd);
                ASSERT_TRUE(disk_is_marked(i.root, members[n]));
        }
}

/* Some of the marks survive mkfs until they are removed; then no byte of them is left. */
TEST(marks_survive_mkfs) {
        static const struct { const char *program, *a, *b, *c; uint64_t mib; } all[] = {
                { "mkfs.xfs",  "-q", "-f", "-K",                                                320  },
                { "mkfs.xfs",  "-q", "-f", "-K",                                                1024 },
                { "mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1",  48   },
                { "mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1",  1024 },
        };
        for (size_t n = 0; n < ARRAY_SIZE(all); n++) {
                IMAGE(i, all[n].mib * MIB);
                uint64_t first;
                bool marked;
                ASSERT_OK(disk_mark(i.fd, false, true));
                if (!image_make(&i, all[n].program, all[n].a, all[n].b, all[n].c))
                        return;
                ASSERT_TRUE(!blank_look(i.fd, i.size, &first, &marked));
                ASSERT_TRUE(marked);
                ASSERT_OK(disk_mark(i.fd, false, false));
                ASSERT_TRUE(!blank_look(i.fd, i.size, &first, &marked));
                ASSERT_TRUE(!marked);
        }
}

TEST(a_size_of_zero_is_unreadable) {
        IMAGE(i, 0);
        image_is(&i, CONTENT_UNREADABLE, NULL, "unreadable content (its size is 0)");
}

TEST(content_is_unknown_before_a_probe) {
        Content c = {};
        _free_ char *text = content_describe(&c);
        ASSERT_STREQ(text, "unknown content");
}

/* Files of sysfs that claim 4096 bytes: one gives fewer, in which libblkid finds nothing, the other an error. */
TEST(errors_are_not_blank) {
        static const struct { const char *path, *error; } files[] = {
                { "/sys/class/net/lo/mtu",   "nothing is there" },
                { "/sys/class/net/lo/speed", "Invalid argument" },
        };
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(diag_done) Diag diag = {};
        ASSERT_OK(root_new("/", &root));
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _cleanup_(content_done) Content c = {};
                struct stat st;
                if (stat(files[i].path, &st) < 0 || st.st_size != 4096) {
                        printf("# no %s here\n", files[i].path);
                        continue;
                }
                ASSERT_OK(content_probe(root, files[i].path, &c, &diag));
                ASSERT_EQ(c.kind, CONTENT_UNREADABLE);
                ASSERT_CONTAINS(c.error, files[i].error);
        }
}

TEST(a_folder_is_not_a_device) {
        IMAGE(i, 512);
        ASSERT_OK(root_make_dirs(i.root, "/folder", 0700));
        ASSERT_OK(content_probe(i.root, "/folder", &i.content, &i.diag));
        ASSERT_EQ(i.content.kind, CONTENT_UNREADABLE);
        ASSERT_STREQ(i.content.error, "it is not a block device");
}

TEST(a_pipe_does_not_hang_the_probe) {
        IMAGE(i, 512);
        _free_ char *path = xasprintf("%s/pipe", i.dir);
        ASSERT_EQ(mkfifo(path, 0600), 0);
        ASSERT_OK(content_probe(i.root, "/pipe", &i.content, &i.diag));
        ASSERT_STREQ(i.content.error, "it is not a block device");
}

TEST(link_in_a_circle) {
        IMAGE(i, 512);
        _free_ char *path = xasprintf("%s/circle", i.dir);
        ASSERT_EQ(symlink("circle", path), 0);
        ASSERT_OK(content_probe(i.root, "/circle", &i.content, &i.diag));
        ASSERT_EQ(i.content.kind, CONTENT_UNREADABLE);
        ASSERT_STREQ(i.content.error, strerror(ELOOP));
}

TEST(a_missing_disk_is_an_error) {
        IMAGE(i, 512);
        ASSERT_ERROR(content_probe(i.root, "/other", &i.content, &i.diag), ENOENT);
        ASSERT_ERROR(content_probe(i.root, "/disk/below", &i.content, &i.diag), ENOENT);
        ASSERT_EQ(i.diag.n, 0);
}

TEST(a_disk_without_permission_is_an_error) {
        IMAGE(i, 512);
        uid_t user = geteuid();
        ASSERT_EQ(fchmod(i.fd, 0), 0);
        if (user == 0)
                ASSERT_EQ(seteuid(65534), 0);
        int r = content_probe(i.root, "/disk", &i.content, &i.diag);
        if (user == 0)
                ASSERT_EQ(seteuid(0), 0);
        ASSERT_ERROR(r, EACCES);
        ASSERT_EQ(i.diag.n, 0);
}

/* ---- file systems ---- */

TEST(xfs) {
        IMAGE(i, 320 * MIB);
        if (!image_make(&i, "mkfs.xfs", "-q", "-L", "data"))
                return;
        image_is(&i, CONTENT_FILESYSTEM, "xfs", "xfs file system \"data\"");
        ASSERT_STREQ(i.content.label, "data");
        ASSERT_EQ(strlen(i.content.uuid), 36);
        ASSERT_TRUE(!i.content.error && !content_unfinished(&i.content));
}

TEST(ext4_without_a_label) {
        IMAGE(i, 16 * MIB);
        if (!image_make(&i, "mkfs.ext4", "-q", "-U", "11111111-2222-3333-4444-555555555555"))
                return;
        image_is(&i, CONTENT_FILESYSTEM, "ext4", "ext4 file system");
        ASSERT_TRUE(!i.content.label);
        ASSERT_STREQ(i.content.uuid, "11111111-2222-3333-4444-555555555555");
}

TEST(label_that_would_garble_a_terminal) {
        IMAGE(i, 16 * MIB);
        if (image_make(&i, "mkfs.ext4", "-q", "-L", "a\"\x1b[31m\xff"))
                image_is(&i, CONTENT_FILESYSTEM, "ext4", "ext4 file system \"a\\\"\\x1b[31m\\xff\"");
}

TEST(a_label_marks_unfinished_content) {
        IMAGE(i, 16 * MIB);
        if (!image_make(&i, "mkfs.ext4", "-q", "-L", LABEL_UNFINISHED))
                return;
        image_probe(&i);
        ASSERT_TRUE(content_unfinished(&i.content));
        image_write(&i, 1024 + 0x78, LABEL_FINISHED "\0", sizeof LABEL_FINISHED + 1);   /* s_volume_name; the checksum is wrong now */
        image_probe(&i);
        ASSERT_TRUE(!content_unfinished(&i.content));
}

/* Power was cut while the superblock was written: its first half is there, the checksum (which libblkid checks since 2.39) is not. */
TEST(an_unfinished_label_counts_in_a_torn_superblock) {
        IMAGE(i, 16 * MIB);
        if (!image_make(&i, "mkfs.ext4", "-q", "-L", LABEL_UNFINISHED))
                return;
        image_write(&i, 1024 + 0x3fc, "\0\0\0\0", 4);
        image_probe(&i);
        ASSERT_STREQ(i.content.type, "ext4");
        ASSERT_TRUE(content_unfinished(&i.content));
}

TEST(an_unfinished_label_counts_in_damaged_content) {
        Content c = { .kind = CONTENT_OTHER, .type = (char *)"ext4", .label = (char *)LABEL_UNFINISHED, .error = (char *)"its superblock is damaged" };
        _free_ char *text = content_describe(&c);
        ASSERT_STREQ(text, "ext4 \"" LABEL_UNFINISHED "\" (its superblock is damaged)");
        ASSERT_TRUE(content_unfinished(&c));
        c.kind = CONTENT_RAID_MEMBER;
        ASSERT_TRUE(!content_unfinished(&c));
}

TEST(two_file_systems) {
        IMAGE(i, 320 * MIB);
        IMAGE(other, 320 * MIB);
        uint8_t super[1024];
        if (!image_make(&i, "mkfs.xfs", "-q", "-L", "one") || !image_make(&other, "mkfs.ext4", "-q", "-L", "two"))
                return;
        image_read(&other, 1024, super, sizeof super);
        image_write(&i, 1024, super, sizeof super);
        image_is(&i, CONTENT_OTHER, "ambivalent", "signatures that contradict each other (xfs, ext4)");
}

TEST(file_system_and_partition_table) {
        IMAGE(i, 16 * MIB);
        uint8_t entry[16] = { [4] = 0x83, [9] = 8, [13] = 16 };
        if (!image_make(&i, "mkfs.ext4", "-q", "-L", "two"))
                return;
        image_write(&i, 446, entry, sizeof entry);
        image_write(&i, 510, "\x55\xaa", 2);
        image_is(&i, CONTENT_OTHER, "ambivalent", "signatures that contradict each other \"two\" (ext4, dos)");
}

/* ---- other things ---- */

TEST(swap) {
        IMAGE(i, 16 * MIB);
        if (image_make(&i, "mkswap", "-q", "-L", "s"))
                image_is(&i, CONTENT_OTHER, "swap", "swap space \"s\"");
}

TEST(dos) {
        IMAGE(i, 16 * MIB);
        uint8_t entry[16] = { [4] = 0x83, [9] = 8, [13] = 16 };
        image_write(&i, 446, entry, sizeof entry);
        image_write(&i, 510, "\x55\xaa", 2);
        image_is(&i, CONTENT_OTHER, "dos", "partition table (dos)");
}

static void put(uint8_t *at, uint64_t value, size_t size) {
        for (size_t i = 0; i < size; i++)
                at[i] = (uint8_t)(value >> 8 * i);
}

TEST(gpt) {
        IMAGE(i, 16 * MIB);
        uint8_t entry[16] = { [4] = 0xee, [8] = 1, [12] = 0xff, 0x7f }, table[128 * 128] = {}, header[512] = "EFI PART";
        put(header + 8, 0x10000, 4);
        put(header + 12, 92, 4);
        put(header + 24, 1, 8);
        put(header + 32, i.size / 512 - 1, 8);
        put(header + 40, 34, 8);
        put(header + 48, i.size / 512 - 34, 8);
        put(header + 72, 2, 8);
        put(header + 80, 128, 4);
        put(header + 84, 128, 4);
        put(header + 88, crc32(0, table, sizeof table), 4);
        put(header + 16, crc32(0, header, 92), 4);
        image_write(&i, 446, entry, sizeof entry);
        image_write(&i, 510, "\x55\xaa", 2);
        image_is(&i, CONTENT_OTHER, "PMBR", "partition table (gpt: only the protective MBR)");
        image_write(&i, 512, header, sizeof header);
        image_is(&i, CONTENT_OTHER, "gpt", "partition table (gpt)");
}

TEST(lvm) {
        IMAGE(i, 16 * MIB);
        uint8_t label[512] = "LABELONE";
        put(label + 8, 1, 8);           /* its sector */
        put(label + 20, 32, 4);
        image_write(&i, 512, label, sizeof label);
        image_write(&i, 512 + 24, "LVM2 001abcdefABCDEF0123456789abcdef0123", 40);
        image_is(&i, CONTENT_OTHER, "LVM2_member", "LVM physical volume (its superblock is damaged)");
}

/* ---- md ---- */

#define ARRAY_UUID "3a3b3c3d:3e3f4041:42434445:46474849"

static void put_super(Image *i, MdSuper want) {
        uint8_t block[MD_SUPER_SIZE];
        md_super_make(block, &want);
        image_write(i, want.at, block, sizeof block);
}

TEST(raid_member) {
        IMAGE(i, 16 * MIB);
        put_super(&i, (MdSuper){ .name = "ip-10-0-0-1:kubernetes", .level = 0, .disks = 4, .device = 2, .role = 2, .events = 17,
                                 .at = 4096, .data = 2 * MIB });
        image_is(&i, CONTENT_RAID_MEMBER, "linux_raid_member", "member 2 of md array ip-10-0-0-1:kubernetes (raid0 of 4)");
        const RaidMember *m = &i.content.raid;
        ASSERT_STREQ(m->uuid, ARRAY_UUID);
        ASSERT_STREQ(m->name, "ip-10-0-0-1:kubernetes");
        ASSERT_STREQ(raid_short_name(m->name), "kubernetes");
        ASSERT_EQ(m->level, 0);
        ASSERT_EQ(m->disks, 4);
        ASSERT_EQ(m->role, 2);
        ASSERT_EQ(m->events, 17);
        ASSERT_EQ(m->super_offset, 4096);
        ASSERT_EQ(m->data_offset, 2 * MIB);
        ASSERT_TRUE(!i.content.label && !i.content.uuid && !i.content.error);
}

TEST(raid_member_in_each_place) {
        static const struct { uint64_t at; int level; const char *described; } places[] = {
                { 0,                        10, "member 1 of md array kubernetes (raid10 of 4)"    },
                { 16 * MIB - 8192,          -1, "member 1 of md array kubernetes (level -1, 4 disks)"  },
                { 4096,                     2,  "member 1 of md array kubernetes (level 2, 4 disks)"   },
                { 4096,                     99, "member 1 of md array kubernetes (level 99, 4 disks)"  },
        };
        for (size_t n = 0; n < ARRAY_SIZE(places); n++) {
                IMAGE(i, 16 * MIB);
                put_super(&i, (MdSuper){ .name = "kubernetes", .level = places[n].level, .disks = 4, .device = 1, .role = 1, .at = places[n].at });
                image_is(&i, CONTENT_RAID_MEMBER, "linux_raid_member", places[n].described);
                ASSERT_EQ(i.content.raid.super_offset, places[n].at);
                ASSERT_EQ(i.content.raid.level, places[n].level);
                ASSERT_EQ(i.content.raid.layout, places[n].level == 10 ? 0x102 : 0);
        }
}

TEST(raid_spare) {
        static const struct { unsigned device, role; int want; } roles[] = {
                { 5, 0xffff, -1 }, { 200, 3, -1 }, { 5, 0xfffe, -1 }, { 5, 0xfffd, -1 }, { 0, 4, -1 }, { 0, 3, 3 },
        };
        for (size_t n = 0; n < ARRAY_SIZE(roles); n++) {
                IMAGE(i, 16 * MIB);
                put_super(&i, (MdSuper){ .name = "r", .level = 10, .disks = 4, .device = roles[n].device, .role = roles[n].role, .at = 4096 });
                image_is(&i, CONTENT_RAID_MEMBER, "linux_raid_member",
                         roles[n].want < 0 ? "spare of md array r (raid10 of 4)" : "member 3 of md array r (raid10 of 4)");
                ASSERT_EQ(i.content.raid.role, roles[n].want);
        }
}

TEST(raid_name_of_full_length) {
        IMAGE(i, 16 * MIB);
        put_super(&i, (MdSuper){ .name = "0123456789abcdef:23456789\n\xff" "cdef--", .disks = 1, .at = 4096 });
        image_is(&i, CONTENT_RAID_MEMBER, "linux_raid_member", "member 0 of md array 0123456789abcdef:23456789\\x0a\\xffcdef- (raid0 of 1)");
        ASSERT_EQ(strlen(i.content.raid.name), 32);
}

/* Each of these makes it a member of an unknown array, and still not a blank disk. */
TEST(raid_superblock_damaged) {
        uint8_t good[MD_SUPER_SIZE], block[MD_SUPER_SIZE];
        RaidMember m = {};
        md_super_make(good, &(MdSuper){ .name = "kubernetes", .disks = 2, .device = 1, .role = 1, .at = 4096 });
        ASSERT_OK(raid_member_parse(good, 4096, &m));
        free(m.uuid);
        free(m.name);
        ASSERT_ERROR(raid_member_parse(good, 0, &m), EINVAL);
        const struct { size_t at; uint8_t byte; bool sealed; } faults[] = {
                { 0,                                               0x00, true  },
                { offsetof(struct mdp_superblock_1, major_version), 2,   true  },
                { offsetof(struct mdp_superblock_1, events),        9,   false },
                { offsetof(struct mdp_superblock_1, max_dev) + 1,   0x10, false },
                { offsetof(struct mdp_superblock_1, super_offset),  0,   true  },
                { offsetof(struct mdp_superblock_1, super_offset) + 7, 0x80, true },
                { offsetof(struct mdp_superblock_1, data_offset) + 7, 0x80, true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                memcpy(block, good, sizeof block);
                block[faults[i].at] = faults[i].byte;
                if (faults[i].sealed)
                        md_super_seal(block);
                ASSERT_ERROR(raid_member_parse(block, 4096, &m), EINVAL);
        }
        IMAGE(i, 16 * MIB);
        memcpy(block, good, sizeof block);
        block[offsetof(struct mdp_superblock_1, events)] = 9;
        image_write(&i, 4096, block, sizeof block);
        image_is(&i, CONTENT_RAID_MEMBER, "linux_raid_member", "member of an array (linux_raid_member) (its superblock is damaged)");
        ASSERT_TRUE(!i.content.raid.uuid);
}

/* The version that has no name and stands 64 KiB before the end. */
TEST(raid_superblock_of_version_0_90) {
        IMAGE(i, 16 * MIB);
        mdp_super_t s = { .md_magic = MD_SB_MAGIC, .major_version = 0, .minor_version = 90, .size = 8192, .level = 1, .raid_disks = 2 };
        image_write(&i, i.size - 65536, &s, sizeof s);
        image_is(&i, CONTENT_RAID_MEMBER, "linux_raid_member", "member of an array (linux_raid_member)");
        ASSERT_TRUE(!i.content.raid.uuid && !i.content.error);
}

TEST(raid_short_names) {
        ASSERT_STREQ(raid_short_name("kubernetes"), "kubernetes");
        ASSERT_STREQ(raid_short_name("a:b:c"), "b:c");
        ASSERT_STREQ(raid_short_name("a:"), "");
}

TEST_MAIN
