/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages, largest first: they need contiguous memory. kubelet counts them once, at its start. */
#include "plan/devices.h"
#include "base/str.h"
#include <errno.h>

#define GROUP    "hugepages"
#define PATH     "spec.instance.hugePages"
#define MEBIBYTE (1ULL << 20)
/* As in the EFA installer: two 110 MB endpoints per CPU; no large pages (bottlerocket-core-kit#141). */
#define EFA_PER_CPU  (220 * MEBIBYTE)
#define EFA_LARGEST  (16 * MEBIBYTE)

/* Each after the one before it, even if that fell short: the others are still useful. */
static Action *reserve(Plan *plan, const Config *config, const Host *host, const PageRequest *want,
                       const char *reason) {
        bool lenient = config->instance.hugepages.on_shortfall == POLICY_WARN;
        _free_ char *why = xasprintf("%s%s", reason, lenient ? "; warn on shortfall" : "");
        _free_ char *size = bytes_text(want->size), *before = NULL;
        _free_ char *target =
                want->numa_node < 0 ? xstrdup(size) : xasprintf("%s on node %d", size, want->numa_node);
        if (plan->n > 0 && plan->actions[plan->n - 1].type == ACTION_RESERVE_PAGES)
                before = xstrdup(plan->actions[plan->n - 1].id);
        Action *a = plan_add(plan, ACTION_RESERVE_PAGES, PHASE_DEVICES, GROUP, target, why);
        a->pages.size = want->size;
        a->pages.count = want->count;
        a->pages.node = want->numa_node;
        a->pages.by_node = want->numa_node < 0 && want->count > 0 && gpus_share_memory(config, host);
        a->with = xasprintf("x %u", want->count);
        a->lenient = lenient;
        if (before)
                action_after_any(a, before);
        return a;
}

static void plan_for_efa(Plan *plan, const Config *config, const Host *host) {
        uint64_t size = host->page_size;
        if (!plan_uses_efa(config, host))
                return;
        if (size == 0) {
                diag_warn_at(&plan->warnings, "no-huge-pages", NULL, PATH ".mode",
                             "auto reserves none: this kernel has no huge pages (no Hugepagesize in "
                             "/proc/meminfo)");
                return;
        }
        if (size > EFA_LARGEST) {
                diag_warn_at(&plan->warnings, "no-huge-pages", NULL, PATH ".mode",
                             "auto reserves none: pages of %llu MiB, the default size, would be too few "
                             "or fill the memory", (unsigned long long)(size / MEBIBYTE));
                return;
        }
        PageRequest want = { size, (unsigned)(host->cpus * EFA_PER_CPU / size + 1), -1 };
        reserve(plan, config, host, &want, "EFA: 220 MiB per CPU, unless reserved already")->pages.if_none =
                true;
}

static int compare_requests(const void *a, const void *b) {
        const PageRequest *x = a, *y = b;
        return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : x->numa_node - y->numa_node;
}

uint64_t memory_of_cpus(const Host *host) {
        uint64_t bytes = 0, others = 0;
        for (size_t i = 0; i < host->n_nodes; i++)
                *(host->nodes[i].cpus > 0 ? &bytes : &others) += host->nodes[i].memory_bytes;
        return others > 0 ? bytes : host->memory_bytes;
}

/* Also for a node that the driver adds later. */
static int check_node(const Config *config, const Host *host, int id, Diag *diag) {
        const NumaNode *node = FIND(n, host->nodes, host->n_nodes, (int)n->id == id);
        bool later = !node && id >= 0 && gpus_share_memory(config, host) &&
                     (size_t)id < kubelet_numa_nodes(config, host);
        if (later || (node && node->cpus == 0))
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, PATH ".pages",
                                     "names NUMA node %d, which has no CPUs: its memory belongs to a GPU, "
                                     "which would lose it; name a node that has CPUs", id);
        bool assumed = host->modelled && strv_contains(host->assumed, "numaNodes");
        if (!node && id >= 0 && host->n_nodes > 0 && !assumed)
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, PATH ".pages",
                                     "names NUMA node %d, which this machine does not have", id);
        return 0;
}

/* "2Mi, 512Mi, 16Gi": depends on the base page size (https://docs.kernel.org/arch/arm64/hugetlbpage.html). */
static char *sizes_text(const Host *host) {
        _strv_ char **sizes = NULL;
        for (size_t i = host->n_pools; i > 0; i--)      /* sorted, largest first */
                if (i == host->n_pools || host->pools[i - 1].size != host->pools[i].size)
                        strv_push(&sizes, bytes_text(host->pools[i - 1].size));
        return strv_join(sizes, ", ");
}

static int refuse_size(const Host *host, uint64_t size, Diag *diag) {
        _free_ char *asked = bytes_text(size), *there = sizes_text(host);
        return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, PATH ".pages",
                             "names a size of %s, but %s has %s%s", asked,
                             host->modelled ? "the kernel of Amazon Linux" : "this kernel",
                             *there ? there : "no huge pages",
                             host->modelled && streq(host->arch ?: "", "aarch64")
                                     ? " (a kernel with base pages of 64 KiB has 2Mi, 512Mi, 16Gi)"
                                     : "");
}

/* Pages of all sizes on one node. */
static int check_share(const NumaNode *node, const PageRequest *pages, size_t n, Diag *diag) {
        uint64_t all = 0;
        for (size_t i = 0; i < n; i++)
                all += pages[i].numa_node == (int)node->id ? pages[i].size * pages[i].count : 0;
        if (all == 0 || node->memory_bytes == 0 || all < node->memory_bytes)
                return 0;
        return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, PATH ".pages",
                             "asks for %llu MiB on NUMA node %u, but it has only %llu MiB of memory",
                             (unsigned long long)(all / MEBIBYTE), node->id,
                             (unsigned long long)(node->memory_bytes / MEBIBYTE));
}

static int check_requests(const Config *config, const Host *host, const PageRequest *pages, size_t n,
                          Diag *diag) {
        uint64_t all = 0, memory = memory_of_cpus(host);
        int r = 0;
        for (size_t i = 0; i < n; i++) {
                all += pages[i].size * pages[i].count;
                int k = check_node(config, host, pages[i].numa_node, diag);
                r = k < 0 ? k : r;
                if (!ANY(p, host->pools, host->n_pools, p->size == pages[i].size))
                        r = refuse_size(host, pages[i].size, diag);
        }
        for (size_t i = 0; i < host->n_nodes; i++) {
                int k = check_share(&host->nodes[i], pages, n, diag);
                r = k < 0 ? k : r;
        }
        if (memory > 0 && all >= memory)
                r = diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, PATH ".pages",
                                  "asks for %llu MiB, but the machine has only %llu MiB of memory",
                                  (unsigned long long)(all / MEBIBYTE),
                                  (unsigned long long)(memory / MEBIBYTE));
        return r;
}

static int plan_explicit(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const HugePages *h = &config->instance.hugepages;
        _free_ PageRequest *pages = (void *)xmemdup(h->pages, h->n_pages * sizeof *pages);
        qsort(pages, h->n_pages, sizeof *pages, compare_requests);
        int r = check_requests(config, host, pages, h->n_pages, diag);
        /* A model has the wanted sizes if some kernel does: the image must have it. */
        _free_ char *there = sizes_text(host);
        if (host->modelled && host->page_size > 2 * MEBIBYTE)
                diag_warn_at(&plan->warnings, "page-size", NULL, PATH ".pages",
                             "names huge page sizes of a kernel with 64 KiB base pages. Amazon Linux "
                             "uses 4 KiB, so the image must have another kernel. The plan assumes one "
                             "with %s", there);
        for (size_t i = 0; i < h->n_pages && r >= 0; i++)
                reserve(plan, config, host, &pages[i],
                        pages[i].numa_node < 0 ? "pages across CPU NUMA nodes"
                                               : "pages on one NUMA node");
        return r;
}

int plan_pages(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        switch (config->instance.hugepages.mode) {
        case HUGEPAGES_OFF:
                for (size_t i = 0; i < host->n_pools; i++)
                        if (i == 0 || host->pools[i].size != host->pools[i - 1].size)
                                reserve(plan, config, host, &(PageRequest){ host->pools[i].size, 0, -1 },
                                        "release huge pages that the image reserved");
                return 0;
        case HUGEPAGES_AUTO:
                plan_for_efa(plan, config, host);
                return 0;
        case HUGEPAGES_EXPLICIT:
                return plan_explicit(plan, config, host, diag);
        default:
                return 0;
        }
}
