/* SPDX-License-Identifier: Apache-2.0
 * reserve-pages over a fixture of /sys, where every number is taken; what a kernel with too little memory does is tests/vm/hugepages.sh. */
#include "apply/device.h"
#include "../programs.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define ALL   "/sys/kernel/mm/hugepages"
#define NODE1 "/sys/devices/system/node/node1/hugepages/hugepages-2048kB"

static void pool(const Box *b, const char *directory, const char *count, const char *surplus) {
        _cleanup_(freep) char *nr = xasprintf("%s/nr_hugepages", directory), *extra = xasprintf("%s/surplus_hugepages", directory);
        put(b, nr, count);
        put(b, extra, surplus);
}

static void pages_init(Box *b, uint64_t size, uint64_t count, int node) {
        box_init(b);
        pool(b, ALL "/hugepages-2048kB", "10\n", "0\n");
        pool(b, ALL "/hugepages-1048576kB", "0\n", "0\n");
        pool(b, "/sys/devices/system/node/node0/hugepages/hugepages-2048kB", "6\n", "0\n");
        pool(b, NODE1, "4\n", "0\n");
        b->action = (Action){ .id = (char *)"reserve-pages:test", .type = ACTION_RESERVE_PAGES, .pages = { .size = size, .count = count, .node = node } };
}
#define PAGES(name, size, count, node) _cleanup_(box_done) Box name; pages_init(&name, size, count, node)

static void assert_found(const Box *b, const char *text) {
        char *found = json_dumps(b->work.found, JSON_SORT_KEYS);
        ASSERT_STREQ(found, text);
        free(found);
}

TEST(over_all_nodes_and_nothing_the_second_time) {
        PAGES(b, 2 * MIB, 4096, -1);
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "4096");
        assert_found(&b, "{\"got\": 4096, \"node\": null, \"requested\": 4096, \"size\": 2097152}");
        assert_works(&b, pages_work, 0);
        assert_file(&b, NODE1 "/nr_hugepages", "4\n");
}

TEST(of_one_node) {
        PAGES(b, 2 * MIB, 7, 1);
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE1 "/nr_hugepages", "7");
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "10\n");
        assert_found(&b, "{\"got\": 7, \"node\": 1, \"requested\": 7, \"size\": 2097152}");
}

TEST(what_is_reserved_wins_where_that_is_asked_for) {
        PAGES(b, 2 * MIB, 4096, -1);
        b.action.pages.if_none = true;
        assert_works(&b, pages_work, 0);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "10\n");
        assert_found(&b, "{\"got\": 10, \"node\": null, \"requested\": 4096, \"size\": 2097152}");
        b.action.pages.size = GIB;
        b.action.pages.count = 2;
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-1048576kB/nr_hugepages", "2");
}

TEST(none_at_all) {
        PAGES(b, 2 * MIB, 0, -1);
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "0");
        ASSERT_EQ(b.work.warnings.n, 0);
        b.action.pages.size = 16 * MIB;         /* a size that nobody has is none already */
        assert_works(&b, pages_work, 0);
}

TEST(a_size_that_the_kernel_has_not) {
        PAGES(b, 16 * MIB, 4, -1);
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, "no huge pages of 16Mi; it has those of 1Gi, 2Mi");
        ASSERT_TRUE(!b.work.found);
}

TEST(a_node_that_is_not_there) {
        PAGES(b, 2 * MIB, 4, 3);
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, "no NUMA node 3 on this machine; those of spec.instance.hugePages can be 0, 1");
}

TEST(a_warning_where_that_is_asked_for) {
        PAGES(b, 16 * MIB, 4, -1);
        b.action.lenient = true;
        assert_works(&b, pages_work, 0);
        assert_warns(&b, "hugepages-short", "no huge pages of 16Mi");
}

TEST(what_cannot_be_read_is_named) {
        PAGES(b, 2 * MIB, 4, 1);
        put(&b, NODE1 "/nr_hugepages", "many");
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, NODE1 "/nr_hugepages cannot be read or written");
}

TEST_MAIN
