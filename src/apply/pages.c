/* SPDX-License-Identifier: Apache-2.0
 * reserve-pages → nr_hugepages of one size, of one NUMA node or of all together. The kernel takes any number
 * without a word, however many pages it finds memory for (Documentation/admin-guide/mm/hugetlbpage.rst): what
 * counts is what is read back. Where it is less, what only caches is dropped and the memory compacted, and it
 * is asked again as long as that helps. */
#include "apply/device.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define POOLS     "/sys/kernel/mm/hugepages"
#define NODES     "/sys/devices/system/node"
#define TRIES_MAX 5U
#define TRIES_USEC (10 * USEC_PER_SEC)

/* What nr_hugepages counts is both: a page in use that is no longer reserved goes when it is given back. */
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

/* Best effort: each of it may be missing in this kernel, and only the pages tell whether it helped. */
static void make_room(Work *w) {
        _cleanup_(freep) char *compact = w->action->pages.node < 0
                                                 ? xstrdup("/proc/sys/vm/compact_memory")
                                                 : xasprintf(NODES "/node%d/compact", w->action->pages.node);
        work_at(w, "writing down what only memory holds, so that it can be dropped");
        sync();
        work_at(w, "compacting memory");
        (void)!root_write_value(w->root, "/proc/sys/vm/drop_caches", "1");
        (void)!root_write_value(w->root, compact, "1");
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

/* Ends with what could be had, which may be less. */
static int reserve(Work *w, const char *directory, Pool *pool, unsigned *ret_tries) {
        _cleanup_(freep) char *path = xasprintf("%s/nr_hugepages", directory),
                              *count = xasprintf("%llu", (unsigned long long)w->action->pages.count);
        /* set when the first answer is there: the kernel may have looked for a minute */
        uint64_t end = UINT64_MAX;
        for (*ret_tries = 1;; ++*ret_tries) {
                uint64_t before = pool->reserved;
                work_at(w, "the kernel was looking for memory for them");
                int r = root_write_value(w->root, path, count);
                /* of a size that this kernel can only make at boot: the one reason it has (mm/hugetlb.c) */
                if (r == -EINVAL)
                        return -EOPNOTSUPP;
                if (r >= 0)
                        r = pool_read(w->root, directory, pool);
                if (r < 0 || pool->reserved == w->action->pages.count)
                        return r;
                if (*ret_tries == TRIES_MAX || (*ret_tries > 1 && pool->reserved <= before) ||
                    now_usec() >= end || !work_pause(w, 0))
                        return 0;
                end = MIN(end, now_usec() + TRIES_USEC);
                make_room(w);
        }
}

/* ---- telling ---- */

/* "Node 0 MemFree:  123 kB" of a node, "MemFree:  123 kB" of the machine; 0: not there. */
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
        unsigned long long available = memory_mib(text, "MemFree:");
        unsigned long long missing =
                (w->action->pages.count - pool->reserved) * (w->action->pages.size >> 10) >> 10;
        text_add(t, "; %llu of its %llu MiB are free%s", available, memory_mib(text, "MemTotal:"),
                 available >= missing ? ", in pieces that are too small or cannot be moved together" : "");
}

/* How a number for all nodes was spread over them; nothing where there is one node. */
static void add_shares(Work *w, Text *t) {
        unsigned long long kilobytes = w->action->pages.size / 1024;
        _cleanup_(strv_freep) char **names = NULL;
        const char *between = " (";
        size_t before = t->size;
        if (w->action->pages.node >= 0 || root_list(w->root, NODES, &names) < 0)
                return;
        for (char **name = names; name && *name; name++) {
                _cleanup_(freep) char *directory =
                        xasprintf(NODES "/%s/hugepages/hugepages-%llukB", *name, kilobytes);
                Pool share;
                if (!startswith(*name, "node") || pool_read(w->root, directory, &share) < 0)
                        continue;
                text_add(t, "%s%s: %llu", between, *name, (unsigned long long)share.reserved);
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
        _cleanup_(strv_freep) char **names = NULL, **nodes = NULL;
        (void)!root_list(w->root, NODES, &names);
        for (char **name = names; name && *name; name++)
                if (startswith(*name, "node"))
                        strv_add(&nodes, *name + strlen("node"));
        _cleanup_(freep) char *list = strv_join(nodes, ", ");
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
        r = reserve(w, directory, &pool, &tries);
        if (r < 0)
                return fail_to_reserve(w, r, directory);
        note(w, &pool);
        if (pool.reserved != a->pages.count)
                r = fall_short(w, &pool, tries);
        else if (pool.reserved < before)
                tell_what_is_in_use(w, &pool);
        return r < 0 ? r : pool.reserved != before;
}
