/* SPDX-License-Identifier: Apache-2.0
 * reserve-pages → nr_hugepages of one size, of one NUMA node or of all together. Writing a number succeeds
 * even where the kernel finds memory for fewer pages, so it is read back. While pages are missing, caches are
 * dropped, memory is compacted, and the kernel is asked again.
 * https://docs.kernel.org/admin-guide/mm/hugetlbpage.html */
#include "apply/device.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define POOLS     "/sys/kernel/mm/hugepages"
#define NODES     "/sys/devices/system/node"
#define TRIES_MAX 8U
/* For all tries after the first. */
#define TRIES_USEC (10 * USEC_PER_SEC)
/* This many tries in a row may bring nothing, with a pause between them: memory of a program that has just
 * ended, or of a file that has just been written, comes back a moment later. */
#define FUTILE_MAX  2U
#define FUTILE_USEC (200 * USEC_PER_MSEC)

/* nr_hugepages counts both. A surplus page is in use, but no longer reserved; it goes when its user ends. */
typedef struct Pool { uint64_t reserved, surplus; } Pool;

static char *directory_of(const Action *a) {
        unsigned long long kilobytes = a->pages.size / 1024;
        if (a->pages.node < 0)
                return xasprintf(POOLS "/hugepages-%llukB", kilobytes);
        return xasprintf(NODES "/node%d/hugepages/hugepages-%llukB", a->pages.node, kilobytes);
}

static int read_count(const Root *root, const char *directory, const char *name, uint64_t *ret) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", directory, name);
        return root_read_u64(root, path, ret);
}

static int pool_read(const Root *root, const char *directory, Pool *ret) {
        uint64_t all = 0;
        *ret = (Pool){};
        int r = read_count(root, directory, "nr_hugepages", &all);
        if (r >= 0)
                r = read_count(root, directory, "surplus_hugepages", &ret->surplus);
        ret->reserved = all - MIN(all, ret->surplus);
        return r;
}

/* ---- asking ---- */

/* "node0", "node1", …; NULL: this kernel knows of none */
static char **list_nodes(const Root *root) {
        _cleanup_(strv_freep) char **names = NULL;
        char **nodes = NULL;
        (void)!root_list(root, NODES, &names);
        for (char **name = names; name && *name; name++)
                if (startswith(*name, "node"))
                        strv_add(&nodes, *name);
        return nodes;
}

static void compact(const Root *root, const char *node) {
        _cleanup_(freep) char *path = xasprintf(NODES "/%s/compact", node);
        (void)!root_write_value(root, path, "1");
}

/* Best effort: a kernel may lack any of these files, and only the pages tell whether it helped. The first
 * round drops what is cached of files ("1"), and a round after a futile one also what the kernel caches for
 * itself ("3"), which it cannot move: https://docs.kernel.org/admin-guide/sysctl/vm.html#drop-caches
 * What was changed is written to disk for that, but once: sync() waits for all that others write. */
static void make_room(Work *w, bool first, bool futile) {
        if (first) {
                work_at(w, "writing changed files to their disks, so that the memory that caches them can be "
                           "freed");
                sync();
        }
        work_at(w, "compacting memory");
        (void)!root_write_value(w->root, "/proc/sys/vm/drop_caches", futile ? "3" : "1");
        if (w->action->pages.node >= 0) {
                _cleanup_(freep) char *node = xasprintf("node%d", w->action->pages.node);
                compact(w->root, node);
                return;
        }
        _cleanup_(strv_freep) char **nodes = list_nodes(w->root);
        if (!nodes)
                (void)!root_write_value(w->root, "/proc/sys/vm/compact_memory", "1");
        for (char **node = nodes; node && *node && work_pause(w, 0); node++)
                compact(w->root, *node);
}

static int fail_to_reserve(Work *w, int r, const char *directory) {
        _cleanup_(freep) char *size = bytes_text(w->action->pages.size);
        if (r == -EOPNOTSUPP)
                return work_miss(w, r, CAUSE_HUGEPAGES, "hugepages-short",
                                 "this kernel cannot reserve pages of %s once it runs; name them on its "
                                 "command line (hugepagesz=%.*s hugepages=%llu), or ask for another size",
                                 size, (int)strcspn(size, "i"), size,
                                 (unsigned long long)w->action->pages.count);
        return work_fail(w, r, CAUSE_HUGEPAGES, "%s/nr_hugepages cannot be read or written: %s", directory,
                         strerror(-r));
}

/* Asks once, and reads what came. -EOPNOTSUPP: this kernel makes pages of that size only at boot, which is
 * the one reason for its EINVAL (linux:mm/hugetlb.c:__nr_hugepages_store_common). */
static int pages_ask(Work *w, const char *directory, Pool *pool) {
        _cleanup_(freep) char *path = xasprintf("%s/nr_hugepages", directory),
                              *count = xasprintf("%llu", (unsigned long long)w->action->pages.count);
        work_at(w, "the kernel was looking for memory for them");
        int r = root_write_value(w->root, path, count);
        if (r < 0)
                return r == -EINVAL ? -EOPNOTSUPP : r;
        return pool_read(w->root, directory, pool);
}

/* Ends with what could be had, which may be less: what one try brought stays when the next brings nothing. */
static int pages_reserve(Work *w, const char *directory, Pool *pool, unsigned *ret_tries) {
        unsigned tries = 1, futile = 0;
        int r = pages_ask(w, directory, pool);
        uint64_t end = now_usec() + TRIES_USEC; /* from here on: that answer may have taken a minute */
        for (; r >= 0 && pool->reserved != w->action->pages.count && tries < TRIES_MAX; tries++) {
                uint64_t before = pool->reserved;
                if (futile == FUTILE_MAX || now_usec() >= end || !work_pause(w, futile * FUTILE_USEC))
                        break;
                make_room(w, tries == 1, futile > 0);
                r = pages_ask(w, directory, pool);
                futile = pool->reserved > before ? 0 : futile + 1;
        }
        *ret_tries = tries;
        return r;
}

/* ---- telling ---- */

/* From "Node 0 MemFree:  123 kB" of a node or "MemFree:  123 kB" of the machine; 0: no such key. */
static unsigned long long memory_mib(const char *meminfo, const char *key) {
        const char *p = strstr(meminfo, key);
        return p ? strtoull(p + strlen(key), NULL, 10) / 1024 : 0;
}

static void add_memory(Work *w, const Pool *pool, Text *t) {
        int node = w->action->pages.node;
        _cleanup_(freep) char *path = node < 0 ? xstrdup("/proc/meminfo")
                                               : xasprintf(NODES "/node%d/meminfo", node),
                              *text = NULL;
        if (root_read(w->root, path, 64 << 10, &text, NULL) < 0)
                return;
        unsigned long long free_mib = memory_mib(text, "MemFree:");
        unsigned long long missing =
                (w->action->pages.count - pool->reserved) * (w->action->pages.size >> 10) >> 10;
        text_add(t, "; %llu of its %llu MiB are free%s", free_mib, memory_mib(text, "MemTotal:"),
                 free_mib >= missing ? ", in pieces that are too small or cannot be moved together" : "");
}

/* How a number for all nodes was spread over them. */
static void add_shares(Work *w, Text *t) {
        unsigned long long kilobytes = w->action->pages.size / 1024;
        _cleanup_(strv_freep) char **nodes = w->action->pages.node < 0 ? list_nodes(w->root) : NULL;
        const char *between = " (";
        size_t before = t->size;
        for (char **node = nodes; node && *node; node++) {
                _cleanup_(freep) char *directory =
                        xasprintf(NODES "/%s/hugepages/hugepages-%llukB", *node, kilobytes);
                Pool share;
                if (pool_read(w->root, directory, &share) < 0)
                        continue;
                text_add(t, "%s%s: %llu", between, *node, (unsigned long long)share.reserved);
                between = ", ";
        }
        text_add(t, "%s", t->size > before ? ")" : "");
}

static char *place_text(const Action *a) {
        return a->pages.node < 0 ? xstrdup("this machine") : xasprintf("NUMA node %d", a->pages.node);
}

static int fall_short(Work *w, const Pool *pool, unsigned tries) {
        const Action *a = w->action;
        _cleanup_(freep) char *size = bytes_text(a->pages.size), *place = place_text(a);
        _cleanup_(freep) char *node = a->pages.node < 0 ? xstrdup("") : xasprintf("%d:", a->pages.node);
        unsigned long long count = a->pages.count;
        _cleanup_(text_done) Text t = {};
        text_add(&t, "%s has %llu of %llu huge pages of %s", place, (unsigned long long)pool->reserved, count,
                 size);
        add_shares(w, &t);
        text_add(&t, " after %u tries with memory compacted between them", tries);
        add_memory(w, pool, &t);
        text_add(&t,
                 "; ask for fewer in spec.instance.hugePages, or let the kernel take them before anything "
                 "else does: hugepagesz=%.*s "
                 "hugepages=%s%llu on the image's kernel command line",
                 (int)strcspn(size, "i"), size, node, count);
        return work_miss(w, -ENOMEM, CAUSE_HUGEPAGES, "hugepages-short", "%s", t.data);
}

static int no_such_node(Work *w) {
        _cleanup_(strv_freep) char **nodes = list_nodes(w->root), **numbers = NULL;
        for (char **node = nodes; node && *node; node++)
                strv_add(&numbers, *node + strlen("node"));
        _cleanup_(freep) char *list = strv_join(numbers, ", ");
        return work_miss(w, -ENOENT, CAUSE_HUGEPAGES, "hugepages-short",
                         "there is no NUMA node %d on this machine; those of "
                         "spec.instance.hugePages can be %s",
                         w->action->pages.node, *list ? list : "none");
}

static int no_such_size(Work *w) {
        _cleanup_(strv_freep) char **names = NULL, **sizes = NULL;
        (void)!root_list(w->root, POOLS, &names);
        for (char **name = names; name && *name; name++)
                if (startswith(*name, "hugepages-"))
                        strv_push(&sizes,
                                  bytes_text(1024 * strtoull(*name + strlen("hugepages-"), NULL, 10)));
        _cleanup_(freep) char *size = bytes_text(w->action->pages.size), *list = strv_join(sizes, ", ");
        return work_miss(w, -ENOENT, CAUSE_HUGEPAGES, "hugepages-short",
                         "this kernel has no huge pages of %s; it has those of %s", size,
                         *list ? list : "no size at all");
}

/* To have none of a size that is not there is no failure. */
static int no_such_pool(Work *w) {
        _cleanup_(freep) char *node = xasprintf(NODES "/node%d", w->action->pages.node);
        if (w->action->pages.count == 0)
                return 0;
        return w->action->pages.node >= 0 && root_exists(w->root, node) == 0 ? no_such_node(w)
                                                                             : no_such_size(w);
}

static void note(Work *w, const Pool *pool) {
        const Action *a = w->action;
        json_decref(w->found);
        w->found = json_pack("{s:I, s:I, s:I, s:o}", "requested", (json_int_t)a->pages.count, "got",
                             (json_int_t)pool->reserved, "size", (json_int_t)a->pages.size, "node",
                             a->pages.node < 0 ? json_null() : json_integer(a->pages.node));
}

static void tell_what_is_in_use(Work *w, const Pool *pool) {
        _cleanup_(freep) char *size = bytes_text(w->action->pages.size);
        if (pool->surplus > 0)
                diag_warn_at(&w->warnings, "hugepages-in-use", NULL, w->action->id,
                             "%llu pages of %s are no longer reserved, but in use; their memory "
                             "comes back when the programs that hold them end",
                             (unsigned long long)pool->surplus, size);
}

int pages_work(Work *w) {
        const Action *a = w->action;
        _cleanup_(freep) char *directory = directory_of(a);
        unsigned tries = 0;
        Pool pool;
        int r = pool_read(w->root, directory, &pool);
        if (r == -ENOENT)
                return no_such_pool(w);
        if (r < 0)
                return fail_to_reserve(w, r, directory);
        uint64_t before = pool.reserved;
        note(w, &pool);
        if (before == a->pages.count || (a->pages.if_none && before > 0))
                return 0;
        r = pages_reserve(w, directory, &pool, &tries);
        if (r < 0)
                return fail_to_reserve(w, r, directory);
        note(w, &pool);
        if (pool.reserved != a->pages.count)
                r = fall_short(w, &pool, tries);
        else if (pool.reserved < before)
                tell_what_is_in_use(w, &pool);
        return r < 0 ? r : pool.reserved != before;
}
