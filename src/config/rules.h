/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/config only: how rules of kubelet read its settings, and those of kubelet-resources.c. */
#include "base/json.h"
#include "base/str.h"
#include "config/fields.h"

/* The value, or otherwise where none of that type is set. A duration of 0 means "not set" to kubelet. */
static inline double seconds(const KubeletGiven *g, const char *key, double otherwise) {
        double n = 0;
        return kubelet_parse_duration(json_get_text(g->all, key), &n) && n != 0.0 ? n : otherwise;
}

static inline double number(const KubeletGiven *g, const char *key, double otherwise) {
        const json_t *value = json_object_get(g->all, key);
        return json_is_number(value) ? json_number_value(value) : otherwise;
}

static inline bool is_on(const KubeletGiven *g, const char *key, bool otherwise) {
        const json_t *value = json_object_get(g->all, key);
        return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static inline const char *text(const KubeletGiven *g, const char *key) {
        return json_get_text(g->all, key);
}

static inline const char *text_in(const KubeletGiven *g, const char *object, const char *key) {
        return json_get_text(json_object_get(g->all, object), key);
}

/* Is it kubelet 1.minor or later, or an earlier one? Both are false where the version is not known. */
static inline bool from(const KubeletGiven *g, unsigned minor) {
        return g->minor >= minor;
}

static inline bool until(const KubeletGiven *g, unsigned minor) {
        return g->minor > 0 && g->minor < minor;
}

static inline int gate(const KubeletGiven *g, const char *name) {
        return kubelet_gate_state(json_object_get(g->all, "featureGates"), name, g->minor);
}

static inline const char *needs_gate(const KubeletGiven *g, const char *name, bool used) {
        if (!used || gate(g, name) != 0)
                return NULL;
        return text_say(g->room,
                        "needs the feature gate %s, which is off: set featureGates {%s: true}, or leave this "
                        "out", name, name);
}

static inline int64_t quantity_in(const KubeletGiven *g, const char *map, const char *key) {
        int64_t n = 0;
        return quantity_parse(text_in(g, map, key), &n) >= 0 ? n : 0;
}

/* Each returns a message, or NULL. */
const char *enforcement_words(const KubeletGiven *g);
const char *enforcement_levels(const KubeletGiven *g);
const char *enforcement_cgroups(const KubeletGiven *g);
const char *reserved_cpus(const KubeletGiven *g);
const char *reserved_memory(const KubeletGiven *g);
const char *static_memory(const KubeletGiven *g);
const char *quantity_signs(const KubeletGiven *g);
const char *qos_reserved(const KubeletGiven *g);
const char *eviction_thresholds(const KubeletGiven *g);
const char *eviction_grace(const KubeletGiven *g);
const char *cpu_manager_options(const KubeletGiven *g);
const char *static_cpus(const KubeletGiven *g);
const char *topology_manager_options(const KubeletGiven *g);
