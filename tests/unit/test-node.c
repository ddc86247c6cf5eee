/* SPDX-License-Identifier: Apache-2.0
 * make-nodes: the device nodes that it makes from the files of the driver in /proc, with their numbers and
 * rights. */
#include "apply/device.h"
#include "mounts.h"

#include <sys/sysmacros.h>

#define DEVICES "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n"
#define BLOCK "\nBlock devices:\n259 blkext\n"
#define PARAMS "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"
#define INFORMATION "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 255\nDevice Minor: \t "

static void driver_init(Box *b) {
        box_init(b);
        put(b, "/proc/devices", DEVICES "506 nvidia-uvm\n" BLOCK);
        put(b, "/proc/driver/nvidia/params", PARAMS);
        put(b, "/proc/driver/nvidia/gpus/0000:53:00.0/information", INFORMATION "1\n");
        put(b, "/proc/driver/nvidia/gpus/0000:64:00.0/information", INFORMATION "0\nGPU Excluded:\t No\n");
}
#define DRIVER(name) _cleanup_(box_done) Box name; driver_init(&name)

static void assert_works(Box *b, int want) {
        int r = nodes_work(&b->work);
        if (r != want)
                FAIL("it is %d, want %d: %s", r, want, b->work.text ?: "");
}

static void assert_node(const Box *b, const char *path, unsigned number, unsigned second, mode_t mode) {
        struct stat st = look_at(b, path);
        _free_ char *link = xasprintf("/dev/char/%u:%u", number, second), *to = NULL;
        _free_ char *want = xasprintf("..%s", path + strlen("/dev"));
        ASSERT_EQ(st.st_mode, S_IFCHR | mode);
        ASSERT_EQ(major(st.st_rdev), number);
        ASSERT_EQ(minor(st.st_rdev), second);
        ASSERT_OK(root_read_link(b->root, link, &to));
        ASSERT_STREQ(to, want);
}

TEST(device_nodes_of_driver_and_uvm_are_made) {
        DRIVER(b);
        mode_t mask = umask(077);
        assert_works(&b, 1);
        umask(mask);
        assert_entries(&b, "/dev", "char nvidia-uvm nvidia-uvm-tools nvidia0 nvidia1 nvidiactl");
        assert_node(&b, "/dev/nvidiactl", 195, 255, 0666);
        assert_node(&b, "/dev/nvidia0", 195, 0, 0666);
        assert_node(&b, "/dev/nvidia1", 195, 1, 0666);
        assert_node(&b, "/dev/nvidia-uvm", 506, 0, 0666);
        assert_node(&b, "/dev/nvidia-uvm-tools", 506, 1, 0666);
        assert_works(&b, 0);
}

TEST(modeset_has_a_device_node_if_it_is_loaded) {
        DRIVER(b);
        put(&b, "/proc/devices", DEVICES "195 nvidia-modeset\n506 nvidia-uvm\n" BLOCK);
        assert_works(&b, 1);
        assert_node(&b, "/dev/nvidia-modeset", 195, 254, 0666);
}

/* nvidia_uvm gets another number each time that it is loaded. */
TEST(a_stale_device_node_is_replaced) {
        DRIVER(b);
        assert_works(&b, 1);
        put(&b, "/proc/devices", DEVICES "511 nvidia-uvm\n" BLOCK);
        assert_works(&b, 1);
        assert_node(&b, "/dev/nvidia-uvm", 511, 0, 0666);
        assert_node(&b, "/dev/nvidia-uvm-tools", 511, 1, 0666);
        _free_ char *path = box_path(&b, "/dev/nvidia0"), *link = box_path(&b, "/dev/char/195:1");
        ASSERT_EQ(unlink(path), 0);
        put(&b, "/dev/nvidia0", "a file");
        ASSERT_EQ(unlink(link), 0);
        assert_works(&b, 1);
        assert_node(&b, "/dev/nvidia0", 195, 0, 0666);
        assert_node(&b, "/dev/nvidia1", 195, 1, 0666);
        assert_works(&b, 0);
}

TEST(owner_and_mode_follow_the_driver_parameters) {
        DRIVER(b);
        put(&b, "/proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nDeviceFileUID: 7\nDeviceFileGID: 44\nDeviceFileMode: 432\n");
        assert_works(&b, 1);
        assert_node(&b, "/dev/nvidia0", 195, 0, 0660);
        ASSERT_EQ(look_at(&b, "/dev/nvidia0").st_uid, 7);
        ASSERT_EQ(look_at(&b, "/dev/nvidia0").st_gid, 44);
        assert_node(&b, "/dev/nvidia-uvm", 506, 0, 0666);
        ASSERT_EQ(look_at(&b, "/dev/nvidia-uvm").st_gid, 0);
        put(&b, "/proc/driver/nvidia/params", PARAMS);
        assert_works(&b, 1);
        assert_node(&b, "/dev/nvidia0", 195, 0, 0666);
        ASSERT_EQ(look_at(&b, "/dev/nvidia0").st_uid, 0);
}

/* The parameter protects the nodes of the driver; nvidia_uvm has no such parameter. */
TEST(modify_device_files_0_leaves_driver_nodes_alone) {
        DRIVER(b);
        put(&b, "/proc/driver/nvidia/params", "ModifyDeviceFiles: 0\nDeviceFileMode: 384\n");
        assert_works(&b, 1);
        assert_entries(&b, "/dev", "char nvidia-uvm nvidia-uvm-tools");
}

static void assert_fails(Box *b, const char *words) {
        ASSERT_TRUE(nodes_work(&b->work) < 0);
        ASSERT_EQ(b->work.cause, CAUSE_DRIVER);
        ASSERT_CONTAINS(b->work.text, words);
}

TEST(missing_facts_of_the_driver_are_failures) {
        DRIVER(b);
        put(&b, "/proc/devices", DEVICES "\nBlock devices:\n506 nvidia-uvm\n");
        assert_fails(&b, "/proc/devices does not list nvidia-uvm");
        put(&b, "/proc/driver/nvidia/gpus/0000:64:00.0/information", "Model: NVIDIA\n");
        assert_fails(&b, "the device node of GPU 0000:64:00.0 is unknown: /proc/driver/nvidia/gpus/0000:64:00.0/information: Bad message");
        BOX(empty);
        assert_fails(&empty, "/proc/driver/nvidia/gpus cannot be read: No such file or directory");
}

TEST(a_device_node_that_cannot_be_made_is_a_failure) {
        DRIVER(b);
        box_tmpfs(&b, "/dev", "mode=0755,ro");
        assert_fails(&b, "/dev/nvidiactl cannot be made: Read-only file system");
        ASSERT_CONTAINS(node_error(-EPERM), "a container needs CAP_MKNOD");
}

TEST_MAIN
