/* SPDX-License-Identifier: Apache-2.0
 * Rows of the list of nodestrap-read-ahead, their patterns and conditions, and the number of pieces under
 * way on each kind of disk. tests/check/read-ahead.sh has the files that it reads. */
int read_ahead(int argc, char **argv);
#define main read_ahead
#include "../../src/readahead/main.c"   // NOLINT(bugprone-suspicious-include): its own functions
#undef main

#include "test.h"
#include "tree.h"

static void assert_rows(const char *text, const char *want) {
        _free_ char *copy = xstrdup(text);
        _cleanup_(text_done) Text all = {};
        ListRow row = {};
        for (char *at = copy; list_next(&at, &row);)
                text_add(&all, "%u:%s:%s;", row.line, row.condition, row.path);
        ASSERT_STREQ(all.data ?: "", want);
}

TEST(rows_are_read_with_condition_and_path) {
        assert_rows("", "");
        assert_rows("# all\n\n  \n", "");
        assert_rows("always /usr/bin/kubelet", "1:always:/usr/bin/kubelet;");
        assert_rows("# x\n\t efa \t /a/{b,c}.ko*  # why\nnvidia /d\r\n", "2:efa:/a/{b,c}.ko*;3:nvidia:/d;");
        assert_rows("always\nalways \n/x\n", "1:always:;2:always:;3:/x:;");
}

static void assert_pattern(const char *path, const char *want) {
        _free_ char *pattern = list_pattern(path, "6.1.0-1");
        ASSERT_STREQ(pattern, want);
}

TEST(placeholders_in_paths_are_replaced) {
        assert_pattern("/a/b.so", "/a/b.so");
        assert_pattern("/lib/modules/%v/x.ko", "/lib/modules/6.1.0-1/x.ko");
        assert_pattern("%l/libz.so.*", "/usr/{lib64,lib/*-linux-gnu}/libz.so.*");
        assert_pattern("/a%b%", "/a%b%");
}

TEST(conditions_are_judged_by_hardware) {
        static const struct { const char *files, *condition; int want; } cases[] = {
                { "", "always", 1 },
                { "", "", -EINVAL },
                { "", "gpu", -EINVAL },
                { "", "nvidia", 0 },
                { "=1 /sys/bus/pci/devices/0000:10:00.0/vendor 0x10de\n", "nvidia", 1 },
                { "=1 /sys/bus/pci/devices/0000:10:00.0/vendor 0x1d0f\n", "nvidia", 0 },
                { "=1 /sys/bus/pci/devices/a/modalias pci:v00001D0Fd0000EC20sv\n"
                  "=1 /sys/bus/pci/devices/b/modalias pci:v00001D0Fd0000EFA2sv\n", "efa", 1 },
                { "=1 /sys/bus/pci/devices/a/modalias pci:v00001D0Fd0000EC20sv\n", "efa", 0 },
                { "=1 /sys/class/nvme/nvme0/model Amazon Elastic Block Store              \n", "disks", 0 },
                { "=1 /sys/class/nvme/nvme1/model Amazon EC2 NVMe Instance Storage        \n", "disks", 1 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(tree_done) Tree tree = tree_new();
                tree_unpack(&tree, cases[i].files, strchr(cases[i].files, 0));
                ASSERT_EQ(list_condition(tree.root, cases[i].condition), cases[i].want);
        }
}

/* The program would ignore a word at boot that it does not know. */
TEST(every_row_of_the_list_is_valid) {
        _cleanup_(root_freep) Root *here = NULL;
        _free_ char *text = NULL;
        ListRow row = {};
        size_t n = 0;
        ASSERT_OK(root_new(".", &here));
        ASSERT_OK(root_read(here, "/conf/read-ahead", 1 << 20, &text, NULL));
        for (char *at = text; list_next(&at, &row); n++) {
                ASSERT_OK(list_condition(here, row.condition));
                ASSERT_EQ(*row.path == '/' || startswith(row.path, "%l/"), true);
        }
        ASSERT_TRUE(n > 20);
}

/* A disk with this latency, and with so many bytes a second: a piece waits for those before it. The first ten have the burst that a new
 * volume allows. */
static unsigned depth_on(uint64_t latency, uint64_t rate, size_t pieces) {
        Disk d = { .piece = PIECE_MAX, .depth = 1 };
        for (size_t i = 0; i < pieces; i++) {
                uint64_t queued = rate > 0 ? USEC_PER_SEC * d.depth * PIECE_MAX / rate : 0;
                depth_fit(&d, &(Piece){ .size = PIECE_MAX, .alone = d.depth == 1 }, i < 10 ? 1000 : MAX(latency, queued));
        }
        return d.depth;
}

TEST(the_queue_depth_follows_the_disk) {
        for (size_t n = 100; n < 120; n++) {
                ASSERT_EQ(depth_on(10 * USEC_PER_MSEC, 0, n), DEPTH_MAX);       /* bound by latency alone */
                ASSERT_EQ(depth_on(100 * USEC_PER_MSEC, 0, n), DEPTH_MAX);
                ASSERT_TRUE(depth_on(1 * USEC_PER_MSEC, 20000000, n) <= 3);     /* 13 ms a piece */
                ASSERT_TRUE(depth_on(10 * USEC_PER_MSEC, 250000000, n) >= 10);
                ASSERT_TRUE(depth_on(10 * USEC_PER_MSEC, 250000000, n) <= 25);
        }
}

/* Two pieces, requested at 1 s, on a disk whose last piece took 40 ms, and 6 ms alone. */
TEST(the_pause_ends_when_a_piece_is_due) {
        Reader r = { .n = 2,
                     .disk = { .depth = 2, .base_usec = 6000, .last_usec = 40000 },
                     .pieces = { { .since_usec = USEC_PER_SEC } } };
        ASSERT_EQ(pause_usec(&r, USEC_PER_SEC), 30000);
        ASSERT_EQ(pause_usec(&r, USEC_PER_SEC + 29500), TICK_MIN);
        ASSERT_EQ(pause_usec(&r, USEC_PER_SEC + 35000), 3000);
        r.disk.last_usec = USEC_PER_SEC;
        ASSERT_EQ(pause_usec(&r, USEC_PER_SEC), LOOK);
        r.disk.depth = 3;               /* it waits for others, not for a piece */
        ASSERT_EQ(pause_usec(&r, USEC_PER_SEC), 3000);
        r.n = 0;
        ASSERT_EQ(pause_usec(&r, USEC_PER_SEC), TICK_MAX);
}

TEST(a_short_piece_does_not_change_the_depth) {
        Disk d = { .piece = PIECE_MAX, .depth = 7, .base_usec = 1000 };
        depth_fit(&d, &(Piece){ .size = 4096 }, USEC_PER_SEC);
        ASSERT_EQ(d.depth, 7);
}

TEST_MAIN
