/* SPDX-License-Identifier: Apache-2.0
 * Rules of kubelet on reservations, on eviction, and on the managers of CPUs, memory and NUMA nodes. From
 * kubernetes/kubernetes, as in kubelet-rules.c. */
#include "config/rules.h"

const char *enforcement_words(const KubeletGiven *g) {
        const json_t *list = json_object_get(g->all, "enforceNodeAllocatable"), *word;
        bool none = false, twice = false, both = false, news = false;
        _strv_ char **seen = NULL;
        size_t i;
        json_array_foreach(list, i, word) {
                const char *s = json_string_value(word) ?: "";
                twice |= strv_contains(seen, s);
                none |= streq(s, "none");
                news |= endswith(s, "-compressible");
                strv_add(&seen, s);
        }
        STRV_FOREACH(s, seen) {
                _free_ char *other = xasprintf("%s-compressible", *s);
                both |= strv_contains(seen, other);
        }
        if (none && json_array_size(list) > 1)
                return "must not list other values besides \"none\"";
        if (twice && from(g, 31))
                return "lists a value twice";
        if (both)
                return "lists a value both with and without -compressible; remove one";
        if (news && until(g, 32))
                return text_say(g->room, "lists a value that needs kubelet 1.32 or newer, but this kubelet "
                                         "is 1.%u",
                                g->minor);
        return NULL;
}

/* An empty list means none; without a list kubelet takes [pods]. */
const char *enforcement_levels(const KubeletGiven *g) {
        const json_t *list = json_object_get(g->all, "enforceNodeAllocatable");
        const char *first = json_string_value(json_array_get(list, 0));
        /* 1.28 to 1.30 count "none" as a level */
        bool none = list && (!first || (streq(first, "none") && !until(g, 31)));
        return !is_on(g, "cgroupsPerQOS", true) && !none
                       ? "must be true unless enforceNodeAllocatable is []" : NULL;
}

/* and pkg/kubelet/cm/node_container_manager_linux.go:enforceExistingCgroup */
const char *enforcement_cgroups(const KubeletGiven *g) {
        static const char *const levels[][3] = {
                { "system-reserved", "systemReservedCgroup", "systemReserved" },
                { "kube-reserved", "kubeReservedCgroup", "kubeReserved" },
        };
        const json_t *list = json_object_get(g->all, "enforceNodeAllocatable"), *word;
        bool cpus = *text(g, "reservedSystemCPUs");
        size_t i;
        if (!g->whole || g->minor == 0)
                return NULL;
        json_array_foreach(list, i, word)
                for (size_t k = 0; k < ARRAY_SIZE(levels); k++) {
                        const char *s = json_string_value(word) ?: "", *const *level = levels[k];
                        if (!startswith(s, level[0]))
                                continue;
                        bool cgroup = *text(g, level[1]),
                             amount = json_object_size(json_object_get(g->all, level[2])) > 0 ||
                                      (cpus && k == 0);
                        if (cgroup && amount)
                                continue;
                        text_add(g->room, "contains %s, but %s is not set", s, cgroup ? level[2] : level[1]);
                        return !cgroup && cpus
                                       ? text_say(g->room, "; reservedSystemCPUs rules that cgroup out")
                                       : g->room->data;
                }
        return NULL;
}

/* k8s.io/utils/cpuset:Parse(). *ret_most: the highest one. */
static bool parse_cpus(const char *s, uint64_t *ret_most) {
        for (*ret_most = 0; *s;) {
                size_t n = strcspn(s, ",");
                _free_ char *range = xstrndup(s, n);
                char *dash = strchr(range, '-');
                uint64_t first, last;
                if (dash)
                        *dash++ = 0;
                if (parse_u64(range, &first) < 0 || parse_u64(dash ?: range, &last) < 0 || last < first)
                        return false;
                *ret_most = MAX(*ret_most, last);
                s += n;
                if (*s == ',' && !*++s)
                        return false;
        }
        return true;
}

const char *reserved_cpus(const KubeletGiven *g) {
        const char *cpus = text(g, "reservedSystemCPUs");
        uint64_t most;
        if (!parse_cpus(cpus, &most))
                return "must be a list of CPUs, such as 0-3,8";
        if (*cpus && (*text(g, "systemReservedCgroup") || *text(g, "kubeReservedCgroup")))
                return "cannot be used with systemReservedCgroup or kubeReservedCgroup";
        if (g->cpus > 0 && most >= g->cpus)
                return text_say(g->room, "names CPU %llu, but the machine has %u, numbered from 0",
                                (unsigned long long)most, g->cpus);
        return NULL;
}

/* A quantity of the API, text or a number, in thousandths; INT64_MIN: neither. */
static int64_t limit_of(const json_t *value) {
        int64_t n;
        if (json_is_integer(value))
                return json_integer_value(value) <= INT64_MAX / 1000 ? json_integer_value(value) * 1000
                                                                     : INT64_MAX;
        return json_is_string(value) && quantity_parse(json_string_value(value), &n) >= 0 ? n : INT64_MIN;
}

/* validate.c refuses huge pages in it. */
const char *reserved_memory(const KubeletGiven *g) {
        _strv_ char **seen = NULL;
        json_t *entry, *value;
        const char *name;
        size_t i;
        json_array_foreach(json_object_get(g->all, "reservedMemory"), i, entry) {
                json_int_t node = json_integer_value(json_object_get(entry, "numaNode"));
                json_object_foreach(json_object_get(entry, "limits"), name, value) {
                        char *id = xasprintf("%lld %s", (long long)node, name);
                        bool twice = strv_contains(seen, id);
                        strv_push(&seen, id);
                        if (twice)
                                text_add(g->room, "sets %s of NUMA node %lld twice", name, (long long)node);
                        else if (!streq(name, "memory") && !startswith(name, "hugepages-"))
                                text_add(g->room, "contains %s, but only memory can be reserved", name);
                        else if (limit_of(value) == 0 || limit_of(value) == INT64_MIN)
                                text_add(g->room, "needs a quantity above 0, such as 1Gi, for %s of NUMA "
                                         "node %lld", name, (long long)node);
                        if (g->room->data)
                                return g->room->data;
                }
        }
        return NULL;
}

/* In thousandths of a byte; -1: a share of memory, whose bytes are not known. */
static int64_t memory_kept(const KubeletGiven *g) {
        const char *threshold = text_in(g, "evictionHard", "memory.available");
        int64_t kept = quantity_in(g, "kubeReserved", "memory") + quantity_in(g, "systemReserved", "memory");
        if (json_is_true(json_object_get(g->all, "ignoreEviction")))
                return kept;
        if (endswith(threshold, "%") && !streq(threshold, "0%") && !streq(threshold, "100%"))
                return -1;
        return kept + quantity_in(g, "evictionHard", "memory.available");
}

/* pkg/kubelet/cm/memorymanager/memory_manager.go:validateReservedMemory */
const char *static_memory(const KubeletGiven *g) {
        int64_t kept = memory_kept(g), sum = 0;
        json_int_t last = 0;
        json_t *entry;
        size_t i;
        if (!g->whole || g->minor == 0 || !streq(text(g, "memoryManagerPolicy"), "Static"))
                return NULL;
        json_array_foreach(json_object_get(g->all, "reservedMemory"), i, entry) {
                int64_t limit = limit_of(json_object_get(json_object_get(entry, "limits"), "memory"));
                sum += MAX(limit, 0);
                last = MAX(last, json_integer_value(json_object_get(entry, "numaNode")));
        }
        if (g->nodes > 0 && last >= (json_int_t)g->nodes)
                return text_say(g->room, "is Static, but reservedMemory names NUMA node %lld; the machine "
                                         "has only %u, numbered from 0", (long long)last, g->nodes);
        if (kept < 0 && sum > 0)
                return NULL;
        if (kept < 0)
                return "is Static without reservedMemory, which must be the sum of kubeReserved, "
                       "systemReserved and evictionHard";
        if (kept == 0)
                return "is Static, but nothing is reserved: set kubeReserved or systemReserved, and "
                       "reservedMemory to the same amount";
        if (kept == sum)
                return NULL;
        _free_ char *has = quantity_text(sum, true), *want = quantity_text(kept, true),
                    *kube = quantity_text(quantity_in(g, "kubeReserved", "memory"), true),
                    *own = quantity_text(quantity_in(g, "systemReserved", "memory"), true);
        text_add(g->room,
                 "is Static and needs reservedMemory of %s: kubeReserved %s, systemReserved %s and "
                 "evictionHard %s",
                 want, kube, own,
                 json_is_true(json_object_get(g->all, "ignoreEviction"))
                         ? "0"
                         : text_in(g, "evictionHard", "memory.available"));
        return text_say(g->room,
                        "; reservedMemory has %s: set it to [{numaNode: 0, limits: {memory: %s}}], or "
                        "split that among the NUMA nodes", sum > 0 ? has : "none", want);
}

const char *quantity_signs(const KubeletGiven *g) {
        const char *name;
        json_t *value;
        int64_t n;
        json_object_foreach(json_object_get(g->all, g->key), name, value)
                if (json_is_string(value) && quantity_parse(json_string_value(value), &n) >= 0 && n < 0)
                        return "contains a negative amount";
        return NULL;
}

/* pkg/kubelet/cm/container_manager.go:ParseQOSReserved */
const char *qos_reserved(const KubeletGiven *g) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(g->all, "qosReserved"), name, value) {
                const char *s = json_string_value(value) ?: "";
                size_t digits = strspn(s, "0123456789");
                uint64_t n = 0;
                _free_ char *whole = xstrndup(s, digits);
                if (!streq(name, "memory"))
                        return "contains a resource other than memory";
                if (digits == 0 || !streq(s + digits, "%") || parse_u64(whole, &n) < 0 || n > 100)
                        return "must be a whole percentage of memory, such as 50%";
        }
        return NULL;
}

static const char *threshold_fault(const char *s, bool reclaim) {
        _free_ char *digits = xstrndup(s, strcspn(s, "%"));
        char *end;
        double share = strtod(digits, &end);
        int64_t n;
        if (!endswith(s, "%"))
                return quantity_parse(s, &n) < 0 ? "must be a quantity or a percentage, such as 100Mi or 5%"
                       : n < 0 || (n == 0 && !reclaim) ? "must be above 0; to turn a threshold off, write 0%"
                                                       : NULL;
        if (!*digits || *end)
                return "must be a quantity or a percentage, such as 100Mi or 5%";
        if (reclaim)
                return share > 0 ? NULL : "must be above 0%";
        return share >= 0 && share <= 100 ? NULL : "must be from 0% to 100%";
}

const char *eviction_thresholds(const KubeletGiven *g) {
        bool reclaim = streq(g->key, "evictionMinimumReclaim");
        const char *signal, *fault;
        json_t *value;
        json_object_foreach(json_object_get(g->all, g->key), signal, value) {
                const char *s = json_string_value(value);
                fault = s ? threshold_fault(s, reclaim) : NULL;
                if (startswith(signal, "containerfs.") && until(g, 29))
                        fault = "is a signal that needs kubelet 1.29 or newer";
                if (fault)
                        return text_say(g->room, "%s %s", signal, fault);
        }
        return NULL;
}

const char *eviction_grace(const KubeletGiven *g) {
        const json_t *soft = json_object_get(g->all, "evictionSoft"),
                     *grace = json_object_get(g->all, "evictionSoftGracePeriod");
        const char *signal;
        json_t *value;
        double n;
        json_object_foreach((json_t *)grace, signal, value) {
                const char *s = json_string_value(value);
                if (s && (!kubelet_parse_duration(s, &n) || n < 0))
                        return text_say(g->room, "%s must be a duration of zero or more, such as 1m30s",
                                        signal);
        }
        json_object_foreach((json_t *)soft, signal, value) {
                const char *s = json_string_value(value) ?: "";
                /* nodeadm accepts it, so only a plan reports it */
                if (g->minor > 0 && !json_object_get(grace, signal) && !streq(s, "0%") && !streq(s, "100%"))
                        return text_say(g->room, "lacks a grace period for %s of evictionSoft; add one to "
                                                 "evictionSoftGracePeriod", signal);
        }
        return NULL;
}

/* From which 1.N an option is at each level. */
typedef struct PolicyOption { const char *name; unsigned alpha, beta, stable; } PolicyOption;
#define NEVER 99

/* pkg/kubelet/cm/cpumanager/policy_options.go */
static const PolicyOption cpu_options[] = {
        { "align-by-socket",                  25, NEVER, NEVER },
        { "distribute-cpus-across-cores",     31, NEVER, NEVER },
        { "distribute-cpus-across-numa",      23, 33, NEVER },
        { "full-pcpus-only",                  22, 23, 33 },
        { "prefer-align-cpus-by-uncorecache", 32, 34, 36 },
        { "strict-cpu-reservation",           32, 33, 35 },
};
/* pkg/kubelet/cm/topologymanager/policy_options.go */
static const PolicyOption topology_options[] = {
        { "max-allowable-numa-nodes",  31, 31, 35 },
        { "prefer-closest-numa-nodes", 26, 28, 32 },
};

static const char *option_fault(const KubeletGiven *g, const char *manager, const PolicyOption *options,
                                size_t n, const char *name) {
        const PolicyOption *o = FIND(option, options, n, streq(option->name, name));
        bool newer = g->minor > KUBELET_TABLES_TO;
        if (!o && newer)
                return NULL;
        if (!o)
                text_add(g->room, "contains %s, which kubelet does not know", name);
        else if (until(g, o->alpha))
                text_add(g->room, "contains %s, which needs kubelet 1.%u or newer", name, o->alpha);
        else if (g->minor > 0 && !newer && !from(g, o->stable)) {
                _free_ char *feature =
                        xasprintf("%sPolicy%sOptions", manager, from(g, o->beta) ? "Beta" : "Alpha");
                if (gate(g, feature) == 0)
                        text_add(g->room, "contains %s, which needs the feature gate %s: set featureGates "
                                          "{%s: true}", name, feature, feature);
        }
        return g->room->data;
}

static bool option_on(const json_t *options, const char *name) {
        return parse_bool(json_get_text(options, name)) == 1;
}

const char *cpu_manager_options(const KubeletGiven *g) {
        static const char *const apart[][2] = {
                { "full-pcpus-only", "distribute-cpus-across-cores" },
                { "distribute-cpus-across-numa", "distribute-cpus-across-cores" },
                { "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores" },
                { "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa" },
        };
        json_t *options = json_object_get(g->all, "cpuManagerPolicyOptions"), *value;
        const char *name;
        if (json_object_size(options) == 0)
                return NULL;
        if (g->whole && !streq(text(g, "cpuManagerPolicy"), "static"))
                return "needs cpuManagerPolicy static";
        if (until(g, 33) && gate(g, "CPUManagerPolicyOptions") == 0)
                return needs_gate(g, "CPUManagerPolicyOptions", true);
        json_object_foreach(options, name, value) {
                if (option_fault(g, "CPUManager", cpu_options, ARRAY_SIZE(cpu_options), name))
                        return g->room->data;
                if (parse_bool(json_string_value(value) ?: "") < 0)
                        return text_say(g->room, "%s must be \"true\" or \"false\"", name);
        }
        for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
                if (option_on(options, apart[i][0]) && option_on(options, apart[i][1]))
                        return text_say(g->room, "%s and %s cannot be used together", apart[i][0],
                                        apart[i][1]);
        if (option_on(options, "align-by-socket") &&
            streq(text(g, "topologyManagerPolicy"), "single-numa-node"))
                return "align-by-socket cannot be used with topologyManagerPolicy single-numa-node";
        return NULL;
}

/* pkg/kubelet/cm/cpumanager/cpu_manager.go:NewManager */
const char *static_cpus(const KubeletGiven *g) {
        int64_t kept = quantity_in(g, "kubeReserved", "cpu") + quantity_in(g, "systemReserved", "cpu");
        /* where the CPUs are not known, ours are not reserved yet */
        if (!g->whole || g->minor == 0 || g->cpus == 0 || !streq(text(g, "cpuManagerPolicy"), "static") ||
            *text(g, "reservedSystemCPUs") || kept > 0)
                return NULL;
        return "is static, but no CPU is reserved: set reservedSystemCPUs, or cpu in kubeReserved or "
               "systemReserved";
}

const char *topology_manager_options(const KubeletGiven *g) {
        json_t *options = json_object_get(g->all, "topologyManagerPolicyOptions"), *value;
        const char *name;
        bool off = gate(g, "TopologyManagerPolicyOptions") == 0;
        if (json_is_object(options) && off)
                return needs_gate(g, "TopologyManagerPolicyOptions", true);
        if (!*text(g, "topologyManagerPolicy") || streq(text(g, "topologyManagerPolicy"), "none"))
                return NULL;
        json_object_foreach(options, name, value) {
                const char *s = json_string_value(value) ?: "";
                bool nodes = streq(name, "max-allowable-numa-nodes");
                uint64_t n = 0;
                if (option_fault(g, "TopologyManager", topology_options, ARRAY_SIZE(topology_options), name))
                        return g->room->data;
                if (nodes ? parse_u64(s, &n) < 0 || n < 8 : parse_bool(s) < 0)
                        return text_say(g->room, "%s must be %s", name,
                                        nodes ? "a number in quotes, at least 8"
                                              : "\"true\" or \"false\"");
        }
        return NULL;
}
