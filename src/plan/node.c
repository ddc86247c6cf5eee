/* SPDX-License-Identifier: Apache-2.0 */
/* The plan → the expected Node: capacity and allocatable, computed as in kubelet
 * (kubernetes/kubernetes:pkg/kubelet/nodestatus/setters.go:MachineInfo,
 * pkg/kubelet/cm/node_container_manager_linux.go:GetNodeAllocatableReservation), without devices. */
#include "plan/planner.h"
#include "base/str.h"
#include "base/sysctl.h"
#include "config/kubelet.h"

/* In thousandths; capacity -1: not known. */
typedef struct Resource {
        char *name;
        int64_t capacity, reserved;
        bool binary;                    /* format, as in kubelet */
        bool is_most;                   /* upper limit */
        const char *doubt;              /* why the machine may differ; NULL: exact */
} Resource;
#define RESOURCES_MAX 32
typedef struct Expected {
        Resource items[RESOURCES_MAX];
        size_t n;
        json_t *settings;
        const char *users;      /* the configuration path that sets reservations; or NULL */
        bool modelled;          /* no machine yet */
        Diag *warnings;
} Expected;

static void expected_done(Expected *e) {
        for (size_t i = 0; i < e->n; i++)
                free(e->items[i].name);
        json_decref(e->settings);
}

static Resource *add(Expected *e, char *name, uint64_t capacity, bool binary) {
        bool known = capacity <= INT64_MAX / 1000;
        if (e->n == RESOURCES_MAX) {
                free(name);
                return &e->items[e->n - 1];
        }
        Resource *r = &e->items[e->n++];
        *r = (Resource){ .name = name, .capacity = known ? (int64_t)capacity * 1000 : -1, .binary = binary };
        return r;
}

static int64_t sum(int64_t a, int64_t b) {
        int64_t result;
        return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

/* 0: not set, or not valid */
static int64_t reserved_in(const Expected *e, const char *map, const char *name) {
        const char *text = json_get_text(json_object_get(e->settings, map), name);
        int64_t amount = 0;
        return quantity_parse(text, &amount) < 0 ? 0 : MAX(amount, 0);
}

static int64_t threshold(const Expected *e, const char *signal, int64_t capacity) {
        const json_t *value = json_object_get(json_object_get(e->settings, "evictionHard"), signal);
        const char *text = json_string_value(value);
        int64_t amount = 0;
        if (!value || node_setting_flag(e->settings, "ignoreEviction") > 0)
                return 0;
        bool percent = text && endswith(text, "%");
        if (percent && (streq(text, "0%") || streq(text, "100%")))
                return 0;       /* off */
        _free_ char *number = xstrndup(text ?: "", strlen(text ?: "") - percent);
        if (quantity_parse(number, &amount) < 0 || amount < 0 || (percent && amount > 100000))
                return 0;
        /* In float, as kubelet computes it (pkg/kubelet/eviction/api/types.go:GetThresholdQuantity). */
        float part = (float)((double)amount / 1000) / 100;
        int64_t whole = capacity > 0 ? capacity / 1000 : 0;
        return percent ? (int64_t)((double)whole * (double)part) * 1000 : amount;
}

/* Where the user sets reservations; NULL: they are ours or from a file in the image. */
static const char *config_reserves(const Config *config) {
        static const char keys[][20] = { "kubeReserved", "systemReserved", "evictionHard",
                                         "reservedSystemCPUs" };
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (json_object_get(config->kubelet.config, keys[i]))
                        return "spec.kubelet.config";
        for (char **flag = config->kubelet.flags; flag && *flag; flag++)
                if (strstr(*flag, "reserved") || strstr(*flag, "eviction"))
                        return "spec.kubelet.flags";
        return NULL;
}

/* signal: for eviction, or NULL. reservedSystemCPUs replaces both reserves. */
static void reserve_of(Expected *e, Resource *r, const char *signal) {
        const char *cpus = json_get_text(e->settings, "reservedSystemCPUs");
        if (streq(r->name, "cpu") && cpu_list_count(cpus) > 0)
                r->reserved = cpu_list_count(cpus) * INT64_C(1000);
        else
                r->reserved = sum(reserved_in(e, "kubeReserved", r->name),
                                  reserved_in(e, "systemReserved", r->name));
        if (signal)
                r->reserved = sum(r->reserved, threshold(e, signal, r->capacity));
        if (r->capacity < 0 || r->reserved <= r->capacity)
                return;
        _free_ char *has = quantity_text(r->capacity, r->binary),
                    *keeps = quantity_text(r->reserved, r->binary);
        diag_warn_at(e->warnings, "reserved-too-much", NULL, e->users,
                     "kubelet cannot start: the %s reservation is %s (kubeReserved, systemReserved, "
                     "evictionHard), but the machine has %s%s; reserve less",
                     r->name, keeps, r->doubt ? "about " : "", has);
        if (e->users && r->is_most && e->modelled)      /* on a machine kubelet itself reports it */
                diag_foretell(e->warnings, CAUSE_INVALID);
}

static void add_memory(Expected *e, const Config *config, const Host *host) {
        bool shared = gpus_share_memory(config, host), there = memory_of_cpus(host) < host->memory_bytes,
             leaves = there && !shared && gpus_are_coherent(host) && config->nvidia.mode != NVIDIA_OFF;
        uint64_t bytes = leaves ? memory_of_cpus(host) : host->memory_bytes ?: UINT64_MAX;
        Resource *r = add(e, xstrdup("memory"), bytes, true);
        if (host->memory_bytes == 0)
                r->doubt = host->type ? "the table of instance types lacks the memory size"
                                    : "the table of instance types lacks this type; give "
                                      "--instance-type-file";
        else if (leaves)
                r->doubt = "without GPU memory, which goes offline when the driver reloads";
        else if (shared && !there)
                r->doubt = "at least: the driver adds GPU memory when it loads";
        else if (strv_contains(host->assumed, "memoryBytes"))
                r->doubt = "at most: the kernel keeps some of it";
        r->is_most = !shared || there;
        reserve_of(e, r, "memory.available");
}

/* Of one size, on all NUMA nodes, after the plan. */
static uint64_t pages_after(const Plan *plan, const Host *host, uint64_t size, const char **ret_doubt) {
        uint64_t count = 0;
        bool assumed = strv_contains(host->assumed, "hugePages");
        for (size_t i = 0; i < host->n_pools; i++)
                count += host->pools[i].size == size ? host->pools[i].count : 0;
        *ret_doubt = assumed ? "if the image reserves none" : NULL;
        for (const Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                if (a->type != ACTION_RESERVE_PAGES || a->pages.size != size ||
                    (a->pages.if_none && count > 0))
                        continue;
                for (size_t k = 0; k < host->n_pools && a->pages.node >= 0; k++)
                        if (host->pools[k].size == size && host->pools[k].node == a->pages.node)
                                count -= MIN(count, host->pools[k].count);
                count = a->pages.count + (a->pages.node >= 0 ? count : 0);
                if (a->lenient)
                        *ret_doubt = "at most: fewer if memory is short";
                else if (!a->pages.if_none)
                        *ret_doubt = NULL;
        }
        return count;
}

/* One per kernel page size; pods cannot use it as memory. */
static void add_pages(Expected *e, const Plan *plan, const Host *host) {
        Resource *memory = &e->items[e->n - 1];
        int64_t taken = 0;
        for (size_t i = 0; i < host->n_pools; i++) {
                uint64_t size = host->pools[i].size;
                const char *doubt;
                if (i > 0 && host->pools[i - 1].size == size)
                        continue;
                _free_ char *text = bytes_text(size);
                Resource *r = add(e, xasprintf("hugepages-%s", text),
                                  size * pages_after(plan, host, size, &doubt), true);
                r->doubt = doubt;
                memory->doubt = memory->doubt ?: doubt ? "an estimate: huge pages may differ" : NULL;
                taken = sum(taken, MAX(r->capacity, 0));
        }
        if (taken > 0 && memory->capacity > 0 && memory->reserved <= memory->capacity &&
            taken >= memory->capacity - memory->reserved) {
                _free_ char *pages = quantity_text(taken, true),
                            *keeps = quantity_text(memory->reserved, true),
                            *has = quantity_text(memory->capacity, true);
                diag_warn(e->warnings, "no-memory-left",
                          "huge pages (%s) and kubelet reservations (%s) use up all %s of memory: "
                          "every pod that requests memory stays Pending; reserve less", pages, keeps, has);
        }
        memory->reserved = sum(memory->reserved, taken);
}

static void add_storage(Expected *e, const Plan *plan, const Config *config, const Host *host) {
        const char *doubt;
        if (node_setting_flag(e->settings, "localStorageCapacityIsolation") == 0)
                return;
        uint64_t bytes = ephemeral_bytes(plan, config, host, &doubt);
        Resource *r = add(e, xstrdup("ephemeral-storage"), bytes > 0 ? bytes : UINT64_MAX,
                          /* kubernetes/kubernetes#137652 */
                          !version_at_least(host->kubelet_version, 1, 37));
        r->doubt = doubt;
        r->is_most = !doubt;
        reserve_of(e, r, "nodefs.available");
}

bool plan_sets(const Plan *plan, const char *path) {
        for (const Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                _free_ char *set = a->type == ACTION_SET_SYSCTL ? sysctl_path(a->target) : NULL;
                if (set && streq(set, path))
                        return true;
        }
        return false;
}

/* The run phase checks again right before it starts kubelet (apply/units/unit.c). */
static void check_kernel(Plan *plan, const Host *host) {
        const Action *kubelet = plan_find(plan, "start-unit:kubelet.service");
        _free_ bool *given = xcalloc(n_kubelet_tunables, sizeof *given);
        if (!kubelet)
                return;
        for (size_t i = 0; i < n_kubelet_tunables; i++)
                given[i] = plan_sets(plan, kubelet_tunables[i].path);
        _free_ char *swap = kubelet->unit.no_swap ? kernel_swap_fault(&host->kernel_state) : NULL,
                    *settings =
                            kubelet->unit.defaults ? kernel_settings_fault(&host->kernel_state, given) : NULL;
        if (swap)
                diag_warn(&plan->warnings, "swap", "%s", swap);
        if (settings)
                diag_warn(&plan->warnings, "kernel-settings", "%s", settings);
}

static void put(json_t *node, const char *object, const Resource *r, int64_t value) {
        _free_ char *text = quantity_text(value, r->binary);
        json_set_text(json_object_get(node, object), r->name, text);
}

static int compare_resources(const void *a, const void *b) {
        return strcmp(((const Resource *)a)->name, ((const Resource *)b)->name);
}

static json_t *taints_json(const Config *config) {
        _strv_ char **taints = kubelet_taints(config);
        json_t *list = json_array();
        for (char **t = taints; t && *t; t++) {
                size_t key = strcspn(*t, "=:");
                char *effect = strrchr(*t, ':');
                json_t *taint = json_object();
                if (effect)
                        *effect++ = 0;
                json_set_text(taint, "effect", effect);
                json_set_text(taint, "value", (*t)[key] == '=' && (*t)[key + 1] ? *t + key + 1 : NULL);
                (*t)[key] = 0;
                json_set_text(taint, "key", *t);
                json_array_append_new(list, taint);
        }
        return list;
}

/* The settings that kubelet shows at /configz, without free text, which may be a secret. */
static void put_settings(const char *path, json_t *settings, json_t *shown) {
        const char *key;
        json_t *value;
        json_object_foreach(settings, key, value) {
                _free_ char *name = xasprintf("%s%s%s", path, *path ? "." : "", key);
                KubeletSetting s;
                /* numbers, times and enum values */
                if (kubelet_setting_find(name, &s) &&
                    (strchr("bifdgqez", s.type) || (strchr("sl", s.type) && *s.limits)))
                        json_object_set(shown, name, value);
                else if (json_is_object(value))
                        put_settings(name, value, shown);
        }
}

static json_t *node_json(const Expected *e, const Config *config) {
        json_t *labels = json_object_get(e->settings, "nodeLabels"),
               *node = json_pack("{ss sO* so so s{} s{} s{} s{} s{}}", "name",
                                 json_get_text(e->settings, "hostnameOverride"), "providerID",
                                 json_object_get(e->settings, "providerID"), "labels",
                                 labels ? json_incref(labels) : json_object(), "taints", taints_json(config),
                                 "settings", "capacity", "allocatable", "approximate", "unknown");
        put_settings("", e->settings, json_object_get(node, "settings"));
        for (const Resource *r = e->items; r < e->items + e->n; r++) {
                bool known = r->capacity >= 0;
                if (r->doubt)
                        json_set_text(json_object_get(node, known ? "approximate" : "unknown"), r->name,
                                      r->doubt);
                if (!known)
                        continue;
                put(node, "capacity", r, r->capacity);
                put(node, "allocatable", r, MAX(r->capacity - r->reserved, 0));
        }
        return node;
}

void plan_node(Plan *plan, const Config *config, const Host *host) {
        _cleanup_(expected_done) Expected e = { .settings = node_settings(plan, host),
                                                .users = config_reserves(config),
                                                .modelled = host->modelled,
                                                .warnings = &plan->warnings };
        Resource *cpu = add(&e, xstrdup("cpu"), host->cpus > 0 ? host->cpus : UINT64_MAX, false);
        if (host->cpus == 0)
                cpu->doubt = "the table of instance types lacks the number of CPUs; give "
                             "--instance-type-file";
        cpu->is_most = true;
        reserve_of(&e, cpu, NULL);
        add_memory(&e, config, host);
        add_pages(&e, plan, host);
        uint64_t most = node_setting_number(e.settings, "maxPods"),
                 per_core = node_setting_number(e.settings, "podsPerCore");
        if (per_core > 0 && host->cpus > 0)
                most = MIN(most, per_core * host->cpus);
        add(&e, xstrdup("pods"), most, false);
        add_storage(&e, plan, config, host);
        plan_numa(plan, config, host, e.settings);
        check_kernel(plan, host);
        qsort(e.items, e.n, sizeof(Resource), compare_resources);
        plan->node = node_json(&e, config);
}
