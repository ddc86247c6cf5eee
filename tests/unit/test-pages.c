/* SPDX-License-Identifier: Apache-2.0
 * reserve-pages on a fixture of /sys that takes every number. tests/vm/hugepages.sh has a kernel with too
 * little memory. */
#include "apply/device.h"
#include "programs.h"

#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define ALL   "/sys/kernel/mm/hugepages"
#define NODE1 "/sys/devices/system/node/node1/hugepages/hugepages-2048kB"

static void pool(const Box *b, const char *directory, const char *count, const char *surplus) {
        _free_ char *nr = xasprintf("%s/nr_hugepages", directory), *extra = xasprintf("%s/surplus_hugepages", directory);
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

/* ---- a kernel with too little memory ----
 * nr_hugepages of the fixture takes every number, so surplus_hugepages stands for the missing pages.
 * Before each further try the step writes to drop_caches. This write() replaces that of libc, and then
 * puts the next number of `missing` in surplus_hugepages; the last one stays. */
static struct {
        const Box *box;
        const char *missing[10];
        unsigned rounds;
        unsigned syncs;
        char *surplus, *caches;         /* a path; what went to drop_caches */
} kernel;

void sync(void) {
        kernel.syncs++;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
ssize_t write(int fd, const void *data, size_t size) {
        _free_ char *link = xasprintf("/proc/self/fd/%d", fd), *before = NULL;
        char path[4096] = "";
        if (readlink(link, path, sizeof path - 1) > 0 && endswith(path, "/drop_caches")) {
                before = kernel.caches;
                kernel.caches = xasprintf("%s%.*s", before ?: "", (int)size, (const char *)data);
                if (kernel.missing[kernel.rounds + 1])
                        put(kernel.box, kernel.surplus, kernel.missing[kernel.rounds + 1]);
                kernel.rounds++;
        }
        return syscall(SYS_write, fd, data, size);
}

static void kernel_misses(Box *b, const char *directory, const char *const *missing) {
        free(kernel.surplus);
        free(kernel.caches);
        kernel = (typeof(kernel)){ .box = b, .surplus = xasprintf("%s/surplus_hugepages", directory) };
        for (unsigned i = 0; missing[i]; i++)
                kernel.missing[i] = missing[i];
        put(b, kernel.surplus, missing[0]);
        put(b, "/proc/sys/vm/drop_caches", "");
        put(b, "/proc/sys/vm/compact_memory", "");
        put(b, "/sys/devices/system/node/node0/compact", "");
        put(b, "/sys/devices/system/node/node1/compact", "");
}
#define KERNEL_MISSES(b, directory, ...) \
        kernel_misses(b, directory, (const char *const[]){ __VA_ARGS__, NULL })

TEST(pages_are_reserved_over_all_nodes_once) {
        PAGES(b, 2 * MIB, 4096, -1);
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "4096");
        assert_found(&b, "{\"got\": 4096, \"node\": null, \"requested\": 4096, \"size\": 2097152}");
        assert_works(&b, pages_work, 0);
        assert_file(&b, NODE1 "/nr_hugepages", "4\n");
}

TEST(pages_are_reserved_on_one_node) {
        PAGES(b, 2 * MIB, 7, 1);
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE1 "/nr_hugepages", "7");
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "10\n");
        assert_found(&b, "{\"got\": 7, \"node\": 1, \"requested\": 7, \"size\": 2097152}");
}

TEST(if_none_keeps_pages_that_are_already_reserved) {
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

TEST(a_count_of_0_frees_all_pages) {
        PAGES(b, 2 * MIB, 0, -1);
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "0");
        ASSERT_EQ(b.work.warnings.n, 0);
        b.action.pages.size = 16 * MIB;         /* an unused size is free already */
        assert_works(&b, pages_work, 0);
}

TEST(an_unknown_page_size_is_a_failure) {
        PAGES(b, 16 * MIB, 4, -1);
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, "no huge pages of 16Mi; it has 1Gi, 2Mi");
        ASSERT_TRUE(!b.work.found);
}

TEST(a_missing_numa_node_is_a_failure) {
        PAGES(b, 2 * MIB, 4, 3);
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, "NUMA node 3 does not exist on this machine; spec.instance.hugePages can use 0, 1");
}

TEST(a_lenient_step_only_warns) {
        PAGES(b, 16 * MIB, 4, -1);
        b.action.lenient = true;
        assert_works(&b, pages_work, 0);
        assert_warns(&b, "hugepages-short", "no huge pages of 16Mi");
}

TEST(an_unreadable_file_is_named) {
        PAGES(b, 2 * MIB, 4, 1);
        put(&b, NODE1 "/nr_hugepages", "many");
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, NODE1 "/nr_hugepages cannot be read or written");
}

TEST(a_try_without_progress_is_repeated) {
        PAGES(b, 2 * MIB, 40, -1);
        KERNEL_MISSES(&b, ALL "/hugepages-2048kB", "30", "30", "0");
        assert_works(&b, pages_work, 1);
        ASSERT_EQ(kernel.rounds, 2);
        assert_found(&b, "{\"got\": 40, \"node\": null, \"requested\": 40, \"size\": 2097152}");
}

TEST(tries_continue_while_they_help_up_to_8) {
        PAGES(b, 2 * MIB, 40, -1);
        KERNEL_MISSES(&b, ALL "/hugepages-2048kB", "30", "29", "28", "28", "20", "1", "0");
        assert_works(&b, pages_work, 1);
        ASSERT_EQ(kernel.rounds, 6);
        KERNEL_MISSES(&b, ALL "/hugepages-2048kB", "30", "29", "28", "27", "26", "25", "24", "23", "22");
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES,
                     "this machine has 17 of 40 huge pages of 2Mi (node0: 6, node1: 4) after 8 tries");
}

TEST(pages_that_stay_missing_are_a_failure_after_3_tries) {
        PAGES(b, 2 * MIB, 40, 1);
        KERNEL_MISSES(&b, NODE1, "30");
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES,
                     "NUMA node 1 has 10 of 40 huge pages of 2Mi after 3 tries with memory compacted");
        assert_found(&b, "{\"got\": 10, \"node\": 1, \"requested\": 40, \"size\": 2097152}");
        assert_file(&b, NODE1 "/nr_hugepages", "40");
}

TEST(page_cache_is_dropped_first_and_then_all_caches) {
        PAGES(b, 2 * MIB, 40, 1);
        KERNEL_MISSES(&b, NODE1, "30");
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, "after 3 tries");
        ASSERT_STREQ(kernel.caches, "13");
        ASSERT_EQ(kernel.syncs, 1);     /* it waits for all pending writes */
        assert_file(&b, "/proc/sys/vm/drop_caches", "3");
}

TEST(memory_is_compacted_on_the_nodes_that_lack_pages) {
        PAGES(b, 2 * MIB, 40, 1);
        KERNEL_MISSES(&b, NODE1, "30", "0");
        assert_works(&b, pages_work, 1);
        assert_file(&b, "/sys/devices/system/node/node0/compact", "");
        assert_file(&b, "/sys/devices/system/node/node1/compact", "1");
        b.action.pages.node = -1;
        KERNEL_MISSES(&b, ALL "/hugepages-2048kB", "30", "0");
        assert_works(&b, pages_work, 1);
        assert_file(&b, "/sys/devices/system/node/node0/compact", "1");
        assert_file(&b, "/sys/devices/system/node/node1/compact", "1");
        assert_file(&b, "/proc/sys/vm/compact_memory", "");
}

/* ---- nodes without CPUs ----
 * GPU memory on GB200, after the driver has brought it online. Node 3 has none yet, and so no pools. */
#define NODE0 "/sys/devices/system/node/node0/hugepages/hugepages-2048kB"
#define NODE2 "/sys/devices/system/node/node2/hugepages/hugepages-2048kB"
static void grace(Box *b) {
        put(b, "/sys/devices/system/node/node0/cpulist", "0-71\n");
        put(b, "/sys/devices/system/node/node1/cpulist", "72-143\n");
        put(b, "/sys/devices/system/node/node2/cpulist", "\n");
        put(b, "/sys/devices/system/node/node3/cpulist", "\n");
        put(b, "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024000 kB\nNode 0 MemFree: 10240 kB\n");
        put(b, "/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1024000 kB\nNode 1 MemFree: 10240 kB\n");
        pool(b, NODE2, "0\n", "0\n");
}

TEST(pages_are_never_reserved_on_nodes_without_cpus) {
        PAGES(b, 2 * MIB, 4097, -1);
        grace(&b);
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE0 "/nr_hugepages", "2049");
        assert_file(&b, NODE1 "/nr_hugepages", "2048");
        assert_file(&b, NODE2 "/nr_hugepages", "0\n");
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "10\n");         /* not written */
        assert_found(&b, "{\"got\": 4097, \"node\": null, \"requested\": 4097, \"size\": 2097152}");
        assert_works(&b, pages_work, 0);
}

TEST(gpu_nodes_get_no_pages_before_their_memory_is_online) {
        PAGES(b, 2 * MIB, 20, -1);
        put(&b, "/sys/devices/system/node/node0/cpulist", "0-71\n");
        put(&b, "/sys/devices/system/node/node1/cpulist", "72-143\n");
        put(&b, "/sys/devices/system/node/node2/cpulist", "\n");
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE0 "/nr_hugepages", "10");
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "10\n");
}

/* The plan knows that more nodes will come. One number for all nodes would take pages from those, too. */
TEST(gpu_nodes_get_no_pages_before_they_appear) {
        PAGES(b, 2 * MIB, 20, -1);
        b.action.pages.by_node = true;
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE0 "/nr_hugepages", "10");
        assert_file(&b, NODE1 "/nr_hugepages", "10");
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "10\n");
        assert_works(&b, pages_work, 0);
        b.action.pages.count = 0;               /* off: on all nodes */
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "0");
}

TEST(pages_on_nodes_without_cpus_are_freed) {
        PAGES(b, 2 * MIB, 10, -1);
        grace(&b);
        put(&b, NODE2 "/nr_hugepages", "5\n");
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE2 "/nr_hugepages", "0");
        assert_file(&b, NODE0 "/nr_hugepages", "6");    /* more than its share, but it keeps them */
        assert_works(&b, pages_work, 0);
        b.action.pages.count = 4;
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE0 "/nr_hugepages", "2");
        assert_file(&b, NODE1 "/nr_hugepages", "2");
}

TEST(one_node_gives_the_pages_that_the_other_lacks) {
        PAGES(b, 2 * MIB, 100, -1);
        grace(&b);
        put(&b, NODE0 "/surplus_hugepages", "30\n");
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE1 "/nr_hugepages", "80");
        put(&b, NODE0 "/surplus_hugepages", "0\n");
        put(&b, NODE0 "/nr_hugepages", "0\n");
        put(&b, NODE1 "/surplus_hugepages", "30\n");
        assert_works(&b, pages_work, 1);
        assert_file(&b, NODE0 "/nr_hugepages", "80");
        assert_found(&b, "{\"got\": 100, \"node\": null, \"requested\": 100, \"size\": 2097152}");
}

TEST(the_failure_has_the_free_memory_of_nodes_with_cpus) {
        PAGES(b, 2 * MIB, 100, -1);
        grace(&b);
        put(&b, NODE0 "/surplus_hugepages", "30\n");
        KERNEL_MISSES(&b, NODE1, "150");
        assert_fails(&b, pages_work, CAUSE_HUGEPAGES, "this machine has ");
        ASSERT_CONTAINS(b.work.text, "; 20 of its 2000 MiB are free");
        ASSERT_TRUE(!strstr(b.work.text, "node2"));
}

TEST(a_count_of_0_frees_pages_on_all_nodes) {
        PAGES(b, 2 * MIB, 0, -1);
        grace(&b);
        assert_works(&b, pages_work, 1);
        assert_file(&b, ALL "/hugepages-2048kB/nr_hugepages", "0");
}

TEST_MAIN
