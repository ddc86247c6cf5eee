/* SPDX-License-Identifier: Apache-2.0
 * The checks of the storage executors before they write, on a root of a few sysfs files; on real disks:
 * tests/vm/raid-steps.sh. */
#include "apply/storage.h"

#include "base/str.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Box { char path[32]; Root *root; Action action; Work work; } Box;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void box_done(Box *b) {
        free(b->work.text);
        strv_free(b->action.storage.disks);
        strv_free(b->action.storage.serials);
        root_free(b->root);
        nftw(b->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const Box *b, const char *path, const char *text) {
        ASSERT_OK(root_replace(b->root, path, text, strlen(text), 0644));
}

static void directory(const Box *b, const char *path) {
        ASSERT_OK(root_make_dirs(b->root, path, 0755));
}

static void disk(Box *b, const char *name, const char *serial) {
        const struct { const char *file, *text; } files[] = {
                { "device/model", "Amazon EC2 NVMe Instance Storage        \n" }, { "device/serial", serial }, { "ro", "0\n" }, { "size", "2048\n" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _free_ char *path = xasprintf("/sys/block/%s/%s", name, files[i].file);
                put(b, path, files[i].text);
        }
        _free_ char *holders = xasprintf("/sys/block/%s/holders", name), *device = xasprintf("/dev/%s", name), *image = xcalloc(1 << 20, 1);
        directory(b, holders);
        ASSERT_OK(root_replace(b->root, device, image, 1 << 20, 0600));
        strv_add(&b->action.storage.disks, name);
        strv_add(&b->action.storage.serials, serial);
}

static void hold(const Box *b, const char *name, const char *holder) {
        _free_ char *path = xasprintf("/sys/block/%s/holders/%s", name, holder), *back = xasprintf("/sys/block/%s/slaves/%s", holder, name);
        directory(b, path);
        directory(b, back);
}

/* Three disks, of which an array "md127" holds two. */
static void box_init(Box *b) {
        *b = (Box){ .path = "/tmp/test-disk.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
        b->work = (Work){ .root = b->root, .action = &b->action, .cancel_fd = -1 };
        disk(b, "nvme1n1", "AWS1");
        disk(b, "nvme2n1", "AWS2");
        hold(b, "nvme1n1", "md127");
        hold(b, "nvme2n1", "md127");
        put(b, "/sys/block/md127/md/array_state", "clean\n");
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

#define ASSERT_FAILS(x, wanted, words) ({                                                      \
        b.work.cause = CAUSE_NONE;                                                             \
        ASSERT_TRUE((x) < 0);                                                                  \
        ASSERT_EQ(b.work.cause, wanted);                                                       \
        ASSERT_CONTAINS(b.work.text, words); })

TEST(a_disk_must_be_the_one_of_the_plan) {
        BOX(b);
        ASSERT_OK(disk_same(&b.work, "nvme1n1", "AWS1"));
        ASSERT_FAILS(disk_same(&b.work, "nvme1n1", "AWS2"), CAUSE_DISKS, "nvme1n1 is the disk AWS1 now, and was AWS2 when the plan was made; nothing was written");
        ASSERT_FAILS(disk_same(&b.work, "nvme9n1", "AWS9"), CAUSE_DISKS, "the disk nvme9n1 (AWS9) is gone");
        put(&b, "/sys/block/nvme1n1/device/model", "Amazon Elastic Block Store              \n");
        ASSERT_FAILS(disk_same(&b.work, "nvme1n1", "AWS1"), CAUSE_DISK_USED, "nvme1n1 (AWS1) is not an instance store but \"Amazon Elastic Block Store\"");
}

TEST(a_disk_must_be_free_or_held_by_the_given_array) {
        BOX(b);
        ASSERT_OK(disk_still(&b.work, "nvme1n1", "AWS1", "md127"));
        ASSERT_FAILS(disk_still(&b.work, "nvme1n1", "AWS1", NULL), CAUSE_DISK_USED, "nvme1n1 (AWS1) is held by md127; nothing was written");
        ASSERT_FAILS(disk_still(&b.work, "nvme1n1", "AWS1", "md0"), CAUSE_DISK_USED, "held by md127");
        hold(&b, "nvme1n1", "dm-0");
        ASSERT_FAILS(disk_still(&b.work, "nvme1n1", "AWS1", "md127"), CAUSE_DISK_USED, "held by dm-0");
        disk(&b, "nvme3n1", "AWS3");
        ASSERT_OK(disk_still(&b.work, "nvme3n1", "AWS3", NULL));
        ASSERT_OK(disk_still(&b.work, "nvme3n1", "AWS3", "md127"));     /* md127 does not hold it */
        ASSERT_OK(root_remove(b.root, "/dev/nvme3n1"));
        ASSERT_FAILS(disk_still(&b.work, "nvme3n1", "AWS3", NULL), CAUSE_DISK_ERROR, "nvme3n1 (AWS3) cannot be opened: No such file");
}

TEST(a_disk_must_be_writable_and_without_partitions) {
        BOX(b);
        directory(&b, "/sys/block/nvme1n1/nvme1n1p1");
        ASSERT_FAILS(disk_still(&b.work, "nvme1n1", "AWS1", "md127"), CAUSE_DISK_USED, "nvme1n1 (AWS1) has a partition, nvme1n1p1; nothing was written");
        put(&b, "/sys/block/nvme2n1/ro", "1\n");
        ASSERT_FAILS(disk_still(&b.work, "nvme2n1", "AWS2", "md127"), CAUSE_DISK_ERROR, "nvme2n1 (AWS2) cannot be written: the kernel made it read-only");
}

TEST(a_disk_may_be_held_by_one_array_and_by_nothing_else) {
        BOX(b);
        _free_ char *md = NULL;
        ASSERT_OK(disk_holder(&b.work, "nvme1n1", &md));
        ASSERT_STREQ(md, "md127");
        disk(&b, "nvme3n1", "AWS3");
        char *none = md;
        ASSERT_OK(disk_holder(&b.work, "nvme3n1", &none));
        ASSERT_TRUE(!none);
        hold(&b, "nvme3n1", "dm-1");
        ASSERT_FAILS(disk_holder(&b.work, "nvme3n1", &none), CAUSE_DISK_USED, "nvme3n1 (AWS3) is held by dm-1");
        hold(&b, "nvme1n1", "md9");
        ASSERT_FAILS(disk_holder(&b.work, "nvme1n1", &none), CAUSE_DISK_USED, "nvme1n1 (AWS1) is held by md9");
}

TEST(a_step_works_on_its_disk_or_on_the_array_of_all_of_them) {
        BOX(b);
        _free_ char *device = NULL, *array = NULL;
        ASSERT_OK(step_device(&b.work, &device));
        ASSERT_STREQ(device, "nvme1n1");
        b.action.storage.array = true;
        ASSERT_OK(step_device(&b.work, &array));
        ASSERT_STREQ(array, "md127");
}

TEST(the_array_runs_on_exactly_the_disks_of_the_step) {
        BOX(b);
        char *device = NULL;
        b.action.storage.array = true;
        put(&b, "/sys/block/md127/md/array_state", "inactive\n");
        ASSERT_FAILS(step_device(&b.work, &device), CAUSE_ARRAY, "the array md127 of nvme1n1 (AWS1), nvme2n1 (AWS2) is not running");
        put(&b, "/sys/block/md127/md/array_state", "clear\n");
        ASSERT_FAILS(step_device(&b.work, &device), CAUSE_ARRAY, "is not running");
        put(&b, "/sys/block/md127/md/array_state", "read-auto\n");
        hold(&b, "nvme0n1", "md127");
        ASSERT_FAILS(step_device(&b.work, &device), CAUSE_ARRAY, "the array md127 has the disks nvme0n1, nvme1n1, nvme2n1 but needs nvme1n1 (AWS1), nvme2n1 (AWS2)");
        strv_free(TAKE_PTR(b.action.storage.disks));
        strv_free(TAKE_PTR(b.action.storage.serials));
        disk(&b, "nvme3n1", "AWS3");
        ASSERT_FAILS(step_device(&b.work, &device), CAUSE_ARRAY, "no array holds nvme3n1 (AWS3)");
        strv_free(TAKE_PTR(b.action.storage.disks));
        ASSERT_FAILS(step_device(&b.work, &device), CAUSE_INTERNAL, "does not name a disk");
        ASSERT_TRUE(!device);
}

TEST(the_content_of_a_disk_is_read_or_the_message_has_the_error) {
        BOX(b);
        _cleanup_(content_done) Content c = {};
        ASSERT_OK(device_content(&b.work, "nvme1n1", &c));
        ASSERT_EQ(c.kind, CONTENT_BLANK);
        put(&b, "/dev/nvme2n1", "");
        ASSERT_FAILS(device_content(&b.work, "nvme2n1", &c), CAUSE_DISK_ERROR, "nvme2n1 (AWS2) cannot be read: ");
        ASSERT_OK(root_remove(b.root, "/dev/nvme2n1"));
        ASSERT_FAILS(device_content(&b.work, "nvme2n1", &c), CAUSE_DISK_ERROR, "the content of nvme2n1 (AWS2) cannot be read: No such file");
        (void)device_refuse(&b.work, "nvme1n1", &c);
        ASSERT_STREQ(b.work.text, "nvme1n1 (AWS1) carries nothing, which the plan does not expect; nothing was written; run nodestrap init again for a new plan");
}

TEST(a_locked_device_is_exclusive_and_writable) {
        BOX(b);
        int fd = ASSERT_OK(disk_lock(b.root, "nvme1n1", O_RDWR)), other = ASSERT_OK(root_open(b.root, "/dev/nvme1n1", O_RDONLY));
        ASSERT_EQ(write(fd, "x", 1), 1);
        ASSERT_TRUE(flock(other, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK);
        close(fd);
        ASSERT_OK(flock(other, LOCK_SH | LOCK_NB));
        close(other);
        ASSERT_ERROR(disk_lock(b.root, "nvme9n1", O_RDWR), ENOENT);
        _free_ char *link = xasprintf("%s/dev/link", b.path);
        ASSERT_OK(symlink("nvme1n1", link));
        ASSERT_ERROR(disk_lock(b.root, "link", O_RDWR), ELOOP);
}

TEST(disks_are_shown_with_their_serials) {
        BOX(b);
        _free_ char *one = disk_shown(&b.work, "nvme2n1"), *other = disk_shown(&b.work, "md127"), *all = disks_shown(&b.work);
        _strv_ char **argv = command("mdadm", "--stop", "/dev/md127", NULL);
        ASSERT_STREQ(one, "nvme2n1 (AWS2)");
        ASSERT_STREQ(other, "md127");
        ASSERT_STREQ(all, "nvme1n1 (AWS1), nvme2n1 (AWS2)");
        ASSERT_EQ(strv_length(argv), 3);
        ASSERT_STREQ(argv[2], "/dev/md127");
}

TEST_MAIN
