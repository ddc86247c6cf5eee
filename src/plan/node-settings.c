/* SPDX-License-Identifier: Apache-2.0 */
/* Kubelet's files and arguments in the plan → its settings, as kubelet merges them: the drop-in over the
 * file by RFC 7386, flags over both (kubernetes/kubernetes:cmd/kubelet/app/server.go). Read from what will
 * be written, and not decided once more. */
#include "plan/node.h"
#include "base/str.h"
#include "doc/assignment.h"
#include <errno.h>

#define FILE_ID    "write-file:/etc/kubernetes/kubelet/config.json"
#define DROP_IN_ID "write-file:/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"

/* What a flag's text is: one value, a value that may be left out ("true"), pairs with this between. */
typedef enum FlagKind { FLAG_VALUE, FLAG_SWITCH, FLAG_PAIRS = '=', FLAG_THRESHOLDS = '<' } FlagKind;
typedef struct Flag { const char *name, *setting; FlagKind kind; } Flag;
static const Flag flags[] = {
        { "eviction-hard", "evictionHard", FLAG_THRESHOLDS },
        { "experimental-allocatable-ignore-eviction", "ignoreEviction", FLAG_SWITCH },
        { "fail-swap-on", "failSwapOn", FLAG_SWITCH },
        { "hostname-override", "hostnameOverride", FLAG_VALUE },
        { "kube-reserved", "kubeReserved", FLAG_PAIRS },
        { "local-storage-capacity-isolation", "localStorageCapacityIsolation", FLAG_SWITCH },
        { "max-pods", "maxPods", FLAG_VALUE },
        { "node-labels", "nodeLabels", FLAG_PAIRS },
        { "pods-per-core", "podsPerCore", FLAG_VALUE },
        { "protect-kernel-defaults", "protectKernelDefaults", FLAG_SWITCH },
        { "provider-id", "providerID", FLAG_VALUE },
        { "reserved-cpus", "reservedSystemCPUs", FLAG_VALUE },
        { "root-dir", "rootDirectory", FLAG_VALUE },
        { "system-reserved", "systemReserved", FLAG_PAIRS },
        { "topology-manager-policy", "topologyManagerPolicy", FLAG_VALUE },
        { "topology-manager-policy-options", "topologyManagerPolicyOptions", FLAG_PAIRS },
};

/* ---- files ---- */

static json_t *file_json(const Plan *plan, const char *id) {
        const Action *a = plan_find(plan, id);
        json_t *json = a ? json_loads(a->file.content, 0, NULL) : NULL;
        return json ?: json_object();
}

/* RFC 7386: what is null goes, objects are merged, the rest replaces. */
static void merge_patch(json_t *target, json_t *patch) {
        const char *key;
        json_t *value;
        json_object_foreach(patch, key, value) {
                if (json_is_null(value)) {
                        json_object_del(target, key);
                        continue;
                }
                if (!json_is_object(value)) {
                        json_object_set(target, key, value);
                        continue;
                }
                if (!json_is_object(json_object_get(target, key)))
                        json_object_set_new(target, key, json_object());
                merge_patch(json_object_get(target, key), value);
        }
}

/* ---- flags ---- */

/* The flag that a word begins with; kubelet takes "_" for "-" in names. */
static const Flag *flag_find(const char *word) {
        if (!startswith(word, "--"))
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                const char *name = flags[i].name, *p = word + strlen("--");
                while (*name && (*p == *name || (*p == '_' && *name == '-'))) {
                        name++;
                        p++;
                }
                if (!*name && (!*p || *p == '='))
                        return &flags[i];
        }
        return NULL;
}

/* The first of them replaces what files say, the others add to it. */
static void add_pairs(json_t *map, const char *text, char between) {
        for (const char *s = text; *s; s += strspn(s, ",")) {
                size_t n = strcspn(s, ",");
                _cleanup_(freep) char *pair = xstrndup(s, n);
                char *at = strchr(pair, between);
                if (at)
                        *at++ = 0;
                _cleanup_(freep) char *key = str_strip(pair), *value = str_strip(at ?: "");
                if (n > 0)
                        json_set_text(map, key, value);
                s += n;
        }
}

static void merge_flags(json_t *settings, char *const *words) {
        bool given[ARRAY_SIZE(flags)] = {};
        for (char *const *w = words; w && *w; w++) {
                const Flag *f = flag_find(*w);
                const char *equals = strchr(*w, '=');
                if (!f)
                        continue;
                if (!equals && f->kind != FLAG_SWITCH && !*++w)
                        return;
                const char *text = equals ? equals + 1 : f->kind == FLAG_SWITCH ? "true" : *w;
                if (f->kind != FLAG_PAIRS && f->kind != FLAG_THRESHOLDS) {
                        json_set_text(settings, f->setting, text);
                        continue;
                }
                if (!given[f - flags])
                        json_object_set_new(settings, f->setting, json_object());
                given[f - flags] = true;
                add_pairs(json_object_get(settings, f->setting), text, (char)f->kind);
        }
}

static json_t *read_settings(const Plan *plan) {
        json_t *settings = file_json(plan, FILE_ID), *drop_in = file_json(plan, DROP_IN_ID);
        const Action *a = plan_find(plan, "write-file:" KUBELET_ENVIRONMENT);
        _cleanup_(freep) char *line =
                a ? assignment_in_environment(a->file.content, "NODEADM_KUBELET_ARGS") : NULL;
        _cleanup_(strv_freep) char **words = assignment_split(line ?: "");
        merge_patch(settings, drop_in);
        json_decref(drop_in);
        merge_flags(settings, words);
        return settings;
}

json_t *node_settings(const Plan *plan, const Host *host) {
        json_t *settings = read_settings(plan);
        /* kubelet before 1.26 asks EC2 for its name */
        if (!json_object_get(settings, "hostnameOverride"))
                json_set_text(settings, "hostnameOverride", host->instance.private_dns_name ?: "");
        return settings;
}

uint64_t node_setting_number(const json_t *settings, const char *name) {
        const json_t *value = json_object_get(settings, name);
        uint64_t n = 0;
        if (json_is_integer(value))
                return (uint64_t)MAX(json_integer_value(value), 0);
        return parse_u64(json_get_text(settings, name), &n) < 0 ? 0 : n;
}

int node_setting_flag(const json_t *settings, const char *name) {
        const json_t *value = json_object_get(settings, name);
        const char *text = json_get_text(settings, name);
        if (!value || json_is_null(value))
                return -1;
        return json_is_true(value) || streq(text, "true") || streq(text, "1") || streq(text, "t");
}

bool plan_kubelet_switch(const Plan *plan, const char *name, bool otherwise) {
        _cleanup_(json_decrefp) json_t *settings = read_settings(plan);
        int flag = node_setting_flag(settings, name);
        return flag < 0 ? otherwise : flag > 0;
}

unsigned cpu_list_count(const char *list) {
        unsigned n = 0;
        for (const char *s = list; *s;) {
                size_t size = strcspn(s, ",");
                _cleanup_(freep) char *range = xstrndup(s, size);
                char *dash = strchr(range, '-');
                uint64_t first, last;
                if (dash)
                        *dash = 0;
                if (parse_u64(range, &first) < 0 || parse_u64(dash ? dash + 1 : range, &last) < 0 ||
                    last < first || last > UINT16_MAX)
                        return 0;
                n += (unsigned)(last - first) + 1;
                s += size + (s[size] == ',');
        }
        return n;
}
