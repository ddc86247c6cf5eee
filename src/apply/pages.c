/* SPDX-License-Identifier: Apache-2.0
 * reserve-pages: sets nr_hugepages of one size, for one NUMA node or the machine. The kernel may reserve
 * fewer pages without an error, so nodestrap reads the number back. While pages are missing, it drops caches,
 * compacts memory, and asks the kernel again.
 *
 * For the machine, the kernel uses memory of all nodes. Nodes without CPUs are GPU memory, possibly coming
 * online right now. With such nodes, or where the plan expects them, it asks the other nodes one by one.
 * https://docs.kernel.org/admin-guide/mm/hugetlbpage.html */
#include "apply/device.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <unistd.h>

#define POOLS     "/sys/kernel/mm/hugepages"
#define NODES     "/sys/devices/system/node"
#define TRIES_MAX 8U
#define TRIES_USEC (10 * USEC_PER_SEC)  /* for all retries */
/* Futile retries in a row: memory of an ended program or a written file is freed a little later. */
#define FUTILE_MAX  2U
#define FUTILE_USEC (200 * USEC_PER_MSEC)

/* nr_hugepages counts both. A surplus page is in use but not reserved, and goes when its user ends. */
typedef struct Pool { uint64_t reserved, surplus; } Pool;

/* The pools: one directory of a node or the machine, or those of all nodes with CPUs. */
typedef struct Place {
        char **nodes;           /* nodes with CPUs: "node0", "node1" … */
        char **pools;           /* directories; never empty */
        char **others;          /* of nodes without CPUs; must stay empty */
        bool spread;            /* pools are of nodes, not of the machine */
} Place;

static void place_done(Place *p) {
        strv_free(p->nodes);
        strv_free(p->pools);
        strv_free(p->others);
}

static char *pool_of(const Action *a, const char *node) {
        unsigned long long kilobytes = a->pages.size / 1024;
        return node ? xasprintf(NODES "/%s/hugepages/hugepages-%llukB", node, kilobytes)
                    : xasprintf(POOLS "/hugepages-%llukB", kilobytes);
}

/* Unreadable means that it has CPUs. */
static bool has_cpus(const Root *root, const char *node) {
        _free_ char *path = xasprintf(NODES "/%s/cpulist", node), *list = NULL;
        return root_read_line(root, path, &list) < 0 || *list;
}

static void place_find(Place *p, const Root *root, const Action *a) {
        bool memory_alone = false;
        *p = (Place){};
        _strv_ char **names = root_names(root, NODES);
        for (char **name = names; name && *name; name++)
                if (startswith(*name, "node")) {
                        bool cpus = has_cpus(root, *name);
                        char *pool = pool_of(a, *name);
                        if (cpus)
                                strv_add(&p->nodes, *name);
                        if (root_exists(root, pool) > 0)
                                strv_push(cpus ? &p->pools : &p->others, pool);
                        else
                                free(pool);
                        memory_alone = memory_alone || !has_cpus(root, *name);
                }
        p->spread = a->pages.node < 0 && (memory_alone || a->pages.by_node) && p->pools && a->pages.count > 0;
        if (p->spread)
                return;
        p->pools = strv_free(p->pools);
        p->others = strv_free(p->others);
        _free_ char *node = a->pages.node < 0 ? NULL : xasprintf("node%d", a->pages.node);
        strv_push(&p->pools, pool_of(a, node));
}

static int one_read(const Root *root, const char *directory, Pool *ret) {
        _free_ char *path = xasprintf("%s/nr_hugepages", directory),
                    *surplus = xasprintf("%s/surplus_hugepages", directory);
        uint64_t all = 0;
        *ret = (Pool){};
        int r = root_read_u64(root, path, &all);
        THEN(r, root_read_u64(root, surplus, &ret->surplus));
        ret->reserved = all - MIN(all, ret->surplus);
        return r;
}

static int pool_read(const Root *root, char *const *directories, Pool *ret) {
        int r = 0;
        *ret = (Pool){};
        for (char *const *d = directories; d && *d && r >= 0; d++) {
                Pool one;
                r = one_read(root, *d, &one);
                ret->reserved += one.reserved;
                ret->surplus += one.surplus;
        }
        return r;
}

static void compact(const Root *root, const char *node) {
        _free_ char *path = xasprintf(NODES "/%s/compact", node);
        (void)!root_write_value(root, path, "1");
}

/* A kernel may lack any of these files. First file caches are dropped ("1"), after a futile round also kernel
 * objects ("3"), which cannot move: https://docs.kernel.org/admin-guide/sysctl/vm.html#drop-caches. sync()
 * only once, as it waits for all writers. */
static void make_room(Work *w, const Place *place, bool first, bool futile) {
        if (first) {
                work_at(w, "writing changed files to disk, to free the page cache");
                sync();
        }
        work_at(w, "compacting memory");
        (void)!root_write_value(w->root, "/proc/sys/vm/drop_caches", futile ? "3" : "1");
        if (w->action->pages.node >= 0) {
                _free_ char *node = xasprintf("node%d", w->action->pages.node);
                compact(w->root, node);
                return;
        }
        if (!place->nodes)
                (void)!root_write_value(w->root, "/proc/sys/vm/compact_memory", "1");
        for (char **node = place->nodes; node && *node && work_pause(w, 0); node++)
                compact(w->root, *node);
}

/* "0:" of hugepages=0:64, which reserves on that NUMA node alone. */
static char *node_prefix(const Action *a) {
        return a->pages.node < 0 ? xstrdup("") : xasprintf("%d:", a->pages.node);
}

static int fail_to_reserve(Work *w, int r, const char *directory) {
        _free_ char *size = bytes_text(w->action->pages.size), *node = node_prefix(w->action);
        if (r == -EOPNOTSUPP)
                return work_miss(w, r, CAUSE_HUGEPAGES, "hugepages-short",
                                 "this kernel reserves pages of %s only at boot; add hugepagesz=%.*s "
                                 "hugepages=%s%llu to its command line, or choose another size",
                                 size, (int)strcspn(size, "i"), size, node,
                                 (unsigned long long)w->action->pages.count);
        return work_fail(w, r, CAUSE_HUGEPAGES, "%s/nr_hugepages cannot be read or written: %m", directory);
}

/* -EOPNOTSUPP: the kernel reserves this size only at boot, the one reason for EINVAL
 * (linux:mm/hugetlb.c:__nr_hugepages_store_common). */
static int one_ask(Work *w, const char *directory, uint64_t count, Pool *ret) {
        _free_ char *path = xasprintf("%s/nr_hugepages", directory),
                    *text = xasprintf("%llu", (unsigned long long)count);
        int r = root_write_value(w->root, path, text);
        if (r < 0)
                return r == -EINVAL ? -EOPNOTSUPP : r;
        return one_read(w->root, directory, ret);
}

/* Each pool gets its share of the rest, so a later one makes up for a short one. A second round asks the
 * first ones again. more: no pool shrinks. */
static int shares_ask(Work *w, char *const *pools, bool more) {
        uint64_t left = w->action->pages.count, n = strv_length(pools);
        int r = 0;
        for (size_t round = 0; round < (n > 1 ? 2 : 1); round++)
                for (size_t i = 0; r >= 0 && i < n && (round == 0 || left > 0); i++) {
                        Pool now = {};
                        r = one_read(w->root, pools[i], &now);
                        uint64_t share = (left + n - i - 1) / (n - i), before = now.reserved;
                        if (round > 0)
                                share = before + left;
                        else if (more)
                                share = MIN(MAX(share, before), left);
                        THEN(r, one_ask(w, pools[i], share, &now));
                        uint64_t came = round == 0 ? now.reserved : now.reserved - MIN(before, now.reserved);
                        left -= MIN(left, came);
                }
        return r;
}

static int pages_ask(Work *w, const Place *place, Pool *pool) {
        int r = 0;
        work_at(w, "the kernel was looking for memory for the huge pages");
        for (char **other = place->others; other && *other && r >= 0; other++) {
                Pool stray = {};
                r = one_read(w->root, *other, &stray);
                if (r >= 0 && stray.reserved > 0)
                        r = one_ask(w, *other, 0, &stray);
        }
        THEN(r, shares_ask(w, place->pools, pool->reserved <= w->action->pages.count));
        return r < 0 ? r : pool_read(w->root, place->pools, pool);
}

static int pages_reserve(Work *w, const Place *place, Pool *pool, unsigned *ret_tries) {
        unsigned tries = 1, futile = 0;
        int r = pages_ask(w, place, pool);
        uint64_t end = now_usec() + TRIES_USEC; /* after the first answer, which may take a minute */
        for (; r >= 0 && pool->reserved != w->action->pages.count && tries < TRIES_MAX; tries++) {
                uint64_t before = pool->reserved;
                if (futile == FUTILE_MAX || now_usec() >= end || !work_pause(w, futile * FUTILE_USEC))
                        break;
                make_room(w, place, tries == 1, futile > 0);
                r = pages_ask(w, place, pool);
                futile = pool->reserved > before ? 0 : futile + 1;
        }
        *ret_tries = tries;
        return r;
}

/* "Node 0 MemFree: 123 kB" or "MemFree: 123 kB"; 0: no such key. */
static unsigned long long memory_mib(const char *meminfo, const char *key) {
        const char *p = strstr(meminfo, key);
        return p ? strtoull(p + strlen(key), NULL, 10) / 1024 : 0;
}

static void add_memory(Work *w, const Place *place, const Pool *pool, Text *t) {
        _strv_ char **paths = NULL;
        if (w->action->pages.node >= 0)
                strv_push(&paths, xasprintf(NODES "/node%d/meminfo", w->action->pages.node));
        else if (!place->spread)
                strv_add(&paths, "/proc/meminfo");
        for (char **node = place->spread ? place->nodes : NULL; node && *node; node++)
                strv_push(&paths, xasprintf(NODES "/%s/meminfo", *node));
        unsigned long long free_mib = 0, total_mib = 0;
        for (char **path = paths; path && *path; path++) {
                _free_ char *text = NULL;
                if (root_read(w->root, *path, 64 << 10, &text, NULL) < 0)
                        return;
                free_mib += memory_mib(text, "MemFree:");
                total_mib += memory_mib(text, "MemTotal:");
        }
        unsigned long long missing =
                (w->action->pages.count - pool->reserved) * (w->action->pages.size >> 10) >> 10;
        text_add(t, "; %llu of its %llu MiB are free%s", free_mib, total_mib,
                 free_mib >= missing ? ", but in pieces that are too small" : "");
}

static void add_shares(Work *w, const Place *place, Text *t) {
        const char *between = " (";
        size_t before = t->size;
        for (char **node = w->action->pages.node < 0 ? place->nodes : NULL; node && *node; node++) {
                _free_ char *pool = pool_of(w->action, *node);
                Pool share;
                if (one_read(w->root, pool, &share) < 0)
                        continue;
                text_add(t, "%s%s: %llu", between, *node, (unsigned long long)share.reserved);
                between = ", ";
        }
        text_add(t, "%s", t->size > before ? ")" : "");
}

static int fall_short(Work *w, const Place *place, const Pool *pool, unsigned tries) {
        const Action *a = w->action;
        _free_ char *size = bytes_text(a->pages.size),
                    *where = a->pages.node < 0 ? xstrdup("this machine")
                                               : xasprintf("NUMA node %d", a->pages.node);
        _free_ char *node = node_prefix(a);
        unsigned long long count = a->pages.count;
        _cleanup_(text_done) Text t = {};
        text_add(&t, "%s has %llu of %llu huge pages of %s", where, (unsigned long long)pool->reserved, count,
                 size);
        add_shares(w, place, &t);
        text_add(&t, " after %u tries with memory compacted between them", tries);
        add_memory(w, place, pool, &t);
        text_add(&t,
                 "; ask for fewer in spec.instance.hugePages, or reserve them at boot: add hugepagesz=%.*s "
                 "hugepages=%s%llu to the kernel command line of the image",
                 (int)strcspn(size, "i"), size, node, count);
        return work_miss(w, -ENOMEM, CAUSE_HUGEPAGES, "hugepages-short", "%s", t.data);
}

static int no_such_node(Work *w, const Place *place) {
        _strv_ char **numbers = NULL;
        for (char **node = place->nodes; node && *node; node++)
                strv_add(&numbers, *node + strlen("node"));
        _free_ char *list = strv_join(numbers, ", ");
        return work_miss(w, -ENOENT, CAUSE_HUGEPAGES, "hugepages-short",
                         "NUMA node %d does not exist on this machine; spec.instance.hugePages can use %s",
                         w->action->pages.node, *list ? list : "none");
}

static int no_such_size(Work *w) {
        _strv_ char **names = root_names(w->root, POOLS), **sizes = NULL;
        for (char **name = names; name && *name; name++)
                if (startswith(*name, "hugepages-"))
                        strv_push(&sizes,
                                  bytes_text(1024 * strtoull(*name + strlen("hugepages-"), NULL, 10)));
        _free_ char *size = bytes_text(w->action->pages.size), *list = strv_join(sizes, ", ");
        return work_miss(w, -ENOENT, CAUSE_HUGEPAGES, "hugepages-short",
                         "this kernel has no huge pages of %s; it has %s", size, *list ? list : "none");
}

static void note(Work *w, const Pool *pool) {
        const Action *a = w->action;
        json_decref(w->found);
        w->found = json_pack("{s:I, s:I, s:I, s:o}", "requested", (json_int_t)a->pages.count, "got",
                             (json_int_t)pool->reserved, "size", (json_int_t)a->pages.size, "node",
                             a->pages.node < 0 ? json_null() : json_integer(a->pages.node));
}

/* 1: as wanted. Also returns the pages there and the stray ones. */
static int pool_look(const Root *root, const Action *a, const Place *place, Pool *ret, Pool *ret_stray) {
        int r = pool_read(root, place->pools, ret);
        THEN(r, pool_read(root, place->others, ret_stray));
        return r < 0 ? r
                     : (ret->reserved == a->pages.count && ret_stray->reserved == 0) ||
                               (a->pages.if_none && ret->reserved > 0);
}

int pages_have(const Root *root, const Action *a, uint64_t *ret_have) {
        _cleanup_(place_done) Place place;
        Pool pool = {}, stray = {};
        place_find(&place, root, a);
        int r = pool_look(root, a, &place, &pool, &stray);
        *ret_have = pool.reserved + stray.reserved;
        return r == -ENOENT && a->pages.count == 0 ? 1 : r;
}

int pages_work(Work *w) {
        const Action *a = w->action;
        _cleanup_(place_done) Place place;
        unsigned tries = 0;
        Pool pool = {}, stray = {};
        place_find(&place, w->root, a);
        int r = pool_look(w->root, a, &place, &pool, &stray);
        if (r == -ENOENT && pool.reserved == 0) {
                _free_ char *node = xasprintf(NODES "/node%d", w->action->pages.node);
                if (w->action->pages.count == 0)
                        return 0;
                return w->action->pages.node >= 0 && root_exists(w->root, node) == 0 ? no_such_node(w, &place)
                                                                                     : no_such_size(w);
        }
        if (r < 0)
                return fail_to_reserve(w, r, place.pools[0]);
        uint64_t before = pool.reserved;
        note(w, &pool);
        if (r > 0)
                return 0;
        r = pages_reserve(w, &place, &pool, &tries);
        if (r < 0)
                return fail_to_reserve(w, r, place.pools[0]);
        note(w, &pool);
        if (pool.reserved != a->pages.count)
                r = fall_short(w, &place, &pool, tries);
        else if (pool.reserved < before && pool.surplus > 0) {
                _free_ char *size = bytes_text(w->action->pages.size);
                        diag_warn_at(&w->warnings, "hugepages-in-use", NULL, w->action->id,
                                     "%llu pages of %s are no longer reserved, but still in use; their "
                                     "memory becomes free when the programs that use them exit",
                                     (unsigned long long)pool.surplus, size);
        }
        return r < 0 ? r : pool.reserved != before || stray.reserved > 0;
}
