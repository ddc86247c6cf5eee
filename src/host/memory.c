/* SPDX-License-Identifier: Apache-2.0
 * CPUs, memory, NUMA nodes and huge pages. Counts CPUs like nodeadm (nodeadm/internal/system/resources.go):
 * of online nodes, or without nodes all; CPU_DIR and NODE_DIR move the directories. */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

/* "cpu12" → 12; -EINVAL: "cpufreq". */
static int parse_suffix(const char *name, const char *prefix, unsigned *ret) {
        uint64_t value = 0;
        if (!startswith(name, prefix) || parse_u64(name + strlen(prefix), &value) < 0 || value > INT32_MAX)
                return -EINVAL;
        *ret = (unsigned)value;
        return 0;
}

int cpulist_has(const char *list, unsigned n) {
        bool found = !list;
        for (const char *p = list; p && *p;) {
                char *end = NULL;
                unsigned long first = strtoul(p, &end, 10), last = first;
                if (end == p || *p < '0' || *p > '9')
                        return -EINVAL;
                if (*end == '-') {
                        p = end + 1;
                        last = strtoul(p, &end, 10);
                        if (end == p || *p < '0' || *p > '9' || last < first)
                                return -EINVAL;
                }
                if (*end && (*end != ',' || !end[1]))
                        return -EINVAL;
                found |= n >= first && n <= last;
                p = *end ? end + 1 : end;
        }
        return found;
}

/* Counts online cpuN directories. */
static int count_cpus(const Root *root, const char *path, const char *online, unsigned *ret) {
        _strv_ char **names = NULL;
        unsigned count = 0, cpu;
        int r = root_list(root, path, &names);

        if (r < 0)
                return r;
        STRV_FOREACH(name, names) {
                if (parse_suffix(*name, "cpu", &cpu) < 0)
                        continue;
                r = cpulist_has(online, cpu);
                if (r < 0)
                        return r;
                count += (unsigned)r;
        }
        *ret = count;
        return 0;
}

/* "2048kB" → bytes */
static int parse_kib(const char *text, const char *unit, uint64_t *ret) {
        size_t digits = strspn(text, "0123456789");
        _free_ char *number = xstrndup(text, digits);
        int r = startswith(text + digits, unit) ? parse_u64(number, ret) : -EINVAL;
        return r >= 0 && __builtin_mul_overflow(*ret, 1024, ret) ? -ERANGE : r;
}

/* "MemTotal: 24684084 kB" in text → bytes */
static int parse_meminfo(const char *text, const char *key, uint64_t *ret) {
        const char *p = strstr(text, key);
        if (!p)
                return -ENODATA;
        p += strlen(key);
        p += strspn(p, " \t");
        return parse_kib(p, " kB", ret);
}

static int read_node(const Root *root, const char *dir, const char *name, const char *online, NumaNode *n,
                     Diag *diag) {
        _free_ char *path = xasprintf("%s/%s", dir, name), *meminfo = xasprintf("%s/meminfo", path),
                    *text = NULL;
        int r = count_cpus(root, path, online, &n->cpus);
        if (r < 0)
                return fact_error(diag, r, path, "the CPUs of this NUMA node are not known");
        r = root_read(root, meminfo, 64 << 10, &text, NULL);
        if (r >= 0)
                r = parse_meminfo(text, "MemTotal:", &n->memory_bytes);
        return r < 0 && r != -ENOENT
                       ? fact_error(diag, r, meminfo, "the memory of this NUMA node is not known")
                       : 0;
}

static int compare_nodes(const void *a, const void *b) {
        const NumaNode *x = a, *y = b;
        return (x->id > y->id) - (x->id < y->id);
}

static const char *directory_of(const char *variable, const char *usual) {
        const char *dir = getenv(variable);
        return dir && *dir ? dir : usual;
}

#define NODE_DIR directory_of("NODE_DIR", "/sys/devices/system/node")

static int read_nodes(const Root *root, const char *online, Host *h, Diag *diag) {
        _strv_ char **names = NULL;
        const char *dir = NODE_DIR;
        int r = list_optional(root, dir, &names, "NUMA nodes cannot be listed", diag);
        if (r < 0)
                return r;
        h->nodes = xcalloc(strv_length(names), sizeof *h->nodes);
        STRV_FOREACH(name, names) {
                NumaNode *n = &h->nodes[h->n_nodes];
                if (parse_suffix(*name, "node", &n->id) < 0)
                        continue;
                h->n_nodes++;
                r = read_node(root, dir, *name, online, n, diag);
                if (r < 0)
                        return r;
                h->cpus += n->cpus;
        }
        if (h->n_nodes > 1)
                qsort(h->nodes, h->n_nodes, sizeof *h->nodes, compare_nodes);
        return 0;
}

static int read_cpus(const Root *root, Host *h, Diag *diag) {
        const char *dir = directory_of("CPU_DIR", "/sys/devices/system/cpu");
        _free_ char *path = xasprintf("%s/online", dir), *online = NULL;
        int r = root_read_line(root, path, &online);

        if (r == -ENOENT)
                r = 0;          /* without hotplug all are online */
        if (r >= 0)
                r = cpulist_has(online, 0);
        if (r < 0)
                return fact_error(diag, r, path, "the number of CPUs is not known");
        r = read_nodes(root, online, h, diag);
        if (r < 0 || h->cpus > 0)
                return r;
        r = count_cpus(root, dir, online, &h->cpus);
        if (r >= 0 && h->cpus == 0)
                r = -ENODATA;
        return r < 0 ? fact_error(diag, r, dir,
                                  "the number of CPUs is not known, and kubelet reservations depend on it")
                     : 0;
}

/* dir: such as /sys/devices/system/node/node0/hugepages */
static int read_pools(const Root *root, const char *dir, int node, Host *h, Diag *diag) {
        _strv_ char **names = NULL;
        static const char unknown[] = "the number of reserved huge pages is not known";
        int r = list_optional(root, dir, &names, unknown, diag);
        if (r < 0)
                return r;
        STRV_FOREACH(name, names) {
                PagePool pool = { .node = node };
                const char *size = startswith(*name, "hugepages-") ? strchr(*name, '-') + 1 : "";
                if (!endswith(size, "kB") || parse_kib(size, "kB", &pool.size) < 0 || pool.size == 0)
                        continue;
                _free_ char *path = xasprintf("%s/%s/nr_hugepages", dir, *name);
                r = root_read_u64(root, path, &pool.count);
                if (r < 0)
                        return fact_error(diag, r, path, unknown);
                *APPEND(h->pools, h->n_pools) = pool;
        }
        return 0;
}

static int compare_pools(const void *a, const void *b) {
        const PagePool *x = a, *y = b;
        return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : x->node - y->node;
}

/* A kernel without NUMA has one place. */
static int detect_pools(const Root *root, Host *h, Diag *diag) {
        int r = 0;
        for (size_t i = 0; i < h->n_nodes && r >= 0; i++) {
                _free_ char *dir = xasprintf("%s/node%u/hugepages", NODE_DIR, h->nodes[i].id);
                r = read_pools(root, dir, (int)h->nodes[i].id, h, diag);
        }
        if (r >= 0 && h->n_pools == 0)
                r = read_pools(root, "/sys/kernel/mm/hugepages", -1, h, diag);
        if (h->n_pools > 1)
                qsort(h->pools, h->n_pools, sizeof *h->pools, compare_pools);
        return r;
}

int detect_memory(const Root *root, Host *h, Diag *diag) {
        _free_ char *meminfo = NULL;
        int r = root_read(root, "/proc/meminfo", 64 << 10, &meminfo, NULL);
        if (r >= 0)
                r = parse_meminfo(meminfo, "MemTotal:", &h->memory_bytes);
        if (r == -ENOENT && !root_is_host(root))
                return fact_error(diag, r, "/proc/meminfo",
                                  "the size of memory is not known: an image has none; give --instance-type");
        if (r < 0)
                return fact_error(diag, r, "/proc/meminfo", "the size of memory is not known");
        r = parse_meminfo(meminfo, "Hugepagesize:", &h->page_size);
        if (r < 0 && r != -ENODATA)
                return fact_error(diag, r, "/proc/meminfo", "the default size of huge pages is not known");
        return read_cpus(root, h, diag) ?: detect_pools(root, h, diag);
}
