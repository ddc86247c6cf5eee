/* SPDX-License-Identifier: Apache-2.0
 * How wait_for_disks() counts disks in trees of sysfs, where it never waits. tests/vm/late-disks.sh tests the
 * waits. */
#include "host/detect.h"

#include "test.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <signal.h>
#include <unistd.h>

#define STORE "Amazon EC2 NVMe Instance Storage        \n"
#define EBS   "Amazon Elastic Block Store              \n"

typedef struct Tree { char dir[32]; Root *root; Diag diag; } Tree;

static void tree_done(Tree *t) {
        _cleanup_(child_result_done) ChildResult c = {};
        root_free(t->root);
        diag_done(&t->diag);
        ASSERT_OK(child_run((char *[]){ (char *)"rm", (char *)"-r", t->dir, NULL }, 60 * USEC_PER_SEC, 4096, &c));
}

static void tree_open(Tree *t) {
        strcpy(t->dir, P_tmpdir "/test-wait-XXXXXX");
        ASSERT_TRUE(mkdtemp(t->dir));
        ASSERT_OK(root_new(t->dir, &t->root));
}
#define TREE(name) _cleanup_(tree_done) Tree name = {}; tree_open(&name)

static void put(Tree *t, const char *text, const char *directory, const char *name, const char *attribute) {
        _free_ char *path = xasprintf("%s/%s/%s", directory, name, attribute);
        ASSERT_OK(root_replace(t->root, path, text, strlen(text), 0644));
}

static void add_disk(Tree *t, const char *name, const char *model) {
        put(t, model, "/sys/block", name, "device/model");
        put(t, "AWS11111111111111111\n", "/sys/block", name, "device/serial");
        put(t, "2097152\n", "/sys/block", name, "size");
}

/* namespace: the directory of one of its paths, NULL while it has none */
static void add_controller(Tree *t, const char *name, const char *model, const char *namespace) {
        _free_ char *path = xasprintf("/sys/class/nvme/%s", name);
        put(t, model, "/sys/class/nvme", name, "model");
        put(t, "", path, "power", "control");
        put(t, "", path, "ng0n1", "uevent");
        if (namespace)
                put(t, "", path, namespace, "uevent");
}

static int wait(Tree *t, unsigned expected, uint64_t usec) {
        const Config config = { .instance.storage.strategy = STORAGE_RAID0 };
        return wait_for_disks(t->root, &config, expected, &(HostOptions){ .disks_timeout_usec = usec },
                              &t->diag);
}

/* 1: all are there, 0: not */
static int all_there(Tree *t, unsigned expected) {
        return ASSERT_OK(wait(t, expected, 0));
}

TEST(no_disks_are_enough_only_if_none_are_expected) {
        TREE(t);
        ASSERT_EQ(all_there(&t, 0), 1);
        ASSERT_EQ(all_there(&t, 1), 0);
}

TEST(only_instance_stores_are_counted) {
        TREE(t);
        add_disk(&t, "nvme0n1", EBS);
        add_disk(&t, "nvme1n1", STORE);
        add_disk(&t, "nvme2n1", STORE);
        ASSERT_EQ(all_there(&t, 2), 1);
        ASSERT_EQ(all_there(&t, 3), 0);
}

TEST(more_disks_than_expected_are_enough) {
        TREE(t);
        add_disk(&t, "nvme1n1", STORE);
        add_disk(&t, "nvme2n1", STORE);
        ASSERT_EQ(all_there(&t, 1), 1);
}

TEST(a_controller_without_its_namespace_counts_as_expected) {
        TREE(t);
        add_disk(&t, "nvme1n1", STORE);
        add_controller(&t, "nvme1", STORE, "nvme1n1");
        ASSERT_EQ(all_there(&t, 0), 1);
        add_controller(&t, "nvme2", STORE, NULL);
        ASSERT_EQ(all_there(&t, 0), 0);
        ASSERT_EQ(all_there(&t, 1), 0);
        add_disk(&t, "nvme2n1", STORE);
        add_controller(&t, "nvme2", STORE, "nvme2n1");
        ASSERT_EQ(all_there(&t, 0), 1);
}

TEST(a_hidden_path_is_a_namespace) {
        TREE(t);
        add_disk(&t, "nvme0n1", STORE);
        add_controller(&t, "nvme3", STORE, "nvme0c3n1");
        ASSERT_EQ(all_there(&t, 0), 1);
}

TEST(controllers_of_other_disks_may_lack_a_namespace) {
        TREE(t);
        add_controller(&t, "nvme0", EBS, NULL);
        add_controller(&t, "nvme1", "QEMU NVMe Ctrl\n", NULL);
        ASSERT_EQ(all_there(&t, 0), 1);
}

TEST(a_controller_without_a_model_yet_counts_as_expected) {
        TREE(t);
        add_controller(&t, "nvme0", "\n", NULL);
        ASSERT_EQ(all_there(&t, 0), 0);
        add_controller(&t, "nvme0", "(null)\n", NULL);
        ASSERT_EQ(all_there(&t, 0), 0);
        add_controller(&t, "nvme0", EBS, NULL);
        ASSERT_EQ(all_there(&t, 0), 1);
}

TEST(a_controller_that_goes_away_does_not_count) {
        TREE(t);
        put(&t, "", "/sys/class/nvme", "nvme0", "uevent");
        ASSERT_EQ(all_there(&t, 0), 1);
}

TEST(a_size_that_is_not_a_number_is_an_error) {
        TREE(t);
        add_disk(&t, "nvme1n1", STORE);
        put(&t, "many\n", "/sys/block", "nvme1n1", "size");
        ASSERT_ERROR(wait(&t, 1, 0), EINVAL);
        ASSERT_STREQ(diag_first_error(&t.diag)->where, "/sys/block/nvme1n1/size");
}

TEST(a_class_that_cannot_be_read_is_an_error) {
        TREE(t);
        put(&t, "no directory", "/sys", "class", "nvme");
        ASSERT_ERROR(wait(&t, 0, 0), ENOTDIR);
        ASSERT_STREQ(diag_first_error(&t.diag)->where, "/sys/class/nvme");
}

/* A wait would end at once with -EINTR: a signal has come before. */
TEST(in_a_root_directory_of_a_test_there_is_no_wait) {
        TREE(t);
        put(&t, "", "/run", "udev", "control");
        put(&t, "", "/run", "udev", "queue");
        stop_catch();
        ASSERT_OK(raise(SIGTERM));
        ASSERT_EQ(stop_signal(), SIGTERM);
        ASSERT_EQ(ASSERT_OK(wait(&t, 1, 60 * USEC_PER_SEC)), 0);
        add_disk(&t, "nvme1n1", STORE);
        ASSERT_EQ(ASSERT_OK(wait(&t, 1, 60 * USEC_PER_SEC)), 1);
}

TEST(a_late_volume_gets_its_own_timeout_and_then_that_of_disks) {
        const HostOptions o = { .disks_timeout_usec = 30, .volumes_timeout_usec = 120 };
        ASSERT_EQ(wait_deadline(1000, 1000, false, &o), 1030);
        ASSERT_EQ(wait_deadline(1000, 1000, true, &o), 1120);
        ASSERT_EQ(wait_deadline(1000, 1100, true, &o), 1120);
        ASSERT_EQ(wait_deadline(1000, 1100, false, &o), 1130);
}

TEST_MAIN
