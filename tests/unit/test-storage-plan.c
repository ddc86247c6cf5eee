/* SPDX-License-Identifier: Apache-2.0 */
/* The decision for every situation of instance stores. A machine is written with one letter per disk. */
#include "disk/disk.h"
#include "sample.h"

#define UUID_OURS  "3aaa0122:29827cfa:5331ad66:ca767371"
#define UUID_OTHER "4bbb0233:3a938d0b:6442be77:db878482"
#define DISK_BYTES 1900000000000ULL

typedef struct Machine {
        Sample s;
        char **strings, **lists[64];
        size_t n_lists;
        Disk disks[12];
        Array arrays[3];
        Mount mounts[16];
        Directory directories[16];
} Machine;

static char *keep(Machine *m, char *s) {
        strv_push(&m->strings, s);
        return s;
}
#define TEXT(m, ...) keep(m, xasprintf(__VA_ARGS__))

static char **keep_list(Machine *m, char **list) {
        ASSERT_TRUE(m->n_lists < ARRAY_SIZE(m->lists));
        return m->lists[m->n_lists++] = list;
}

static void machine_done(Machine *m) {
        sample_done(&m->s);
        strv_free(m->strings);
        for (size_t i = 0; i < m->n_lists; i++)
                strv_free(m->lists[i]);
        free(m);
}
DEFINE_CLEANUP(Machine *, machine_done)

static void add_directory(Machine *m, const char *path, Directory d) {
        Storage *st = &m->s.host.storage;
        d.path = TEXT(m, "%s", path);
        m->directories[st->n_directories++] = d;
        ASSERT_TRUE(st->n_directories <= ARRAY_SIZE(m->directories));
}

static Directory *directory(Machine *m, const char *path) {
        for (size_t i = 0; i < m->s.host.storage.n_directories; i++)
                if (streq(m->directories[i].path, path))
                        return &m->directories[i];
        FAIL("%s was not looked at", path);
}

static void add_mount(Machine *m, const char *target, const char *number, const char *root, const char *type) {
        Storage *st = &m->s.host.storage;
        m->mounts[st->n_mounts++] = (Mount) {
                .target = TEXT(m, "%s", target), .source = TEXT(m, "/dev/x"), .number = TEXT(m, "%s", number), .root = TEXT(m, "%s", root), .type = TEXT(m, "%s", type),
        };
        ASSERT_TRUE(st->n_mounts <= ARRAY_SIZE(m->mounts));
}

static void set_filesystem(Machine *m, Content *c, const char *type, const char *label) {
        *c = (Content) { .kind = CONTENT_FILESYSTEM, .type = TEXT(m, "%s", type), .label = TEXT(m, "%s", label), .uuid = TEXT(m, "0f0e0d0c-1111-4222-8333-444455556666") };
}

static void set_member(Machine *m, Content *c, const char *uuid, const char *name, int level, unsigned disks, int role, uint64_t events) {
        *c = (Content) { .kind = CONTENT_RAID_MEMBER, .type = TEXT(m, "linux_raid_member"),
                         .raid = { .uuid = uuid ? TEXT(m, "%s", uuid) : NULL, .name = TEXT(m, "%s", name), .level = level, .layout = level == 10 ? 0x102 : 0, .disks = disks, .role = role, .events = events, .super_offset = 4096 } };
}

/* b blank, D data without a signature, R with the mark of an unfinished file system or array, x xfs, e ext4,
 * u unfinished xfs, U unfinished xfs with half a superblock, v btrfs, 0-7 member of our array with this role,
 * S stale member, P spare, H member with another host name, N member of the array nodestrap, F member of an
 * array with another name, K member of a second array kubernetes, A member with metadata 1.0, O member with
 * old metadata, o LVM, p partitions, h held by dm, m mounted, r read-only, f failing, q not known, n no
 * serial */
static void set_disk(Machine *m, size_t i, char letter, int level, unsigned of) {
        Disk *d = &m->disks[i];
        Content *c = &d->content;
        size_t serial = m->s.host.n_disks - i;  /* serials are in the reverse order of names */
        *d = (Disk) {
                .name = TEXT(m, "nvme%zun1", i + 1), .serial = TEXT(m, "AWS%017zX", serial), .kind = DISK_INSTANCE_STORE, .bytes = DISK_BYTES,
                .number = TEXT(m, "259:%zu", i + 1), .content.kind = CONTENT_BLANK,
        };
        unsigned role = (unsigned)i;
        switch (letter) {
        case 'b': break;
        case 'D': *c = (Content) { .kind = CONTENT_DATA, .error = TEXT(m, "byte 4711 is not zero") }; break;
        case 'R': c->kind = CONTENT_REMAINS; break;
        case 'x': set_filesystem(m, c, "xfs", "data"); break;
        case 'e': set_filesystem(m, c, "ext4", LABEL_FINISHED); break;
        case 'u': set_filesystem(m, c, "xfs", LABEL_UNFINISHED); break;
        case 'U': set_filesystem(m, c, "xfs", LABEL_UNFINISHED); c->kind = CONTENT_OTHER; break;
        case 'v': set_filesystem(m, c, "btrfs", ""); break;
        case '0' ... '7': set_member(m, c, UUID_OURS, "kubernetes", level, of, letter - '0', 20); break;
        case 'S': set_member(m, c, UUID_OURS, "kubernetes", level, of, (int)role, 12); break;
        case 'P': set_member(m, c, UUID_OURS, "kubernetes", level, of, -1, 20); break;
        case 'H': set_member(m, c, UUID_OURS, "ip-10-0-0-1:kubernetes", level, of, (int)role, 20); break;
        case 'N': set_member(m, c, UUID_OURS, "any:nodestrap", level, of, (int)role, 20); break;
        case 'F': set_member(m, c, UUID_OTHER, "data", level, of, (int)role, 7); break;
        case 'K': set_member(m, c, UUID_OTHER, "old:kubernetes", level, of, (int)role, 7); break;
        case 'A': set_member(m, c, UUID_OURS, "kubernetes", level, of, (int)role, 20); c->raid.super_offset = DISK_BYTES - 8192; break;
        case 'O': set_member(m, c, NULL, "", level, of, (int)role, 0); break;
        case 'p': d->partitions = keep_list(m, sample_list((const char *[]) { TEXT(m, "%sp1", d->name), NULL })); __attribute__((fallthrough));
        case 'o': *c = (Content) { .kind = CONTENT_OTHER, .type = TEXT(m, letter == 'p' ? "gpt" : "LVM2_member") }; break;
        case 'h': d->holders = keep_list(m, LIST("dm-0")); break;
        case 'm': add_mount(m, "/data", d->number, "/", "xfs"); set_filesystem(m, c, "xfs", ""); break;
        case 'r': d->read_only = true; break;
        case 'f': *c = (Content) { .kind = CONTENT_UNREADABLE, .error = TEXT(m, "Input/output error") }; break;
        case 'q': c->kind = CONTENT_UNKNOWN; break;
        case 'n': d->serial = NULL; break;
        default: FAIL("no such letter: %c", letter);
        }
}

/* "r012:x" runs with the disks 0 to 2 and holds xfs. "d" is degraded, "i" inactive; E is the EBS volume. */
static void set_array(Machine *m, const char *text, const char *level) {
        Storage *st = &m->s.host.storage;
        Array *a = &m->arrays[st->n_arrays];
        char **members = NULL;
        size_t k = 127 - st->n_arrays++;
        *a = (Array) { .name = TEXT(m, "md%zu", k), .number = TEXT(m, "9:%zu", k), .active = *text != 'i', .degraded = *text == 'd',
                       .level = *text != 'i' ? TEXT(m, "%s", level) : NULL, .content.kind = CONTENT_BLANK };
        for (text++; *text && *text != ':'; text++) {
                if (*text == 'E') {
                        strv_add(&members, "nvme0n1");
                        continue;
                }
                Disk *d = &m->disks[*text - '0'];
                strv_add(&members, d->name);
                d->in_use = true;
                d->holders = keep_list(m, sample_list((const char *[]) { a->name, NULL }));
        }
        a->members = keep_list(m, members);
        a->disks = (unsigned)strv_length(members);
        switch (text[0] ? text[1] : 'b') {
        case 'b': break;
        case 'D': a->content = (Content) { .kind = CONTENT_DATA, .error = TEXT(m, "byte 4711 is not zero") }; break;
        case 'R': a->content.kind = CONTENT_REMAINS; break;
        case 'x': set_filesystem(m, &a->content, "xfs", LABEL_FINISHED); break;
        case 'e': set_filesystem(m, &a->content, "ext4", "old"); break;
        case 'U': case 'u':
                set_filesystem(m, &a->content, "xfs", LABEL_UNFINISHED);
                a->content.kind = text[1] == 'U' ? CONTENT_OTHER : CONTENT_FILESYSTEM;
                break;
        case 'o': a->content = (Content) { .kind = CONTENT_OTHER, .type = TEXT(m, "LVM2_member") }; break;
        case 'f': a->content = (Content) { .kind = CONTENT_UNREADABLE, .error = TEXT(m, "Input/output error") }; break;
        case 'h': a->holders = keep_list(m, LIST("dm-3")); break;
        default: FAIL("no such content: %s", text);
        }
}

static Machine *machine_new(StorageStrategy strategy, const char *disks, unsigned of) {
        Machine *m = xcalloc(1, sizeof *m);
        m->s = sample_new();
        Host *h = &m->s.host;
        h->type = NULL;         /* nothing promises disks */
        h->disks = m->disks;
        h->storage = (Storage) { .looked = true, .arrays = m->arrays, .mounts = m->mounts, .directories = m->directories };
        h->storage.programs = keep_list(m, LIST("cp", "mdadm", "mkfs.ext4", "mkfs.xfs"));
        m->s.config.instance.storage = (LocalStorage) { .strategy = strategy, .mount_path = TEXT(m, "/mnt/k8s-disks") };
        h->n_disks = strlen(disks);
        for (size_t i = 0; i < h->n_disks; i++)
                set_disk(m, i, disks[i], strategy == STORAGE_RAID10 ? 10 : 0, of ?: (unsigned)h->n_disks);
        m->disks[h->n_disks++] = (Disk) { .name = TEXT(m, "nvme0n1"), .serial = TEXT(m, "vol0123"), .kind = DISK_EBS, .in_use = true,
                                          .partitions = keep_list(m, LIST("nvme0n1p1")), .number = TEXT(m, "259:0") };
        const char *places[] = { "/mnt/k8s-disks", "/mnt/k8s-disks/0", "/mnt/k8s-disks/1", "/mnt/k8s-disks/2" };
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                add_directory(m, places[i], (Directory) { .empty = true });
        for (size_t i = 0; i < ARRAY_SIZE(storage_binds); i++)
                add_directory(m, storage_binds[i].path, (Directory) { .kind = i < 2 ? DIRECTORY_THERE : DIRECTORY_MISSING, .empty = i >= 2, .bytes = i < 2 ? 400000000 : 0 });
        return m;
}

static int machine_plan(Machine *m) {
        m->s.plan = plan_free(m->s.plan);
        diag_done(&m->s.diag);
        return plan_make(&m->s.config, &m->s.host, &m->s.options, &m->s.plan, &m->s.diag);
}

static const Action *planned(Machine *m, const char *id) {
        const Action *a = m->s.plan ? plan_find(m->s.plan, id) : NULL;
        if (!a)
                FAIL("the plan has no %s", id);
        return a;
}

static const char *state_of(const Plan *plan, const char *id) {
        const Action *a = plan_find(plan, id);
        return a ? step_state_to_string(a->storage.state) : "absent";
}

static char *all_errors(const Diag *diag) {
        Text t = {};
        for (size_t i = 0; i < diag->n; i++)
                if (!diag->items[i].warning)
                        text_add(&t, "%s: %s\n", cause_word(diag->items[i].cause), diag->items[i].text);
        return text_take(&t);
}

#define ASSERT_REFUSED(m, wanted, ...) ({ \
        ASSERT_ERROR(machine_plan(m), EINVAL); \
        _free_ char *_all = all_errors(&(m)->s.diag); \
        ASSERT_STREQ(cause_word(diag_first_error(&(m)->s.diag)->cause), cause_word(wanted)); \
        const char *_words[] = { __VA_ARGS__ }; \
        for (size_t _i = 0; _i < ARRAY_SIZE(_words); _i++) \
                ASSERT_CONTAINS(_all, _words[_i]); })
#define ASSERT_PLANNED(m) ({ if (machine_plan(m) < 0) { _free_ char *_all = all_errors(&(m)->s.diag); FAIL("refused: %s", _all); } })

/* ---- the matrix ---- */

typedef struct Row {                    /* in the order that rows are read in, NOLINT(clang-analyzer-optin.performance.Padding) */
        StorageStrategy strategy;
        const char *disks, *array;      /* see set_disk(), set_array() */
        unsigned of;                    /* members of the array by its superblocks; 0: one per disk */
        const char *raid, *filesystem, *mount, *why;    /* the states, and the reason of the array; */
        Cause cause; const char *says[4];               /* or the error and its words */
} Row;

static const Row rows[] = {
        /* RAID0: first boot, second run, reboot */
        { STORAGE_RAID0, "bbb", .raid = "make", .filesystem = "make", .mount = "make", .why = "new array on 3 blank disks" },
        { STORAGE_RAID0, "012", "r012:x", .raid = "keep", .filesystem = "keep", .mount = "make", .why = "runs as md127" },
        { STORAGE_RAID0, "012", "r012:b", .raid = "keep", .filesystem = "make", .mount = "make" },
        { STORAGE_RAID0, "012", "r012:u", .raid = "keep", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "012", "r012:U", .raid = "keep", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "012", "r012:e", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "HHH", "r012:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "012", .raid = "assemble", .filesystem = "assemble", .mount = "assemble", .why = "assemble 3 members" },
        { STORAGE_RAID0, "HHH", .raid = "assemble", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID0, "NNN", .raid = "assemble", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID0, "NNN", "r012:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "NbN", .raid = "remake", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "210", "i012", .raid = "assemble", .filesystem = "assemble", .mount = "assemble", .why = "of inactive md127" },
        { STORAGE_RAID0, "01b", "r012:x", .raid = "keep", .filesystem = "keep", .mount = "make" },     /* wiped while it runs */
        /* RAID0: a member is blank */
        { STORAGE_RAID0, "01b", .raid = "remake", .filesystem = "remake", .mount = "make", .why = "make a new raid0: nvme3n1 blank, data lost" },
        { STORAGE_RAID0, "b1b", "i1", .raid = "remake", .filesystem = "remake", .mount = "make", .why = "nvme3n1, nvme1n1 blank" },
        { STORAGE_RAID0, "01b", "i01", .raid = "remake", .filesystem = "remake", .mount = "make" },
        /* nodestrap never writes to data without a signature */
        { STORAGE_RAID0, "bDb", .cause = CAUSE_DISK_DATA, .says = { "nvme2n1 (AWS00000000000000002, 1.9 TB) is not blank and has no signature: byte 4711", "`blkdiscard /dev/nvme2n1`" } },
        { STORAGE_RAID0, "0D2", .cause = CAUSE_DISK_DATA, .says = { "nvme2n1", "blkdiscard" } },
        { STORAGE_RAID0, "0D2", "i02", .cause = CAUSE_DISK_DATA, .says = { "nvme2n1" } },
        { STORAGE_RAID0, "0D2", "i012", .cause = CAUSE_DISK_DATA, .says = { "nvme2n1" } },
        { STORAGE_RAID0, "RD2", .cause = CAUSE_DISK_DATA, .says = { "nvme2n1" } },
        { STORAGE_RAID0, "0D2", "r012:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "DDD", "r012", .cause = CAUSE_DISK_USED, .says = { "nvme2n1", "has no superblock" } },
        { STORAGE_RAID0, "012", "r012:D", .cause = CAUSE_DISK_DATA, .says = { "array md127", "blkdiscard" } },
        { STORAGE_RAID0, "D", .cause = CAUSE_DISK_DATA, .says = { "`blkdiscard /dev/nvme1n1`" } },
        { STORAGE_RAID10, "01DD", .cause = CAUSE_DISK_DATA, .says = { "nvme3n1", "nvme4n1" } },
        { STORAGE_RAID10, "012D", .cause = CAUSE_DISK_DATA, .says = { "nvme4n1" } },
        { STORAGE_RAID10, "012D", "d012:x", .cause = CAUSE_DISK_DATA, .says = { "nvme4n1" } },
        { STORAGE_MOUNT, "bD", .cause = CAUSE_DISK_DATA, .says = { "nvme2n1" } },
        /* an unfinished file system or array */
        { STORAGE_RAID0, "bRb", .raid = "remake", .filesystem = "remake", .mount = "make", .why = "interrupted" },
        { STORAGE_RAID0, "RRR", .raid = "remake", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "0R2", "i02", .raid = "remake", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "012", "r012:R", .raid = "keep", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "R", .raid = "absent", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID10, "012R", .raid = "repair", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_MOUNT, "R", .raid = "absent", .filesystem = "remake", .mount = "make" },
        /* RAID0: not as it should be */
        { STORAGE_RAID0, "FFF", .cause = CAUSE_DISK_USED, .says = { "nvme1n1 (AWS00000000000000003, 1.9 TB)", "nvme3n1", "data", "blkdiscard --force" } },
        { STORAGE_RAID0, "FFb", "i01", .cause = CAUSE_DISK_USED, .says = { "nvme1n1", "nvme2n1", "data" } },
        { STORAGE_RAID0, "01F", .cause = CAUSE_DISK_USED, .says = { "nvme3n1", "data" } },
        { STORAGE_RAID0, "01KK", .cause = CAUSE_ARRAY, .says = { "two arrays are named kubernetes", UUID_OURS, UUID_OTHER, "nvme4n1" } },
        { STORAGE_RAID0, "0123", "i01", .of = 4, .raid = "assemble", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID0, "0123", "r01", .of = 4, .cause = CAUSE_ARRAY, .says = { "md127 runs with 2 of its 4 members" } },
        { STORAGE_RAID0, "012", .of = 4, .cause = CAUSE_DISKS, .says = { "has 4 members, but only 3 instance stores are here (the raid0 array kubernetes lacks member 3 of its 4)", "nvme1n1" } },
        { STORAGE_RAID0, "01b", .of = 2, .cause = CAUSE_ARRAY, .says = { "has 2 members, but 3 instance stores are here", "nvme2n1" } },
        { STORAGE_RAID0, "011", .cause = CAUSE_ARRAY, .says = { "contradict each other", "nvme3n1" } },
        { STORAGE_RAID0, "OOO", .cause = CAUSE_DISK_USED, .says = { "only an array with the name kubernetes and metadata 1.2", "nvme1n1", "nvme2n1", "nvme3n1" } },
        { STORAGE_RAID0, "AAA", "r012:b", .cause = CAUSE_DISK_USED, .says = { "only an array with the name kubernetes and metadata 1.2", "nvme1n1", "nvme3n1", "blkdiscard --force" } },
        { STORAGE_RAID0, "012", "r012E", .cause = CAUSE_ARRAY, .says = { "md127", "nvme0n1", "but also", "for each instance store among" } },
        { STORAGE_RAID0, "012", "r012:o", .cause = CAUSE_DISK_USED, .says = { "array md127", "`mdadm --stop /dev/md127`, and `blkdiscard --force`" } },
        { STORAGE_RAID0, "012", "r012:f", .cause = CAUSE_DISK_ERROR, .says = { "array md127", "Input/output error" } },
        { STORAGE_RAID0, "012", "r012:h", .cause = CAUSE_DISK_USED, .says = { "dm-3 is built on array md127" } },
        { STORAGE_RAID0, "bbb", "r012", .cause = CAUSE_DISK_USED, .says = { "nvme2n1", "has no superblock", "md127" } },
        /* RAID0: foreign or broken disks: a message names each */
        { STORAGE_RAID0, "xbe", .cause = CAUSE_DISK_USED, .says = { "nvme1n1 (AWS00000000000000003, 1.9 TB) is not blank", "nvme3n1", "wipefs --all /dev/nvme1n1" } },
        { STORAGE_RAID0, "bop", .cause = CAUSE_DISK_USED, .says = { "nvme2n1", "has partitions (nvme3n1p1)" } },
        { STORAGE_RAID0, "bhm", .cause = CAUSE_DISK_USED, .says = { "nvme2n1 (AWS00000000000000002, 1.9 TB) is in use by dm-0", "is mounted at /data" } },
        { STORAGE_RAID0, "bfr", .cause = CAUSE_DISK_ERROR, .says = { "nvme2n1", "Input/output error", "nvme3n1 (AWS00000000000000001, 1.9 TB) is read-only" } },
        { STORAGE_RAID0, "bq", .cause = CAUSE_DISK_ERROR, .says = { "nvme2n1", "could not be identified" } },
        { STORAGE_RAID0, "bn", .cause = CAUSE_DISK_ERROR, .says = { "nvme2n1 (no serial number" } },
        /* RAID0 of one disk is that disk */
        { STORAGE_RAID0, "b", .raid = "absent", .filesystem = "make", .mount = "make" },
        { STORAGE_RAID0, "u", .raid = "absent", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "U", .raid = "absent", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID0, "Ub", .cause = CAUSE_DISK_USED, .says = { "nvme1n1", "is not blank" } },
        { STORAGE_RAID0, "x", .raid = "absent", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "e", .raid = "absent", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "v", .cause = CAUSE_DISK_USED, .says = { "nvme1n1", "btrfs", "`blkdiscard --force /dev/nvme1n1`" } },
        { STORAGE_RAID0, "o", .cause = CAUSE_DISK_USED, .says = { "nvme1n1", "LVM" } },
        { STORAGE_RAID0, "p", .cause = CAUSE_DISK_USED, .says = { "nvme1n1p1" } },
        { STORAGE_RAID0, "h", .cause = CAUSE_DISK_USED, .says = { "dm-0" } },
        { STORAGE_RAID0, "m", .cause = CAUSE_DISK_USED, .says = { "/data" } },
        { STORAGE_RAID0, "f", .cause = CAUSE_DISK_ERROR, .says = { "Input/output error" } },
        { STORAGE_RAID0, "r", .cause = CAUSE_DISK_ERROR, .says = { "read-only" } },
        { STORAGE_RAID0, "0", .raid = "assemble", .filesystem = "assemble", .mount = "assemble" },      /* the nodeadm array of one */
        { STORAGE_RAID0, "0", "r0:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID0, "F", .cause = CAUSE_DISK_USED, .says = { "data" } },
        { STORAGE_RAID0, "0", .of = 3, .cause = CAUSE_DISKS, .says = { "lacks members 1, 2 of its" } },
        { STORAGE_RAID0, "" , .raid = "absent", .filesystem = "absent", .mount = "absent" },
        /* RAID10 */
        { STORAGE_RAID10, "b", .cause = CAUSE_DISKS, .says = { "RAID10 needs at least four instance stores, but this machine has 1" } },
        { STORAGE_RAID10, "bb", .cause = CAUSE_DISKS, .says = { "this machine has 2" } },
        { STORAGE_RAID10, "bbb", .cause = CAUSE_DISKS, .says = { "this machine has 3" } },
        { STORAGE_RAID10, "bbbb", .raid = "make", .filesystem = "make", .mount = "make", .why = "new array on 4 blank disks" },
        { STORAGE_RAID10, "0123", "r0123:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID10, "0123", "d0123:x", .raid = "keep", .filesystem = "keep", .mount = "make", .why = "degraded" },
        { STORAGE_RAID10, "0123", .raid = "assemble", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID10, "012b", .raid = "repair", .filesystem = "assemble", .mount = "assemble", .why = "add nvme4n1 again" },
        { STORAGE_RAID10, "0b2b", "i02", .raid = "repair", .filesystem = "assemble", .mount = "assemble", .why = "add nvme4n1, nvme2n1 again" },
        { STORAGE_RAID10, "b12b", .raid = "repair", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID10, "012b", "d012:x", .raid = "repair", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID10, "012S", "d0123:x", .raid = "keep", .filesystem = "keep", .mount = "make" },    /* md repairs it */
        { STORAGE_RAID10, "012P", "d0123:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID10, "012S", "d012:x", .raid = "repair", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID10, "012S", .raid = "repair", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID10, "012P", .raid = "repair", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID10, "01bb", .raid = "remake", .filesystem = "remake", .mount = "make", .why = "nvme4n1, nvme3n1 blank, chunks lost" },
        { STORAGE_RAID10, "01Pb", .raid = "remake", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID10, "01Sb", .cause = CAUSE_ARRAY, .says = { "cannot be assembled without nvme4n1, nvme3n1", "member 2 of md array", "--assemble --force" } },
        { STORAGE_RAID10, "01SS", .cause = CAUSE_ARRAY, .says = { "its data may still exist" } },
        { STORAGE_RAID10, "bb23", "i23", .raid = "remake", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID10, "01234", "r01234:x", .raid = "keep", .filesystem = "keep", .mount = "make" },
        { STORAGE_RAID10, "0b2b4", .raid = "repair", .filesystem = "assemble", .mount = "assemble" },
        { STORAGE_RAID10, "0bb34", .raid = "remake", .filesystem = "remake", .mount = "make" },         /* odd: each shares data with both neighbours */
        { STORAGE_RAID10, "b123b", .raid = "remake", .filesystem = "remake", .mount = "make" },
        { STORAGE_RAID10, "FFFF", .cause = CAUSE_DISK_USED, .says = { "data" } },
        { STORAGE_RAID10, "01KK", .cause = CAUSE_ARRAY, .says = { "two arrays" } },
        /* Mount */
        { STORAGE_MOUNT, "b", .raid = "absent", .filesystem = "make", .mount = "make" },
        { STORAGE_MOUNT, "x", .raid = "absent", .filesystem = "keep", .mount = "make" },
        { STORAGE_MOUNT, "u", .raid = "absent", .filesystem = "remake", .mount = "make" },
        { STORAGE_MOUNT, "0", .of = 1, .cause = CAUSE_DISK_USED, .says = { "nvme1n1" } },
        { STORAGE_MOUNT, "bF", .cause = CAUSE_DISK_USED, .says = { "nvme2n1" } },
        { STORAGE_MOUNT, "vo", .cause = CAUSE_DISK_USED, .says = { "LVM", "btrfs" } },
        { STORAGE_MOUNT, "hp", .cause = CAUSE_DISK_USED, .says = { "dm-0", "nvme2n1p1" } },
        { STORAGE_MOUNT, "fm", .cause = CAUSE_DISK_USED, .says = { "/data", "Input/output error" } },
        { STORAGE_MOUNT, "rb", .cause = CAUSE_DISK_ERROR, .says = { "nvme1n1" } },
        { STORAGE_MOUNT, "bb", "i01", .cause = CAUSE_DISK_USED, .says = { "is in use by md127" } },
        { STORAGE_MOUNT, "", .raid = "absent", .filesystem = "absent", .mount = "absent" },
};

static const char *filesystem_of(const Row *row) {
        return row->strategy == STORAGE_MOUNT ? "make-filesystem:/mnt/k8s-disks/1" : row->raid && !streq(row->raid, "absent") ? "make-filesystem:" RAID_DEVICE
                                              : "make-filesystem:/mnt/k8s-disks/0";
}

static void check_row(const Row *row) {
        _cleanup_(machine_donep) Machine *m = machine_new(row->strategy, row->disks, row->of);
        if (row->array)
                set_array(m, row->array, row->strategy == STORAGE_RAID10 ? "raid10" : "raid0");
        int r = machine_plan(m);
        _free_ char *errors = all_errors(&m->s.diag);
        printf("# %d of \"%s\"%s%s\n", (int)row->strategy, row->disks, row->array ? " with " : "", row->array ?: "");
        for (size_t i = 0; i < ARRAY_SIZE(row->says) && row->says[i]; i++)
                ASSERT_CONTAINS(errors, row->says[i]);
        if (row->cause != CAUSE_NONE) {
                ASSERT_EQ(r, -EINVAL);
                ASSERT_STREQ(cause_word(diag_first_error(&m->s.diag)->cause), cause_word(row->cause));
                return;
        }
        ASSERT_STREQ(errors, "");
        ASSERT_STREQ(state_of(m->s.plan, "create-raid:" RAID_DEVICE), row->raid);
        ASSERT_STREQ(state_of(m->s.plan, filesystem_of(row)), row->filesystem);
        ASSERT_STREQ(state_of(m->s.plan, row->strategy == STORAGE_MOUNT ? "mount:/mnt/k8s-disks/1" : "mount:/mnt/k8s-disks/0"), row->mount);
        if (row->why)
                ASSERT_CONTAINS(planned(m, "create-raid:" RAID_DEVICE)->why, row->why);
}

TEST(each_situation_of_disks_has_its_plan_or_error) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i]);
}

/* On blank disks the plan follows the configured strategy, whatever their number. */
TEST(each_strategy_has_its_plan_for_each_number_of_blank_disks) {
        static const size_t numbers[] = { 0, 1, 2, 3, 4, 8 };
        for (StorageStrategy strategy = STORAGE_RAID0; strategy <= STORAGE_MOUNT; strategy++)
                for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                        size_t n = numbers[i];
                        _free_ char *disks = xstrndup("bbbbbbbb", n), *with = xasprintf("%s %zu disks", strategy == STORAGE_RAID0 ? "raid0" : "raid10", n);
                        _cleanup_(machine_donep) Machine *m = machine_new(strategy, disks, 0);
                        if (strategy == STORAGE_RAID10 && n > 0 && n < 4) {
                                ASSERT_REFUSED(m, CAUSE_DISKS, "RAID10");
                                continue;
                        }
                        ASSERT_PLANNED(m);
                        size_t made = 0, bound = 0, mounted = 0;
                        for (size_t k = 0; k < m->s.plan->n; k++) {
                                made += m->s.plan->actions[k].type == ACTION_MAKE_FILESYSTEM;
                                mounted += m->s.plan->actions[k].type == ACTION_MOUNT;
                                bound += m->s.plan->actions[k].type == ACTION_BIND;
                        }
                        ASSERT_EQ(made, strategy == STORAGE_MOUNT ? n : n > 0);
                        ASSERT_EQ(mounted, made);
                        ASSERT_EQ(bound, strategy == STORAGE_MOUNT || n == 0 ? 0 : 4);
                        const Action *raid = plan_find(m->s.plan, "create-raid:" RAID_DEVICE);
                        ASSERT_TRUE(!raid == (strategy == STORAGE_MOUNT || n < 2));
                        if (raid) {
                                ASSERT_STREQ(raid->with, with);
                                ASSERT_EQ(strv_length(raid->storage.disks), n);
                        }
                        ASSERT_EQ(planned(m, "write-file:" MOUNTS_READY)->phase, PHASE_RUN);
                }
}

TEST(without_a_strategy_no_disk_is_touched) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_NONE, "bFo", 0);
        ASSERT_PLANNED(m);
        for (size_t i = 0; i < m->s.plan->n; i++)
                ASSERT_TRUE(!streq(m->s.plan->actions[i].group, "storage"));
        ASSERT_EQ(planned(m, "write-file:" MOUNTS_READY)->phase, PHASE_CONFIG);
        ASSERT_TRUE(sample_warned(&m->s, "unused-instance-store"));
        m->s.config.instance.storage.strategy = STORAGE_RAID0;
        m->s.host.n_disks = 1;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!sample_warned(&m->s, "unused-instance-store"));
}

/* ---- fields and texts of a step ---- */

TEST(disks_are_named_in_the_order_of_serials) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bbb", 0);
        ASSERT_PLANNED(m);
        const Action *raid = planned(m, "create-raid:" RAID_DEVICE), *fs = planned(m, "make-filesystem:" RAID_DEVICE), *mount = planned(m, "mount:/mnt/k8s-disks/0");
        _free_ char *names = strv_join(raid->storage.disks, " "), *serials = strv_join(raid->storage.serials, " ");
        ASSERT_STREQ(names, "nvme3n1 nvme2n1 nvme1n1");
        ASSERT_STREQ(serials, "AWS00000000000000001 AWS00000000000000002 AWS00000000000000003");
        ASSERT_STREQ(raid->storage.level, "raid0");
        ASSERT_TRUE(raid->storage.array && fs->storage.array && mount->storage.array);
        ASSERT_TRUE(!raid->storage.running && !raid->storage.array_uuid);
        ASSERT_STREQ(fs->with, "xfs");
        ASSERT_STREQ(mount->with, "noatime");
        ASSERT_STREQ(mount->storage.uuid, fs->storage.uuid);
        ASSERT_EQ(strv_length(mount->storage.disks), 3);
        for (size_t i = 0; i < m->s.plan->n; i++)
                if (streq(m->s.plan->actions[i].group, "storage"))
                        ASSERT_TRUE(!strv_contains(m->s.plan->actions[i].storage.disks, "nvme0n1"));
}

TEST(file_system_uuids_depend_on_serials_and_instance) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_MOUNT, "bb", 0);
        ASSERT_PLANNED(m);
        _free_ char *one = xstrdup(planned(m, "make-filesystem:/mnt/k8s-disks/1")->storage.uuid), *two = xstrdup(planned(m, "make-filesystem:/mnt/k8s-disks/2")->storage.uuid);
        ASSERT_EQ(strlen(one), 36);
        ASSERT_EQ(one[14], '8');
        ASSERT_TRUE(strchr("89ab", one[19]) && one[8] == '-' && one[13] == '-' && one[18] == '-' && one[23] == '-');
        ASSERT_TRUE(!streq(one, two));
        ASSERT_PLANNED(m);
        ASSERT_STREQ(planned(m, "make-filesystem:/mnt/k8s-disks/1")->storage.uuid, one);
        m->disks[1].serial = TEXT(m, "AWS0000000000000000F");
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!streq(planned(m, "make-filesystem:/mnt/k8s-disks/2")->storage.uuid, two));
        m->s.host.instance.id = TEXT(m, "i-other");
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!streq(planned(m, "make-filesystem:/mnt/k8s-disks/1")->storage.uuid, one));
}

TEST(no_uuid_is_used_twice_on_the_same_disks) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        ASSERT_PLANNED(m);
        _free_ char *before = xstrdup(planned(m, "make-filesystem:" RAID_DEVICE)->storage.uuid), *id = xstrdup(m->s.plan->id);
        m->s.host.storage.chance = TEXT(m, "6c5b6a0e-0f9c-4a57-8f0e-6a9c4d1f2b3a");
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!streq(planned(m, "make-filesystem:" RAID_DEVICE)->storage.uuid, before));
        ASSERT_STREQ(m->s.plan->id, id);
}

/* In "far 2" each member shares data with the next one, so no two neighbours can be missing. Three copies are
 * lost only with three members. */
TEST(blank_members_of_other_raid10_layouts_are_an_error) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID10, "0bb3", 0);
        ASSERT_PLANNED(m);
        m->disks[0].content.raid.layout = m->disks[3].content.raid.layout = 0x201;
        ASSERT_REFUSED(m, CAUSE_ARRAY, "cannot be assembled without nvme3n1, nvme2n1");
        _cleanup_(machine_donep) Machine *whole = machine_new(STORAGE_RAID10, "0123", 0);
        for (size_t i = 0; i < 4; i++)
                whole->disks[i].content.raid.layout = 0x201;
        ASSERT_PLANNED(whole);
        _cleanup_(machine_donep) Machine *three = machine_new(STORAGE_RAID10, "bb23", 0);
        three->disks[2].content.raid.layout = three->disks[3].content.raid.layout = 0x103;
        ASSERT_REFUSED(three, CAUSE_ARRAY, "its data may still exist");
}

TEST(the_plan_has_the_array_that_was_found) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID10, "01b3", 0);
        set_array(m, "d013:e", "raid10");
        ASSERT_PLANNED(m);
        const Action *raid = planned(m, "create-raid:" RAID_DEVICE), *mount = planned(m, "mount:/mnt/k8s-disks/0"), *fs = planned(m, "make-filesystem:" RAID_DEVICE);
        ASSERT_STREQ(raid->storage.running, "md127");
        ASSERT_STREQ(raid->storage.array_uuid, UUID_OURS);
        ASSERT_EQ(strv_length(raid->storage.blank), 1);
        ASSERT_STREQ(raid->storage.blank[0], "nvme3n1");
        ASSERT_STREQ(fs->storage.filesystem, "ext4");
        ASSERT_STREQ(fs->with, "xfs");                  /* the action keeps the planned type */
        ASSERT_STREQ(mount->storage.filesystem, "ext4");
        ASSERT_STREQ(mount->storage.uuid, "0f0e0d0c-1111-4222-8333-444455556666");
        ASSERT_STREQ(fs->storage.uuid, mount->storage.uuid);    /* that of the file system that exists */
        ASSERT_TRUE(sample_warned(&m->s, "filesystem-kept"));
        m->s.config.instance.storage.filesystem = FILESYSTEM_EXT4;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!sample_warned(&m->s, "filesystem-kept"));

        _cleanup_(machine_donep) Machine *stale = machine_new(STORAGE_RAID0, "01b", 0);
        set_array(stale, "i01", "raid0");
        ASSERT_PLANNED(stale);
        raid = planned(stale, "create-raid:" RAID_DEVICE);
        ASSERT_STREQ(raid->storage.running, "md127");
        ASSERT_TRUE(!raid->storage.array_uuid && !raid->storage.blank);

        _cleanup_(machine_donep) Machine *asleep = machine_new(STORAGE_RAID0, "012", 0);
        ASSERT_PLANNED(asleep);
        ASSERT_TRUE(!planned(asleep, "create-raid:" RAID_DEVICE)->storage.running);
        ASSERT_STREQ(planned(asleep, "create-raid:" RAID_DEVICE)->storage.array_uuid, UUID_OURS);
        ASSERT_TRUE(planned(asleep, "make-filesystem:" RAID_DEVICE)->storage.uuid);
        ASSERT_TRUE(!planned(asleep, "mount:/mnt/k8s-disks/0")->storage.uuid);
}

TEST(the_plan_names_a_single_disk_by_its_serial) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "u", 0);
        ASSERT_PLANNED(m);
        const Action *fs = planned(m, "make-filesystem:/mnt/k8s-disks/0");
        ASSERT_CONTAINS(fs->why, "nvme1n1 (AWS00000000000000001, 1.9 TB)");
        ASSERT_STREQ(fs->storage.serials[0], "AWS00000000000000001");
        ASSERT_TRUE(!fs->storage.array);
        ASSERT_TRUE(!fs->after);
}

/* ---- the same plan at each boot ---- */

static void bind_all(Machine *m, const char *number) {
        add_mount(m, "/mnt/k8s-disks/0", number, "/", "xfs");
        for (size_t i = 0; i < ARRAY_SIZE(storage_binds); i++)
                add_mount(m, storage_binds[i].path, number, TEXT(m, "/%s", storage_binds[i].name), "xfs");
        add_mount(m, "/var/lib/kubelet/pods/1/volumes/token", "0:77", "/", "tmpfs");    /* a pod runs */
        directory(m, "/mnt/k8s-disks/0")->empty = false;
}

TEST(the_second_run_keeps_everything) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "012", 0);
        set_array(m, "r012:x", "raid0");
        bind_all(m, "9:127");
        m->s.host.storage.programs = NULL;
        ASSERT_PLANNED(m);
        size_t n = 0;
        for (size_t i = 0; i < m->s.plan->n; i++)
                if (streq(m->s.plan->actions[i].group, "storage")) {
                        ASSERT_EQ(m->s.plan->actions[i].storage.state, STEP_KEEP);
                        n++;
                }
        ASSERT_EQ(n, 11);
        ASSERT_EQ(planned(m, "move-files:/mnt/k8s-disks/0")->storage.n_moves, 0);

        _cleanup_(machine_donep) Machine *one = machine_new(STORAGE_RAID0, "e", 0);
        bind_all(one, "259:1");
        one->s.config.instance.storage.filesystem = FILESYSTEM_EXT4;
        ASSERT_PLANNED(one);
        ASSERT_STREQ(state_of(one->s.plan, "mount:/mnt/k8s-disks/0"), "keep");
        ASSERT_STREQ(state_of(one->s.plan, "bind:/var/log/pods"), "keep");

        _cleanup_(machine_donep) Machine *each = machine_new(STORAGE_MOUNT, "xx", 0);
        add_mount(each, "/mnt/k8s-disks/1", "259:2", "/", "xfs");       /* the second by name is the first by serial */
        directory(each, "/mnt/k8s-disks/1")->empty = false;
        add_mount(each, "/srv/elsewhere-too", "259:2", "/sub", "xfs");
        ASSERT_PLANNED(each);
        ASSERT_STREQ(state_of(each->s.plan, "mount:/mnt/k8s-disks/1"), "keep");
        ASSERT_STREQ(state_of(each->s.plan, "mount:/mnt/k8s-disks/2"), "make");
}

TEST(a_mounted_file_system_without_its_mark_gets_the_mark) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "u", 0);
        add_mount(m, "/mnt/k8s-disks/0", "259:1", "/", "xfs");
        directory(m, "/mnt/k8s-disks/0")->empty = false;
        ASSERT_PLANNED(m);
        ASSERT_STREQ(state_of(m->s.plan, "make-filesystem:/mnt/k8s-disks/0"), "keep");
        ASSERT_STREQ(state_of(m->s.plan, "mount:/mnt/k8s-disks/0"), "repair");
}

TEST(the_plan_id_does_not_depend_on_the_content_of_disks) {
        static const struct { const char *disks, *array; bool bound, blind; } machines[] = {
                { "bbb" }, { "bbb", .blind = true }, { "012" }, { "012", "r012:x" }, { "210", "r012:x", .bound = true }, { "HHH", "i012" }, { "01b", "i01" },
        };
        _free_ char *id = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, machines[i].disks, 0);
                m->s.host.storage.looked = !machines[i].blind;
                m->disks[0].serial = TEXT(m, "AWS%017zX", 1000 + i);
                if (machines[i].array)
                        set_array(m, machines[i].array, "raid0");
                if (machines[i].bound)
                        bind_all(m, "9:127");
                ASSERT_PLANNED(m);
                id = id ?: xstrdup(m->s.plan->id);
                ASSERT_STREQ(m->s.plan->id, id);
        }
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bbbb", 0);
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!streq(m->s.plan->id, id));         /* another number of disks gives another id */
        m->s.host.n_disks = 3;
        m->s.config.instance.storage.filesystem = FILESYSTEM_EXT4;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!streq(m->s.plan->id, id));         /* another file system, too */

        _free_ char *single = NULL;
        for (const char *disk = "bxeu"; *disk; disk++) {
                char letter[] = { *disk, 0 };
                _cleanup_(machine_donep) Machine *one = machine_new(STORAGE_MOUNT, letter, 0);
                one->disks[0].serial = TEXT(one, "AWS%c", *disk);
                ASSERT_PLANNED(one);
                single = single ?: xstrdup(one->s.plan->id);
                ASSERT_STREQ(one->s.plan->id, single);
        }
}

/* ---- no look at the disks ---- */

TEST(a_plan_without_a_look_at_disks_shows_all_steps) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "Fp", 0);     /* whatever is on them */
        m->s.host.storage.looked = false;
        m->s.host.storage.programs = NULL;
        m->s.host.storage.not_looked = TEXT(m, "only root can read disks");
        directory(m, "/mnt/k8s-disks/0")->empty = false;
        ASSERT_PLANNED(m);
        for (size_t i = 0; i < m->s.plan->n; i++)
                if (streq(m->s.plan->actions[i].group, "storage"))
                        ASSERT_EQ(m->s.plan->actions[i].storage.state, STEP_UNKNOWN);
        ASSERT_CONTAINS(planned(m, "create-raid:" RAID_DEVICE)->why, "only root can read disks");
        ASSERT_TRUE(!planned(m, "make-filesystem:" RAID_DEVICE)->storage.uuid);
        m->s.config.instance.storage.expected_disks = 8;        /* more may appear */
        ASSERT_PLANNED(m);
        ASSERT_STREQ(planned(m, "create-raid:" RAID_DEVICE)->with, "raid0 8 disks");
        m->s.config.instance.storage.strategy = STORAGE_MOUNT;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(plan_find(m->s.plan, "mount:/mnt/k8s-disks/8"));
        m->s.config.instance.storage.expected_disks = 0;
        m->s.host.type = &sample_type;  /* has one disk */
        m->s.host.n_disks = 0;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(plan_find(m->s.plan, "mount:/mnt/k8s-disks/1"));
        ASSERT_TRUE(!plan_find(m->s.plan, "mount:/mnt/k8s-disks/2"));
}

TEST(too_few_disks_for_raid10_are_an_error_without_a_look_at_disks) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID10, "bbb", 0);
        m->s.host.storage.looked = false;
        ASSERT_PLANNED(m);      /* the config phase: a fourth disk may appear */
        m->s.config.instance.storage.expected_disks = 4;
        ASSERT_PLANNED(m);
        m->s.config.instance.storage.expected_disks = 0;
        m->s.host.type = &sample_type;
        ASSERT_REFUSED(m, CAUSE_DISKS, "RAID10 needs at least four");
        m->s.host.type = NULL;
        m->s.host.storage.not_looked = TEXT(m, "a model");
        ASSERT_REFUSED(m, CAUSE_DISKS, "RAID10 needs at least four");
        m->s.host.n_disks = 1;          /* a type whose number of disks the table does not know: one stands for them all */
        m->s.host.assumed = keep_list(m, LIST("disks"));
        ASSERT_PLANNED(m);
        ASSERT_STREQ(planned(m, "create-raid:" RAID_DEVICE)->with, "raid10 all disks");
        m->s.host.n_disks = 0;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!plan_find(m->s.plan, "create-raid:" RAID_DEVICE));
}

TEST(expecting_more_disks_than_the_type_has_is_an_error) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "b", 0);
        m->s.host.type = &sample_type;
        m->s.host.storage.looked = false;
        m->s.host.modelled = true;
        m->s.config.instance.storage.expected_disks = 1;
        ASSERT_PLANNED(m);
        m->s.config.instance.storage.expected_disks = 2;
        ASSERT_REFUSED(m, CAUSE_DISKS, "expects 2 instance stores, but ");
        m->s.config.failure_policy = FAILURE_JOIN_TAINTED;
        ASSERT_REFUSED(m, CAUSE_DISKS, ": the boot fails");
        m->s.config.instance.storage.strategy = STORAGE_NONE;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(sample_warned(&m->s, "expected-disks"));
        m->s.config.failure_policy = FAILURE_HOLD;      /* a boot only warns of disks that nothing uses */
        ASSERT_PLANNED(m);
        ASSERT_TRUE(sample_warned(&m->s, "expected-disks"));
        m->s.host.type = NULL;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(sample_warned(&m->s, "disks-unknown"));
}

/* ---- fewer disks than expected ---- */

static bool warns(const Machine *m, const char *code) {
        for (size_t i = 0; i < m->s.plan->warnings.n; i++)
                if (m->s.plan->warnings.items[i].code && streq(m->s.plan->warnings.items[i].code, code))
                        return true;
        return false;
}

TEST(a_strategy_without_disks_is_a_warning) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "", 0);
        ASSERT_PLANNED(m);
        ASSERT_TRUE(warns(m, "no-instance-stores"));
        m->s.host.storage.looked = false;       /* the config phase */
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!warns(m, "no-instance-stores"));
        PciDevice controller = { .address = (char *)"0000:00:1f.0", .vendor = 0x1d0f, .device = 0xcd01, .class = 0x010802 };
        m->s.host.storage.looked = true;
        m->s.host.storage.idle = keep_list(m, LIST("0000:00:1f.0"));
        m->s.host.pci = &controller;
        m->s.host.n_pci = 1;
        ASSERT_REFUSED(m, CAUSE_DISKS, "1 of 1 instance stores is missing", "the PCI bus", "this machine has none", "no disk on the controllers at 0000:00:1f.0");
}

TEST(missing_disks_are_counted_and_named) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "02", 4);
        m->s.config.instance.storage.expected_disks = 4;
        ASSERT_REFUSED(m, CAUSE_DISKS, "2 of 4 instance stores are missing (the raid0 array kubernetes lacks members 1, 3 of its 4): expectedDisks says 4",
                       "nvme2n1 (AWS00000000000000001, 1.9 TB), nvme1n1 (AWS00000000000000002, 1.9 TB)", "Stop and start the instance");
        ASSERT_EQ(diag_count(&m->s.diag, false), 1);
        _cleanup_(machine_donep) Machine *none = machine_new(STORAGE_MOUNT, "", 0);
        none->s.host.type = &sample_type;
        ASSERT_REFUSED(none, CAUSE_DISKS, "1 of 1 instance stores is missing: the table of instance types says 1, but this machine has none");
        _cleanup_(machine_donep) Machine *more = machine_new(STORAGE_RAID0, "bbb", 0);
        more->s.config.instance.storage.expected_disks = 2;
        ASSERT_PLANNED(more);
        ASSERT_STREQ(planned(more, "create-raid:" RAID_DEVICE)->with, "raid0 3 disks");
}

/* Our array then has another name. It is in the state of the plan, but not in its id. */
TEST(if_a_foreign_array_has_the_name_kubernetes_ours_is_nodestrap) {
        static const struct { const char *disks, *array; bool other; } cases[] = {
                { "bbb", "rE", true }, { "012", "rE", true }, { "01b", "rE", true }, { "012", "r012:x", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, cases[i].disks, 0);
                ASSERT_PLANNED(m);
                _free_ char *id = xstrdup(m->s.plan->id);
                set_array(m, cases[i].array, "raid0");
                m->s.host.storage.named = TEXT(m, "md127");
                ASSERT_PLANNED(m);
                const Action *a = planned(m, "create-raid:" RAID_DEVICE);
                ASSERT_STREQ(m->s.plan->id, id);
                if (!cases[i].other) {
                        ASSERT_TRUE(!a->storage.device);
                        continue;
                }
                ASSERT_STREQ(a->storage.device, "/dev/md/nodestrap");
                ASSERT_CONTAINS(a->why, "as /dev/md/nodestrap, since md127 has the usual name");
        }
}

TEST(all_errors_are_reported) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "xf", 0);
        m->s.config.instance.storage.expected_disks = 3;
        directory(m, "/mnt/k8s-disks")->kind = DIRECTORY_NO_DIRECTORY;
        ASSERT_ERROR(machine_plan(m), EINVAL);
        ASSERT_EQ(diag_count(&m->s.diag, false), 4);
        ASSERT_TRUE(!m->s.plan);
}

TEST(an_array_of_another_level_is_an_error) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "0123", 0);
        m->s.config.instance.storage.strategy = STORAGE_RAID10;
        ASSERT_REFUSED(m, CAUSE_ARRAY, "that is not raid10", "nvme1n1", "nvme4n1");
}

TEST(an_array_that_is_mounted_elsewhere_is_an_error) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "01", 0);
        set_array(m, "r01:x", "raid0");
        add_mount(m, "/scratch", "9:127", "/", "xfs");
        ASSERT_REFUSED(m, CAUSE_DISK_USED, "runs as md127 and is mounted at /scratch");
        ASSERT_EQ(diag_count(&m->s.diag, false), 1);
}

TEST(two_arrays_on_the_instance_stores_are_an_error) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "0123", 0);
        set_array(m, "i01", "raid0");
        set_array(m, "i23", "raid0");
        ASSERT_REFUSED(m, CAUSE_ARRAY, "md127 and md126");
}

/* ---- mount points ---- */

TEST(a_path_that_cannot_be_a_mount_point_is_an_error) {
        const struct { const char *path; Directory d; const char *says; } places[] = {
                { "/mnt/k8s-disks",   { .kind = DIRECTORY_NO_DIRECTORY },                     "/mnt/k8s-disks is not a directory"          },
                { "/mnt/k8s-disks",   { .on = (char[]){ "proc" }, .empty = true },            "pseudo file system (proc)"                    },
                { "/mnt/k8s-disks/0", { .kind = DIRECTORY_NO_DIRECTORY },                     "/mnt/k8s-disks/0 is not a directory"        },
                { "/mnt/k8s-disks/0", { .kind = DIRECTORY_THERE, .empty = false },            "/mnt/k8s-disks/0 is not empty"            },
                { "/mnt/k8s-disks/0", { .on = (char[]){ "sysfs" }, .empty = true },           "pseudo file system (sysfs)"                   },
                { "/mnt/k8s-disks/0", { .read_only = true, .empty = true },                   "cannot be made on a read-only file system" },
                { "/mnt/k8s-disks",   { .foreign = (char[]){ "/mnt belongs to user 7" }, .empty = true }, "/mnt belongs to user 7: a user who can write there" },
                { "/mnt/k8s-disks/0", { .foreign = (char[]){ "/mnt/k8s-disks/0 can" }, .empty = true }, "/mnt/k8s-disks/0 can: a user who" },
                { "/var/lib/kubelet", { .kind = DIRECTORY_NO_DIRECTORY },                     "/var/lib/kubelet is not a directory"        },
                { "/var/log/pods",    { .read_only = true, .empty = true },                   "PodLogs"                                  },
                { "/var/lib/kubelet", { .kind = DIRECTORY_THERE, .read_only = true },         "/var/lib/kubelet cannot move from a read-only" },
                { "/var/lib/kubelet", { .kind = DIRECTORY_THERE, .on = (char[]){ "cgroup2" } }, "pseudo file system (cgroup2)"               },
        };
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
                Directory *d = directory(m, places[i].path);
                char *path = d->path;
                *d = places[i].d;
                d->path = path;
                ASSERT_REFUSED(m, CAUSE_MOUNT, places[i].says);
                ASSERT_EQ(diag_count(&m->s.diag, false), 1);
        }
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        directory(m, "/mnt/k8s-disks/0")->kind = DIRECTORY_THERE;       /* empty, in an image that is read-only */
        directory(m, "/mnt/k8s-disks/0")->read_only = true;
        directory(m, "/var/log/pods")->kind = DIRECTORY_THERE;
        directory(m, "/var/log/pods")->read_only = true;
        ASSERT_PLANNED(m);
        add_mount(m, "/mnt/k8s-disks/0", "8:1", "/", "ext4");
        ASSERT_REFUSED(m, CAUSE_MOUNT, "something else is mounted at /mnt/k8s-disks/0 (ext4 of /dev/x)");
        _cleanup_(machine_donep) Machine *ro = machine_new(STORAGE_RAID0, "x", 0);
        bind_all(ro, "259:1");
        ro->mounts[0].read_only = true;
        ASSERT_REFUSED(ro, CAUSE_MOUNT, "mounted read-only at /mnt/k8s-disks/0");
}

TEST(a_mount_path_below_a_directory_that_moves_is_an_error) {
        static const char *const paths[] = { "/var/lib/kubelet", "/var/lib/containerd/disks" };
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "b", 0);
                m->s.config.instance.storage.mount_path = TEXT(m, "%s", paths[i]);
                ASSERT_REFUSED(m, CAUSE_MOUNT, "which must move");
                m->s.host.storage.looked = false;
                ASSERT_REFUSED(m, CAUSE_MOUNT, "which must move");
                m->s.config.instance.storage.strategy = STORAGE_MOUNT;
                ASSERT_PLANNED(m);
        }
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "b", 0);
        m->s.config.instance.storage.mount_path = TEXT(m, "/var/lib/kubelet-disks");
        ASSERT_PLANNED(m);
        ASSERT_TRUE(plan_find(m->s.plan, "mount:/var/lib/kubelet-disks/0"));
}

TEST(a_mount_path_in_a_file_system_of_the_kernel_is_an_error) {
        static const char *const paths[] = { "/proc", "/proc/sys/x", "/sys/disks" };
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_MOUNT, "bb", 0);
                m->s.config.instance.storage.mount_path = TEXT(m, "%s", paths[i]);
                ASSERT_REFUSED(m, CAUSE_MOUNT, "a kernel file system");
                ASSERT_EQ(diag_count(&m->s.diag, false), 1);
                m->s.host.storage.looked = false;       /* as in the configuration phase */
                ASSERT_REFUSED(m, CAUSE_MOUNT, TEXT(m, "%s lies in /", paths[i]));
                m->s.config.instance.storage.strategy = STORAGE_NONE;
                ASSERT_PLANNED(m);
        }
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_MOUNT, "b", 0);
        m->s.config.instance.storage.mount_path = TEXT(m, "/system");
        ASSERT_PLANNED(m);
}

TEST(a_move_of_a_directory_with_mounts_below_it_is_an_error) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        add_mount(m, "/var/lib/kubelet/pods/1/volumes/token", "0:77", "/", "tmpfs");
        add_mount(m, "/var/lib/kubelet/pods/2/volumes/token", "0:78", "/", "tmpfs");
        add_mount(m, "/var/lib/kubelet-other", "0:79", "/", "tmpfs");
        ASSERT_REFUSED(m, CAUSE_MOUNT, "2 mounts are below it, the first at /var/lib/kubelet/pods/1/volumes/token. Reboot");
        m->s.config.instance.storage.no_kubelet = true;
        ASSERT_PLANNED(m);
}

TEST(units_with_the_same_mounts_are_a_warning) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        MountUnit units[] = {
                { TEXT(m, "data.mount"), TEXT(m, "/dev/gone"), TEXT(m, "/data"), true },
                { TEXT(m, "mnt-k8s\\x2ddisks-0.mount"), TEXT(m, "UUID=1234"), TEXT(m, "/mnt/k8s-disks/0"), true },
                { TEXT(m, "var-lib-containerd.mount"), TEXT(m, "/mnt/k8s-disks/0/containerd"), TEXT(m, "/var/lib/containerd"), false },
                { TEXT(m, "var-lib-kubelet.mount"), TEXT(m, "/mnt/k8s-disks/0/kubelet"), TEXT(m, "/var/lib/kubelet"), false },
        };
        m->s.host.storage.units = units;
        m->s.host.storage.n_units = ARRAY_SIZE(units);
        ASSERT_PLANNED(m);
        ASSERT_EQ(diag_count(&m->s.plan->warnings, true), 2);
        ASSERT_CONTAINS(m->s.plan->warnings.items[0].text, "mnt-k8s\\x2ddisks-0.mount in /etc/systemd/system mounts a path that nodestrap also mounts, and waits for UUID=1234");
        ASSERT_CONTAINS(m->s.plan->warnings.items[1].text, "(var-lib-containerd.mount, var-lib-kubelet.mount)");
        units[1].missing = false;
        m->s.config.instance.storage.no_containerd = true;      /* then it is the user's own */
        add_mount(m, "/var/lib/kubelet", "259:9", "/", "xfs");
        ASSERT_PLANNED(m);
        ASSERT_EQ(diag_count(&m->s.plan->warnings, true), 2);   /* the other one: directory-mounted */
        ASSERT_CONTAINS(m->s.plan->warnings.items[1].text, "(mnt-k8s\\x2ddisks-0.mount)");
}

TEST(a_mount_of_the_user_stays) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        add_mount(m, "/var/lib/containerd", "259:9", "/", "xfs");
        add_mount(m, "/var/lib/containerd/deeper", "0:70", "/", "tmpfs");
        ASSERT_PLANNED(m);
        ASSERT_TRUE(sample_warned(&m->s, "directory-mounted"));
        ASSERT_TRUE(!plan_find(m->s.plan, "bind:/var/lib/containerd"));
        ASSERT_TRUE(!plan_find(m->s.plan, "stop-unit:containerd.service"));
        ASSERT_TRUE(plan_find(m->s.plan, "bind:/var/lib/kubelet"));
        ASSERT_EQ(planned(m, "move-files:/mnt/k8s-disks/0")->storage.n_moves, 3);
}

/* ---- moves ---- */

TEST(directories_of_disabled_mounts_do_not_move) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        LocalStorage *o = &m->s.config.instance.storage;
        o->no_containerd = true;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!plan_find(m->s.plan, "bind:/var/lib/containerd"));
        ASSERT_TRUE(!plan_find(m->s.plan, "stop-unit:containerd.service"));
        o->no_kubelet = true;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(plan_find(m->s.plan, "stop-unit:kubelet.service"));         /* for the pod logs */
        o->no_pod_logs = true;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!plan_find(m->s.plan, "stop-unit:kubelet.service"));
        ASSERT_TRUE(plan_find(m->s.plan, "bind:/var/lib/soci-snapshotter-grpc"));
        o->no_soci = true;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(!plan_find(m->s.plan, "move-files:/mnt/k8s-disks/0"));
        ASSERT_STREQ(planned(m, "write-file:" MOUNTS_READY)->file.content, "/mnt/k8s-disks/0\n");
        ASSERT_TRUE(strv_contains(planned(m, "write-file:" MOUNTS_READY)->after, "mount:/mnt/k8s-disks/0"));
}

TEST(a_second_run_finds_mounts_through_links) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "012", 0);
        set_array(m, "r012:x", "raid0");
        directory(m, "/mnt/k8s-disks/0")->kind = directory(m, "/var/lib/kubelet")->kind = DIRECTORY_THERE;
        directory(m, "/mnt/k8s-disks/0")->real = TEXT(m, "/srv/0");
        directory(m, "/var/lib/kubelet")->real = TEXT(m, "/srv/kubelet");
        add_mount(m, "/srv/0", "9:127", "/", "xfs");
        add_mount(m, "/srv/kubelet", "9:127", "/kubelet", "xfs");
        ASSERT_PLANNED(m);
        ASSERT_EQ(planned(m, "mount:/mnt/k8s-disks/0")->storage.state, STEP_KEEP);
        ASSERT_EQ(planned(m, "bind:/var/lib/kubelet")->storage.state, STEP_KEEP);
        m->s.host.storage.n_mounts--;
        add_mount(m, "/srv/kubelet/pods/a", "0:50", "/", "tmpfs");
        ASSERT_REFUSED(m, CAUSE_MOUNT, "the first at /srv/kubelet/pods/a");
}

TEST(only_directories_that_are_not_bound_yet_move) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "x", 0);
        add_mount(m, "/mnt/k8s-disks/0", "259:1", "/", "xfs");
        add_mount(m, "/var/lib/kubelet", "259:1", "/kubelet", "xfs");
        directory(m, "/mnt/k8s-disks/0")->empty = false;
        ASSERT_PLANNED(m);
        const Action *move = planned(m, "move-files:/mnt/k8s-disks/0");
        ASSERT_EQ(move->storage.state, STEP_MAKE);
        ASSERT_EQ(move->storage.n_moves, 3);
        ASSERT_STREQ(move->storage.moves[0].from, "/var/lib/containerd");
        ASSERT_STREQ(move->storage.moves[0].name, "containerd");
        ASSERT_CONTAINS(move->why, "400 MB");
        ASSERT_STREQ(state_of(m->s.plan, "bind:/var/lib/kubelet"), "keep");
        ASSERT_STREQ(state_of(m->s.plan, "bind:/var/lib/containerd"), "make");
        ASSERT_STREQ(state_of(m->s.plan, "stop-unit:kubelet.service"), "make");         /* for the pod logs */
        ASSERT_STREQ(planned(m, "bind:/var/lib/containerd")->storage.source, "/mnt/k8s-disks/0/containerd");
        add_mount(m, "/var/log/pods", "259:1", "/pods", "xfs");
        ASSERT_PLANNED(m);
        ASSERT_STREQ(state_of(m->s.plan, "stop-unit:kubelet.service"), "keep");
        m->mounts[1].root = TEXT(m, "/other");          /* not ours */
        ASSERT_PLANNED(m);
        ASSERT_TRUE(sample_warned(&m->s, "directory-mounted"));
}

TEST(data_that_does_not_fit_is_refused) {
        static const struct { StorageStrategy strategy; const char *disks; uint64_t fits; } rooms[] = {
                { STORAGE_RAID0, "b", DISK_BYTES / 100 * 95 }, { STORAGE_RAID0, "bb", 2 * DISK_BYTES / 100 * 95 }, { STORAGE_RAID10, "bbbb", 2 * DISK_BYTES / 100 * 95 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(rooms[i].strategy, rooms[i].disks, 0);
                directory(m, "/var/lib/kubelet")->bytes = 1000;
                directory(m, "/var/lib/containerd")->bytes = rooms[i].fits - 1000;
                ASSERT_PLANNED(m);
                directory(m, "/var/lib/containerd")->bytes++;
                ASSERT_REFUSED(m, CAUSE_MOVE, "(/var/lib/kubelet 1000 B, /var/lib/containerd ");
                m->s.config.instance.storage.no_containerd = true;
                ASSERT_PLANNED(m);
        }
}

/* EC2 loads the volume of an AMI from its snapshot as it is read, so images in the AMI move slowly. The next
 * boot has less to move, and the id must not change. */
TEST(the_deadline_of_a_move_grows_with_the_bytes) {
        static const struct { uint64_t kubelet, containerd, used; uint64_t seconds; } cases[] = {
                { 0, 0, 0, 600 },                                       { 0, 10 << 20, 0, 601 },
                { 10ULL << 30, 40ULL << 30, 60ULL << 30, 600 + 5120 },  { 0, 1ULL << 40, 0, 4 * 3600ULL },
                { 0, 0, 30ULL << 30, 600 + 3072 },      /* one file system, with uncounted content */
        };
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "b", 0);
        _free_ char *id = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Directory *kubelet = directory(m, "/var/lib/kubelet"), *containerd = directory(m, "/var/lib/containerd");
                kubelet->bytes = cases[i].kubelet;
                containerd->bytes = cases[i].containerd;
                kubelet->used = containerd->used = cases[i].used;
                ASSERT_PLANNED(m);
                ASSERT_EQ(planned(m, "move-files:/mnt/k8s-disks/0")->deadline_usec, cases[i].seconds * USEC_PER_SEC);
                id = id ?: xstrdup(m->s.plan->id);
                ASSERT_STREQ(m->s.plan->id, id);
        }
}

TEST(a_missing_program_that_the_plan_needs_is_an_error) {
        static const struct { StorageStrategy strategy; Filesystem filesystem; const char *disks, *array, *lacks; bool needed; } cases[] = {
                { STORAGE_RAID0, FILESYSTEM_XFS, "bb", NULL, "mdadm", true },           { STORAGE_RAID0, FILESYSTEM_XFS, "bb", NULL, "mkfs.xfs", true },
                { STORAGE_RAID0, FILESYSTEM_XFS, "bb", NULL, "mkfs.ext4", false },      { STORAGE_RAID0, FILESYSTEM_EXT4, "bb", NULL, "mkfs.ext4", true },
                { STORAGE_RAID0, FILESYSTEM_EXT4, "bb", NULL, "mkfs.xfs", false },      { STORAGE_RAID0, FILESYSTEM_XFS, "bb", NULL, "cp", true },
                { STORAGE_RAID0, FILESYSTEM_XFS, "b", NULL, "mdadm", false },           { STORAGE_RAID0, FILESYSTEM_XFS, "01", "r01:x", "mdadm", false },
                { STORAGE_RAID0, FILESYSTEM_XFS, "01", "r01:x", "mkfs.xfs", false },    { STORAGE_RAID0, FILESYSTEM_XFS, "01", NULL, "mdadm", true },
                { STORAGE_RAID10, FILESYSTEM_XFS, "012b", NULL, "mdadm", true },        { STORAGE_RAID0, FILESYSTEM_XFS, "0b", NULL, "mdadm", true },
                { STORAGE_MOUNT, FILESYSTEM_XFS, "bb", NULL, "mkfs.xfs", true },        { STORAGE_MOUNT, FILESYSTEM_XFS, "bb", NULL, "cp", false },
                { STORAGE_MOUNT, FILESYSTEM_XFS, "xx", NULL, "mkfs.xfs", false },       { STORAGE_RAID0, FILESYSTEM_EXT4, "u", NULL, "mkfs.ext4", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(cases[i].strategy, cases[i].disks, 0);
                char **left = NULL;
                if (cases[i].array)
                        set_array(m, cases[i].array, "raid0");
                for (char **p = m->s.host.storage.programs; *p; p++)
                        if (!streq(*p, cases[i].lacks))
                                strv_add(&left, *p);
                m->s.host.storage.programs = keep_list(m, left);
                m->s.config.instance.storage.filesystem = cases[i].filesystem;
                if (!cases[i].needed) {
                        ASSERT_PLANNED(m);
                        continue;
                }
                _free_ char *says = xasprintf("%s is missing from this image", cases[i].lacks);
                ASSERT_REFUSED(m, CAUSE_STORAGE_TOOL, says);
                ASSERT_EQ(diag_count(&m->s.diag, false), 1);
        }
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "b", 0);
        m->s.host.storage.programs = keep_list(m, LIST("mkfs.xfs"));
        directory(m, "/var/lib/kubelet")->empty = directory(m, "/var/lib/containerd")->empty = true;
        ASSERT_REFUSED(m, CAUSE_STORAGE_TOOL, "cp is missing from this image: the plan moves data to the instance stores; install coreutils");
        m->s.host.storage.programs = keep_list(m, LIST("mkfs.xfs", "cp"));
        ASSERT_PLANNED(m);      /* the directories themselves are copied */
        ASSERT_CONTAINS(planned(m, "move-files:/mnt/k8s-disks/0")->why, "empty");
}

/* ---- order ---- */

static bool comes_after(const Plan *plan, const char *id, const char *first) {
        const Action *a = plan_find(plan, id);
        ASSERT_TRUE(a && plan_find(plan, first));
        for (char **before = a->after; before && *before; before++)
                if (streq(*before, first) || comes_after(plan, *before, first))
                        return true;
        return false;
}

TEST(each_step_waits_for_the_steps_that_it_needs) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        m->s.config.gates.fast_image_pull = m->s.host.soci_snapshotter = true;
        m->s.host.cpus = 96;
        m->s.host.memory_bytes = 1ULL << 40;
        ASSERT_PLANNED(m);
        static const char raid[] = "create-raid:" RAID_DEVICE, made[] = "make-filesystem:" RAID_DEVICE, ready[] = "write-file:" MOUNTS_READY;
        static const char *const chain[] = {
                raid, made, "mount:/mnt/k8s-disks/0", "stop-unit:kubelet.service", "stop-unit:containerd.service",
                "stop-unit:soci-snapshotter.service", "move-files:/mnt/k8s-disks/0", "bind:/var/lib/containerd", ready,
                "start-unit:soci-snapshotter.service", "start-unit:containerd.service", "start-unit:kubelet.service",
        };
        const Plan *p = m->s.plan;
        for (size_t i = 1; i < ARRAY_SIZE(chain); i++)
                ASSERT_TRUE(comes_after(p, chain[i], chain[i - 1]));
        for (size_t i = 0; i < ARRAY_SIZE(storage_binds); i++) {
                _free_ char *id = xasprintf("bind:%s", storage_binds[i].path);
                ASSERT_TRUE(comes_after(p, "write-file:" MOUNTS_READY, id));
        }
        ASSERT_TRUE(comes_after(p, "move-files:/mnt/k8s-disks/0", "write-file:/var/lib/kubelet/kubeconfig"));
        ASSERT_TRUE(comes_after(p, "move-files:/mnt/k8s-disks/0", "prune-files:/var/lib/nodestrap/manifest.json"));
        ASSERT_TRUE(!comes_after(p, "create-raid:" RAID_DEVICE, "reload-manager:systemd"));     /* the disks need no files */

        char **daemons = keep_list(m, LIST("kubelet"));
        plan_filter(m->s.plan, (bool[_PHASE_MAX]){}, daemons);
        ASSERT_TRUE(comes_after(m->s.plan, "start-unit:kubelet.service", "bind:/var/lib/kubelet"));
}

/* ---- daemons that keep their data elsewhere ---- */

typedef struct Elsewhere {
        const char *toml, *config, *flag, *binds;       /* the binds; */
        const char *error, *path;                       /* or the error and its place */
} Elsewhere;

static char *bound(const Plan *plan) {
        Text t = {};
        for (size_t i = 0; i < plan->n; i++)
                if (plan->actions[i].type == ACTION_BIND)
                        text_add(&t, "%s%s=%s", t.size > 0 ? " " : "", plan->actions[i].target, plan->actions[i].storage.source + strlen("/mnt/k8s-disks/0/"));
        return text_take(&t);
}

#define SOCI " /var/lib/soci-snapshotter-grpc=soci-snapshotter-grpc"
#define LOGS " /var/log/pods=pods"
#define CTRD " /var/lib/containerd=containerd"
#define KUBE "/var/lib/kubelet=kubelet"
#define OVERLAY(path) "{'plugins':{'io.containerd.snapshotter.v1.overlayfs':{'root_path':'" path "'}}}"
TEST(binds_go_where_the_daemons_keep_their_data) {
        static const Elsewhere cases[] = {
                { "{'root':'/opt/lab/containerd'}", .binds = KUBE " /opt/lab/containerd=containerd" LOGS SOCI },
                { "{'root':'/var/lib//containerd/'}", .binds = KUBE CTRD LOGS SOCI },
                { .flag = "--root-dir=/data/kubelet/", .binds = "/data/kubelet=kubelet" CTRD LOGS SOCI },
                { .config = "{'podLogsDir':'/data/pods'}", .binds = KUBE CTRD " /data/pods=pods" SOCI },
                { .config = "{'podLogsDir':'/var/lib/kubelet/logs'}", .binds = KUBE CTRD SOCI },         /* moves with kubelet */
                { "{'state':'/data/state'}", .binds = KUBE CTRD LOGS SOCI " /data/state=containerd-state" },
                { "{'state':'//run//other'}", .binds = KUBE CTRD LOGS SOCI }, { "{'state':'/run/other'}", .binds = KUBE CTRD LOGS SOCI }, { "{'state':'/var/lib/containerd/state'}", .binds = KUBE CTRD LOGS SOCI },
                { OVERLAY("/data/layers"), .binds = KUBE CTRD LOGS SOCI " /data/layers=overlayfs" },
                { OVERLAY("/mnt/k8s-disks/0/layers"), .binds = KUBE CTRD LOGS SOCI },                   /* is on the disks already */
                { "{'root':'/mnt/k8s-disks/0/containerd'}", .binds = KUBE LOGS SOCI },
                { "{'root':'containerd'}", .error = "\"containerd\" is not an absolute path", .path = "spec.containerd.config.root" },
                { "{'root':'/'}", .error = "is the root directory", .path = "spec.containerd.config.root" },
                { .flag = "--root-dir=/var/lib", .error = "in use by the whole system", .path = "spec.kubelet.flags" },
                { .flag = "--root-dir=/etc/kubelet", .error = "in a system directory", .path = "spec.kubelet.flags" },
                { .config = "{'podLogsDir':'/proc/pods'}", .error = "in a system directory", .path = "spec.kubelet.config.podLogsDir" },
                { "{'root':'/var/lib/kubelet/containerd'}", .error = "/var/lib/kubelet/containerd lies in /var/lib/kubelet, which another daemon uses", .path = "spec.containerd.config.root" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
                m->s.config.containerd.config = cases[i].toml ? sample_json(&m->s, cases[i].toml) : NULL;
                m->s.config.kubelet.config = cases[i].config ? sample_json(&m->s, cases[i].config) : NULL;
                m->s.config.kubelet.flags = cases[i].flag ? keep_list(m, LIST(cases[i].flag)) : NULL;
                if (cases[i].error) {
                        ASSERT_REFUSED(m, CAUSE_MOUNT, cases[i].error);
                        ASSERT_STREQ(diag_first_error(&m->s.diag)->path, cases[i].path);
                        continue;
                }
                ASSERT_PLANNED(m);
                _free_ char *binds = bound(m->s.plan);
                ASSERT_STREQ(binds, cases[i].binds);
        }
}

TEST(data_that_stays_on_the_root_disk_may_lie_anywhere) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        m->s.config.containerd.config = sample_json(&m->s, "{'root':'/usr/containerd'}");
        m->s.config.instance.storage.no_containerd = true;
        ASSERT_PLANNED(m);
        const Action *import = planned(m, "import-image:" SANDBOX_ARCHIVE);     /* the AMI has another store */
        ASSERT_TRUE(strv_contains(import->after, "start-unit:containerd.service"));
        ASSERT_STREQ(import->image.store, "/usr/containerd");   /* the executor looks whether it is blank */
}

TEST(daemons_wait_for_the_binds_of_their_own_directories) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        m->s.config.containerd.config = sample_json(&m->s, "{'root':'/opt/lab/containerd'}");
        m->s.config.kubelet.flags = keep_list(m, LIST("--root-dir", "/data/kubelet"));
        add_directory(m, "/opt/lab/containerd", (Directory) { .kind = DIRECTORY_THERE, .empty = false, .bytes = 7000 });
        ASSERT_PLANNED(m);
        ASSERT_TRUE(comes_after(m->s.plan, "start-unit:containerd.service", "bind:/opt/lab/containerd"));
        ASSERT_TRUE(comes_after(m->s.plan, "move-files:/mnt/k8s-disks/0", "stop-unit:containerd.service"));
        ASSERT_TRUE(comes_after(m->s.plan, "forget-state:/data/kubelet", "bind:/data/kubelet"));
        ASSERT_TRUE(comes_after(m->s.plan, "write-file:" KUBELET_TURN, "forget-state:/data/kubelet"));
        directory(m, "/opt/lab/containerd")->foreign = TEXT(m, "/opt/lab belongs to user 1000");
        ASSERT_REFUSED(m, CAUSE_MOUNT, "/opt/lab/containerd", "/opt/lab belongs to user 1000");
}

/* ---- output ---- */

static size_t files_below_binds(const Plan *plan, const char **ret) {
        size_t n = 0;
        for (size_t i = 0; i < plan->n; i++)
                for (size_t k = 0; k < ARRAY_SIZE(storage_binds); k++) {
                        const char *target = plan->actions[i].target;
                        if (plan->actions[i].type == ACTION_WRITE_FILE && startswith(target, storage_binds[k].path)) {
                                ASSERT_EQ(plan->actions[i].phase, PHASE_CONFIG);        /* written at each boot, over that of the disks */
                                *ret = target;
                                n++;
                        }
                }
        return n;
}

/* The config phase removes a file that is no longer planned before the disks are there, so an old copy may be left on them. That can only
 * be a kubeconfig. kubelet reads the one for bootstrapping only if a flag names it. It does not take one without a client certificate for
 * the result of bootstrapping (kubernetes: pkg/kubelet/certificate/bootstrap, isClientConfigStillValid). */
TEST(a_kubeconfig_is_the_only_file_written_below_the_binds) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bb", 0);
        const char *file = NULL;
        ASSERT_PLANNED(m);
        ASSERT_EQ(files_below_binds(m->s.plan, &file), 1);
        ASSERT_STREQ(file, "/var/lib/kubelet/kubeconfig");
        ASSERT_TRUE(!strstr(sample_file(&m->s, file)->file.content, "client-certificate"));
        ASSERT_TRUE(!strstr(sample_file(&m->s, "/etc/eks/kubelet/environment")->file.content, "bootstrap"));
        m->s.config.cluster.outpost = true;
        m->s.config.cluster.id = TEXT(m, "11111111-2222");
        m->s.config.cluster.endpoint = TEXT(m, "https://api.example");
        m->s.host.api_server_addresses = keep_list(m, LIST("10.0.0.4"));
        ASSERT_PLANNED(m);
        ASSERT_EQ(files_below_binds(m->s.plan, &file), 1);
        ASSERT_STREQ(file, "/var/lib/kubelet/bootstrap-kubeconfig");
}

TEST(text_and_json_show_the_storage_actions) {
        _cleanup_(machine_donep) Machine *m = machine_new(STORAGE_RAID0, "bbb", 0);
        ASSERT_PLANNED(m);
        _free_ char *text = plan_to_text(m->s.plan);
        ASSERT_CONTAINS(text, "create-raid    /dev/md/kubernetes raid0 3 disks ");
        ASSERT_CONTAINS(text, "make-filesystem /dev/md/kubernetes xfs ");
        ASSERT_CONTAINS(text, "mount          /mnt/k8s-disks/0 noatime ");
        ASSERT_CONTAINS(text, "bind           /var/lib/kubelet /mnt/k8s-disks/0/kubelet\n");
        json_t *json = plan_to_json(m->s.plan), *a;
        size_t i, seen = 0;
        json_array_foreach(json_object_get(json, "actions"), i, a) {
                const char *type = json_string_value(json_object_get(a, "type"));
                if (streq(type, "create-raid")) {
                        ASSERT_STREQ(json_string_value(json_object_get(a, "with")), "raid0 3 disks");
                        ASSERT_STREQ(json_string_value(json_object_get(a, "state")), "make");
                        ASSERT_STREQ(json_string_value(json_object_get(a, "level")), "raid0");
                        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(a, "disks"), 0)), "nvme3n1");
                        ASSERT_EQ(json_array_size(json_object_get(a, "serials")), 3);
                        seen++;
                } else if (streq(type, "make-filesystem")) {
                        ASSERT_STREQ(json_string_value(json_object_get(a, "filesystem")), "xfs");
                        ASSERT_EQ(json_string_length(json_object_get(a, "uuid")), 36);
                        seen++;
                } else if (streq(type, "move-files")) {
                        ASSERT_EQ(json_array_size(json_object_get(a, "moves")), 4);
                        ASSERT_STREQ(json_string_value(json_object_get(json_array_get(json_object_get(a, "moves"), 2), "name")), "pods");
                        seen++;
                } else if (streq(type, "bind") || streq(type, "stop-unit"))
                        ASSERT_STREQ(json_string_value(json_object_get(a, "state")), "make");
                else if (streq(type, "write-file"))
                        ASSERT_TRUE(!json_object_get(a, "state"));
        }
        ASSERT_EQ(seen, 3);
        json_decref(json);
}

TEST_MAIN
