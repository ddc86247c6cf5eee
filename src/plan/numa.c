/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes as kubelet counts them. On a Grace the driver adds GPU memory after the first config phase. */
#include "plan/planner.h"
#include "base/str.h"

/* One for the memory, the others for MIG instances. Four GH200 have 4 + 4 x 8 (NVIDIA/mlperf-common#16), a
 * GB200 tray 2 + 4 x 8 (kubernetes/kubernetes#135541). */
#define NODES_OF_GPU 8
/* kubernetes/kubernetes:pkg/kubelet/cm/topologymanager/topology_manager.go:NewManager */
#define TOPOLOGY_MANAGER_NODES 8
/* kubelet tries all sets of nodes: 2^17 take a moment, 2^34 hours. */
#define NODES_TO_COMBINE 16

bool gpus_are_coherent(const Host *host) {
        return host->gpus.class == GPU_CLASS_TRAY || (host->gpus.model && host->gpus.model->coherent);
}

bool gpus_share_memory(const Config *config, const Host *host) {
        bool old = requirement_misses(requirement_find("cdmm", COMPONENT_DRIVER), host->driver_version);
        return gpus_are_coherent(host) && config->nvidia.mode != NVIDIA_OFF &&
               (config->nvidia.memory == MEMORY_NUMA || (config->nvidia.memory == MEMORY_AUTO && old));
}

static size_t nodes_with_cpus(const Host *host) {
        size_t n = 0;
        for (size_t i = 0; i < host->n_nodes; i++)
                n += host->nodes[i].cpus > 0;
        return MAX(n, 1U);
}

/* google/cadvisor:utils/sysinfo/sysinfo.go:GetNodesInfo also counts nodes without CPUs or memory. */
size_t kubelet_numa_nodes(const Config *config, const Host *host) {
        size_t gpus = MAX(host->gpus.count, host->gpus.expected);
        return gpus_share_memory(config, host)
                       ? MAX(host->n_nodes, nodes_with_cpus(host) + NODES_OF_GPU * gpus)
                       : host->n_nodes;
}

typedef struct Numa {
        const Config *config;
        const Host *host;
        const json_t *settings;
        Diag *warnings;
        size_t nodes;
} Numa;

/* Where the user sets it; a flag wins. */
static const char *path_of(const Numa *n, const char *flag, const char *path) {
        for (char **f = n->config->kubelet.flags; f && *f; f++) {
                const char *name = *f + strspn(*f, "-");
                if (startswith(name, flag) && strchr("= ", name[strlen(flag)]))
                        return "spec.kubelet.flags";
        }
        return json_object_get(n->config->kubelet.config, strrchr(path, '.') + 1) ? path : NULL;
}

/* How to get fewer nodes: "Set memoryMode: driver, or ". */
static const char *advice(const Numa *n) {
        if (!gpus_share_memory(n->config, n->host))
                return "Set ";
        return n->config->nvidia.memory == MEMORY_NUMA
                       ? "Set spec.accelerator.nvidia.memoryMode: driver, or "
                       : "Install a driver with CDMM, which adds no NUMA nodes, or set ";
}

/* The option exists from 1.31 on (pkg/kubelet/cm/topologymanager/policy_options.go); pods with devices work
 * beside it from 1.36 on (kubernetes/kubernetes#138244). */
static char *option_text(const Numa *n) {
        const char *version = n->host->kubelet_version;
        bool known = version_at_least(version, 1, 31), slow = n->nodes > NODES_TO_COMBINE;
        return xasprintf("%s topologyManagerPolicyOptions: {max-allowable-numa-nodes: \"%zu\"}%s",
                         known ? ", or" : "; from 1.31 on kubelet accepts", n->nodes,
                         slow && !version_at_least(version, 1, 36)
                                 ? ", but with Kubernetes before 1.36, pods that request devices then stay "
                                   "Pending"
                                 : "");
}

static void check_topology_manager(const Numa *n) {
        const json_t *options = json_object_get(n->settings, "topologyManagerPolicyOptions");
        const char *policy = json_get_text(n->settings, "topologyManagerPolicy"),
                   *path = path_of(n, "topology-manager-policy", "spec.kubelet.config.topologyManagerPolicy");
        uint64_t most = options ? node_setting_number(options, "max-allowable-numa-nodes") : 0;
        most = most ?: TOPOLOGY_MANAGER_NODES;
        if (!*policy || streq(policy, "none"))
                return;
        if (n->nodes > most) {
                size_t cpus = nodes_with_cpus(n->host);
                _free_ char *nodes = n->nodes > cpus && gpus_share_memory(n->config, n->host)
                                             ? xasprintf("%zu: %zu with CPUs, and %u for each GPU whose "
                                                         "memory the driver brings online",
                                                         n->nodes, cpus, NODES_OF_GPU)
                                             : xasprintf("%zu", n->nodes),
                            *option = option_text(n);
                diag_warn_at(n->warnings, "numa-nodes", NULL, path,
                             "kubelet cannot start: its topology manager accepts up to %llu NUMA nodes, but "
                             "finds %s. %stopologyManagerPolicy: none%s",
                             (unsigned long long)most, nodes, advice(n), option);
        } else if (n->nodes > NODES_TO_COMBINE && !version_at_least(n->host->kubelet_version, 1, 36))
                diag_warn_at(n->warnings, "numa-stall", NULL, path,
                             "pods that request devices stay Pending: before 1.36 kubelet tries each "
                             "combination of the %zu NUMA nodes. %stopologyManagerPolicy: none",
                             n->nodes, advice(n));
}

void plan_numa(Plan *plan, const Config *config, const Host *host, const json_t *settings) {
        Numa n = { config, host, settings, &plan->warnings, kubelet_numa_nodes(config, host) };
        if (gpus_share_memory(config, host))
                json_object_set_new(plan->facts, "kubeletNumaNodes", json_integer((json_int_t)n.nodes));
        check_topology_manager(&n);
        /* With any topology manager policy, in all versions so far
         * (pkg/kubelet/cm/memorymanager/policy_static.go:calculateHints, kubernetes/kubernetes#135541). */
        if (n.nodes > NODES_TO_COMBINE && streq(json_get_text(n.settings, "memoryManagerPolicy"), "Static"))
                diag_warn_at(n.warnings, "numa-stall", NULL,
                             path_of(&n, "memory-manager-policy", "spec.kubelet.config.memoryManagerPolicy"),
                             "Guaranteed pods stay Pending: for their memory kubelet tries each combination "
                             "of the %zu NUMA nodes. %smemoryManagerPolicy: None", n.nodes, advice(&n));
}
