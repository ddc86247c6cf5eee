/* SPDX-License-Identifier: Apache-2.0
 * Mounts and binds in a separate mount namespace; file systems are on loop devices, if there are any.
 * tests/vm/move-steps.sh tests the whole step on NVMe, with labels and UUIDs. */
#include "apply/storage.h"
#include "base/run.h"
#include "disk/disk.h"
#include "mounts.h"

#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

static int run_bind(Box *b) {
        int r = bind_work(&b->work);
        if (r < 0 && !b->work.text)
                FAIL("it failed without a word: %s", strerror(-r));
        return r;
}

static void assert_refused(Box *b, const char *words) {
        ASSERT_TRUE(run_bind(b) < 0);
        ASSERT_EQ(b->work.cause, CAUSE_MOUNT);
        ASSERT_CONTAINS(b->work.text, words);
}

static void bind_init(Box *b) {
        box_init(b);
        b->action = (Action){ .type = ACTION_BIND, .target = (char *)"/var/lib/kubelet",
                              .storage = { .state = STEP_MAKE, .source = (char *)"/mnt/0/kubelet" } };
        box_tmpfs(b, "/mnt/0", NULL);
        put(b, "/mnt/0/kubelet/file", "on the disks");
}
#define BIND(name) _cleanup_(box_done) Box name; bind_init(&name)

TEST(bind_shows_the_source_and_is_shared) {
        BIND(b);
        put(&b, "/var/lib/kubelet/file", "hidden");
        ASSERT_EQ(run_bind(&b), 1);
        assert_file(&b, "/var/lib/kubelet/file", "on the disks");
        ASSERT_TRUE(is_shared(&b, "/var/lib/kubelet"));
        ASSERT_TRUE(!is_shared(&b, "/mnt/0"));
}

TEST(bind_changes_nothing_the_second_time) {
        BIND(b);
        box_mkdir(&b, "/var/lib/kubelet", 0750);
        ASSERT_EQ(run_bind(&b), 1);
        ASSERT_EQ(run_bind(&b), 0);
        _free_ char *target = box_path(&b, "/var/lib/kubelet");
        ASSERT_EQ(umount(target), 0);
        ASSERT_TRUE(umount(target) < 0);
}

TEST(bind_makes_a_missing_target_like_its_source) {
        BIND(b);
        _free_ char *source = box_path(&b, "/mnt/0/kubelet"), *target = box_path(&b, "/var/lib/kubelet");
        ASSERT_EQ(chown(source, 7, 8), 0);
        ASSERT_EQ(chmod(source, 02750), 0);
        ASSERT_EQ(run_bind(&b), 1);
        ASSERT_EQ(umount(target), 0);
        struct stat st = look_at(&b, "/var/lib/kubelet");
        ASSERT_EQ(st.st_mode, S_IFDIR | 02750);
        ASSERT_EQ(st.st_uid * 100 + st.st_gid, 708);
        ASSERT_EQ(look_at(&b, "/var/lib").st_mode, S_IFDIR | 0755);
}

TEST(bind_over_a_link_covers_the_target_of_the_link) {
        BIND(b);
        _free_ char *link = box_path(&b, "/var/lib/kubelet");
        box_mkdir(&b, "/data/kubelet", 0750);
        box_mkdir(&b, "/var/lib", 0755);
        ASSERT_EQ(symlink("/data/kubelet", link), 0);
        ASSERT_EQ(run_bind(&b), 1);
        assert_file(&b, "/data/kubelet/file", "on the disks");
        assert_file(&b, "/var/lib/kubelet/file", "on the disks");
        ASSERT_TRUE(S_ISLNK(look_at(&b, "/var/lib/kubelet").st_mode));
        ASSERT_TRUE(is_shared(&b, "/data/kubelet"));
        ASSERT_EQ(run_bind(&b), 0);
}

TEST(bind_is_refused_if_another_file_system_is_mounted) {
        BIND(b);
        box_tmpfs(&b, "/var/lib/kubelet", NULL);
        assert_refused(&b, "another file system is mounted on /var/lib/kubelet");
}

TEST(bind_needs_its_source) {
        BIND(b);
        b.action.storage.source = (char *)"/mnt/0/absent";
        assert_refused(&b, "/mnt/0/absent cannot be opened as a directory");
        ASSERT_TRUE(!is_there(&b, "/var/lib/kubelet"));
}

TEST(bind_over_a_file_is_refused) {
        BIND(b);
        put(&b, "/var/lib/kubelet", "a file");
        assert_refused(&b, "/var/lib/kubelet cannot be made: Not a directory");
}

TEST(a_mount_below_a_directory_is_found) {
        BOX(b);
        _free_ char *name = NULL, *dir = box_path(&b, "/a"), *inner = box_path(&b, "/a/with blank/x");
        box_tmpfs(&b, "/a", NULL);
        box_tmpfs(&b, "/ab", NULL);
        ASSERT_EQ(mount_below(&b.work, dir, &name), 0);         /* neither the directory itself nor one with the same prefix */
        box_tmpfs(&b, "/a/with blank/x", NULL);
        ASSERT_EQ(mount_below(&b.work, dir, &name), 1);
        ASSERT_STREQ(name, inner);
}

/* ---- devices ---- */

/* A loop device that disappears when its last user closes it, or -1 without one. Other processes may look
 * for one, too. */
static int loop_open(const char *image, unsigned *ret_number) {
        _cleanup_(close_fd) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), file = open(image, O_RDWR | O_CLOEXEC);
        struct loop_config config = { .fd = (unsigned)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR };
        for (unsigned tries = 0; tries < 100; tries++) {
                int number = ioctl(control, LOOP_CTL_GET_FREE);
                _free_ char *path = xasprintf("/dev/loop%d", number);
                int fd = number < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
                if (fd < 0)
                        return -1;
                *ret_number = (unsigned)number;
                if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
                        return fd;
                close(fd);
                if (errno != EBUSY)
                        return -1;
        }
        return -1;
}

/* Runs the program on a sparse file and shows the file as /device. Returns -1 if this machine cannot do
 * that. */
static int device_make(Box *b, char *program, char *option) {
        _cleanup_(child_result_done) ChildResult made = {};
        _free_ char *image = box_path(b, "/image"), *node = box_path(b, "/device");
        unsigned number = 0;
        box_mkdir(b, "/mnt/0", 0755);
        int file = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_TRUE(file >= 0 && ftruncate(file, 400 << 20) == 0);
        close(file);
        if (child_run((char *[]){ program, option, image, NULL }, 60 * USEC_PER_SEC, 0, &made) < 0 || made.status != 0)
                return -1;
        int loop = loop_open(image, &number);
        if (loop >= 0)
                ASSERT_EQ(mknod(node, S_IFBLK | 0600, makedev(7, number)), 0);
        return loop;
}

static void assert_mounts(Box *b, const char *type, long magic) {
        _free_ char *target = box_path(b, "/mnt/0");
        struct statfs fs;
        if (mount_device(&b->work, "/device", "/mnt/0", type, "noatime") < 0)
                FAIL("%s", b->work.text);
        ASSERT_EQ(statfs(target, &fs), 0);
        ASSERT_EQ(fs.f_type, magic);
        ASSERT_TRUE(fs.f_flags & ST_NOATIME);
        ASSERT_TRUE(!is_shared(b, "/mnt/0"));
        ASSERT_EQ(umount(target), 0);
}

TEST(ext4_is_mounted_with_its_options) {
        BOX(b);
        _cleanup_(close_fd) int loop = device_make(&b, (char *)"mkfs.ext4", (char *)"-q");
        if (loop < 0)
                SKIP("no loop device or no mkfs.ext4");
        assert_mounts(&b, "ext4", 0xef53);
}

TEST(xfs_is_mounted_with_its_options) {
        BOX(b);
        _cleanup_(close_fd) int loop = device_make(&b, (char *)"mkfs.xfs", (char *)"-q");
        if (loop < 0)
                SKIP("no loop device or no mkfs.xfs");
        assert_mounts(&b, "xfs", 0x58465342);
}

/* The label of the disk now; the loop device shows written blocks, not those that the mount still holds
 * back. */
static void assert_label(Box *b, const char *label) {
        Content c = {};
        Diag diag = {};
        ASSERT_OK(content_probe(b->work.root, "/dev/nvme1n1", &c, &diag));
        ASSERT_STREQ(c.label, label);
        content_done(&c);
        diag_done(&diag);
}

TEST(a_mount_interrupted_before_its_label_gets_the_label) {
        BOX(b);
        _cleanup_(close_fd) int loop = device_make(&b, (char *)"mkfs.xfs", (char *)"-Lnodestrap-mk");
        if (loop < 0)
                SKIP("no loop device or no mkfs.xfs");
        _free_ char *given = box_path(&b, "/device"), *node = box_path(&b, "/dev/nvme1n1"), *target = box_path(&b, "/mnt/0");
        char *disks[] = { (char *)"nvme1n1", NULL }, *serials[] = { (char *)"AWS1", NULL };
        box_mkdir(&b, "/dev", 0755);
        ASSERT_EQ(rename(given, node), 0);
        put(&b, "/sys/block/nvme1n1/device/serial", "AWS1");
        put(&b, "/sys/block/nvme1n1/device/model", "Amazon EC2 NVMe Instance Storage");
        b.action = (Action){ .type = ACTION_MOUNT, .target = (char *)"/mnt/0", .storage = { .state = STEP_REPAIR, .disks = disks, .serials = serials } };
        ASSERT_ERROR(mount_work(&b.work), ESTALE);      /* it is not mounted at all */
        ASSERT_CONTAINS(b.work.text, "but is not now");
        assert_label(&b, LABEL_UNFINISHED);
        ASSERT_OK(mount_device(&b.work, "/dev/nvme1n1", "/mnt/0", "xfs", "noatime"));
        if (TRANSLATED_BY("qemu-user") && umount(target) == 0)
                SKIP("qemu-user does not know FS_IOC_SETFSLABEL");
        ASSERT_EQ(mount_work(&b.work), 1);
        assert_label(&b, LABEL_FINISHED);
        ASSERT_EQ(mount_work(&b.work), 0);
        ASSERT_EQ(umount(target), 0);
        ASSERT_TRUE(umount(target) < 0);                /* nothing was mounted over it */
}

TEST(a_failed_mount_has_the_message_of_libmount) {
        BOX(b);
        _cleanup_(close_fd) int loop = device_make(&b, (char *)"true", (char *)"-q");
        if (loop < 0)
                SKIP("no loop device");
        ASSERT_TRUE(mount_device(&b.work, "/device", "/mnt/0", "ext4", "noatime") < 0);
        ASSERT_EQ(b.work.cause, CAUSE_MOUNT);
        ASSERT_CONTAINS(b.work.text, "/device (ext4) cannot be mounted on /mnt/0: wrong fs type, bad option, bad superblock");
        ASSERT_ERROR(mount_device(&b.work, "/device", "/mnt/0", "nosuchfs", "noatime"), ENODEV);
        ASSERT_CONTAINS(b.work.text, "unknown filesystem type 'nosuchfs'");
}

TEST(a_device_that_cannot_be_written_is_not_mounted) {
        BOX(b);
        _cleanup_(close_fd) int loop = device_make(&b, (char *)"mkfs.ext4", (char *)"-q");
        if (loop < 0)
                SKIP("no loop device or no mkfs.ext4");
        ASSERT_EQ(ioctl(loop, BLKROSET, &(int){ 1 }), 0);
        ASSERT_TRUE(mount_device(&b.work, "/device", "/mnt/0", "ext4", "noatime") < 0);
        ASSERT_EQ(ioctl(loop, BLKROSET, &(int){ 0 }), 0);
        ASSERT_CONTAINS(b.work.text, "write-protected");
}

TEST(a_missing_device_is_an_error) {
        BOX(b);
        box_mkdir(&b, "/mnt/0", 0755);
        ASSERT_ERROR(mount_device(&b.work, "/absent", "/mnt/0", "ext4", "noatime"), ENOENT);
        ASSERT_CONTAINS(b.work.text, "/absent cannot be opened: No such file or directory");
}

TEST_MAIN
