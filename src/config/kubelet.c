/* SPDX-License-Identifier: Apache-2.0
 * spec.kubelet.config as kubelet reads it. A wrong type, or a value that kubelet refuses by itself, is an
 * error, since kubelet would not start. A quoted number is a warning, as nodeadm takes it. So is an unknown
 * key, as a newer kubelet may know it. kubelet 1.37 merges its drop-ins as JSON and ignores their unknown
 * keys. */
#include "config/kubelet.h"

#include "base/json.h"
#include "base/str.h"
#include "config/fields.h"

#define CONFIG "spec.kubelet.config"

/* An older kubelet ignores a key that is new since 1.N. */
static bool fail(const Merge *m, Diag *diag, const char *path, const char *fault) {
        const char *name = startswith(path, CONFIG ".") ? path + strlen(CONFIG ".") : "";
        _free_ char *key = xstrndup(name, strcspn(name, ".["));
        KubeletSetting s = {};
        if (kubelet_setting_find(key, &s) && s.since > 0) {
                merge_warn(m, diag, "kubelet-setting", path,
                           "%s; as it is, kubelet 1.%u and newer would not start", fault, s.since);
                return true;
        }
        _free_ char *text = xasprintf("%s; as it is, kubelet would not start", fault);
        config_report(m, diag, path, text);
        return false;
}

/* Reads the merged document, or (merge NULL) all settings that kubelet gets. */
typedef struct Reading {
        const Merge *merge; Diag *diag;
        const KubeletGiven *given; KubeletTell *tell; void *context;
} Reading;
static bool report(const Reading *r, const char *path, const char *fault) {
        if (r->merge)
                return fail(r->merge, r->diag, path, fault);
        const char *name = path + strlen(CONFIG ".");
        _free_ char *key = xstrndup(name, strcspn(name, ".[")),
                    *at = kubelet_setting_path(r->given->user, r->given->flags, key);
        r->tell(r->context, at && startswith(at, CONFIG) ? path : at, fault);
        return false;
}

static bool read_setting(const Reading *r, const KubeletSetting *s, const json_t *value, const char *path) {
        _cleanup_(text_done) Text room = {};
        const char *fault = kubelet_value_fault(s, value, &room), *key,
                   *text = json_string_value(value) ?: "";
        bool good = true;
        json_t *member;
        /* nodeadm takes it (T5 of tests/userdata/README.md), so it is not an error */
        if (r->merge && s->type == 'i' && *text && !text[strspn(text, "0123456789")]) {
                merge_warn(r->merge, r->diag, "kubelet-setting", path,
                           "is a number in quotes: kubelet would not start; remove the quotes");
                return true;
        }
        if (fault)
                return report(r, path, fault);
        json_object_foreach((json_t *)value, key, member) {
                fault = strchr("mgqe", s->type) ? kubelet_member_fault(s, key, member) : NULL;
                _free_ char *name = fault ? xasprintf("%s[%s]", path, key) : NULL;
                good = !fault ? good : report(r, name, fault);
        }
        return good;
}

/* rest: the part of the row name that leads on from value. */
static bool read_below(const Reading *r, const KubeletSetting *s, const char *rest, const json_t *value,
                       const Path *path) {
        bool good = true;
        json_t *item;
        size_t i;
        if (!value || json_is_null(value))
                return true;
        if (!*rest) {
                _free_ char *name = path_format(path);
                return read_setting(r, s, value, name);
        }
        if (startswith(rest, "[]")) {
                json_array_foreach(value, i, item)
                        good = read_below(r, s, rest + 2, item, &(Path){ path, NULL, i }) && good;
                return good;
        }
        rest += *rest == '.';
        _free_ char *key = xstrndup(rest, strcspn(rest, ".["));
        return read_below(r, s, rest + strlen(key), json_object_get(value, key), &(Path){ path, key, 0 });
}

static bool read_settings(const Reading *r, const json_t *config, unsigned minor) {
        KubeletSetting s;
        bool good = true;
        for (const char *at = NULL; kubelet_setting_next(&at, &s);)
                if (minor == 0 || minor >= s.since)
                        good = read_below(r, &s, s.name, config, &kubelet_config_path) && good;
        return good;
}

bool kubelet_judge(const KubeletGiven *g, KubeletTell *tell, void *context) {
        Reading r = { .given = g, .tell = tell, .context = context };
        bool good = read_settings(&r, g->all, g->minor);
        return kubelet_judge_together(g, tell, context) && good;
}

typedef struct Judgement { const Merge *merge; Diag *diag; bool good; } Judgement;

static void tell(void *context, const char *path, const char *fault) {
        Judgement *j = context;
        j->good = fail(j->merge, j->diag, path ?: CONFIG, fault) && j->good;
}

/* The settings of the user alone, on an unknown machine and kubelet. */
static bool validate_together(const Merge *m, const json_t *config, Diag *diag) {
        _cleanup_(json_decrefp) json_t *all = config ? json_deep_copy(config) : json_object();
        _strv_ char **flags = merge_flags(m), **words = kubelet_words(flags);
        kubelet_flags_merge(all, words);
        KubeletGiven given = { .all = all, .user = config, .flags = flags, .whole = !m->partial };
        Judgement j = { m, diag, true };
        (void)!kubelet_judge_together(&given, tell, &j);
        return j.good;
}

bool kubelet_validate(const Merge *m, Diag *diag) {
        const json_t *config = merge_find(m, "spec.kubelet.config");
        bool good = read_settings(&(Reading){ .merge = m, .diag = diag }, config, 0);
        good = validate_together(m, config, diag) && good;
        good = gates_validate(m, diag) && good;
        return kubelet_validate_flags(m, diag) && good;
}

static void warn_of_keys(const Merge *m, Diag *diag) {
        const char *key;
        json_t *unused;
        KubeletSetting s;
        json_object_foreach(merge_find(m, "spec.kubelet.config"), key, unused) {
                if (kubelet_setting_find(key, &s) || streq(key, "maxPodsExpression"))
                        continue;
                _free_ char *path = path_format(&(Path){ &kubelet_config_path, key, 0 });
                merge_warn(m, diag, "kubelet-setting", path,
                           "is not a key of KubeletConfiguration in Kubernetes 1.%d to 1.%d",
                           KUBELET_TABLES_FROM, KUBELET_TABLES_TO);
                diag_suggest_name(diag, "", kubelet_setting_nearest(key));
        }
}

#define UNLESS_A_FLAG ": kubelet does not start, unless a flag replaces this"

/* pkg/kubelet/eviction/helpers.go:ParseThresholdConfig, memory_manager.go:validateReservedMemory. Only
 * warnings, as a flag may replace each of them. */
static void warn_of_settings(const Merge *m, Diag *diag) {
        const json_t *config = merge_find(m, "spec.kubelet.config"),
                     *grace = json_object_get(config, "evictionSoftGracePeriod");
        const char *signal;
        json_t *item;
        size_t i;
        json_array_foreach(json_object_get(config, "registerWithTaints"), i, item) {
                _free_ char *path = xasprintf(CONFIG ".registerWithTaints[%zu]", i);
                if (!*json_get_text(item, "effect"))
                        merge_warn(m, diag, "kubelet-setting", path,
                                   "lacks an effect, and the API server refuses such a node: add "
                                   "NoSchedule, PreferNoSchedule or NoExecute");
        }
        json_object_foreach(json_object_get(config, "evictionSoft"), signal, item) {
                _free_ char *path = xasprintf(CONFIG ".evictionSoft[%s]", signal);
                if (!json_object_get(grace, signal))
                        merge_warn(m, diag, "kubelet-setting", path,
                                   "has no evictionSoftGracePeriod" UNLESS_A_FLAG);
        }
        if (streq(json_get_text(config, "memoryManagerPolicy"), "Static") && !m->partial &&
            json_array_size(json_object_get(config, "reservedMemory")) == 0 &&
            !kubelet_flags_set(m, "reservedMemory"))
                merge_warn(m, diag, "kubelet-setting", CONFIG ".memoryManagerPolicy",
                           "is Static without reservedMemory, which must equal the sum of all "
                           "reservations" UNLESS_A_FLAG);
}

static void warn_of_expression(const Merge *m, Diag *diag) {
        const char *path = "spec.kubelet.maxPodsExpression";
        if (json_string_length(merge_find(m, path)) > 0 &&
            (json_integer_value(merge_find(m, "spec.kubelet.config.maxPods")) > 0 ||
             kubelet_flags_set(m, "maxPods")))
                merge_warn(m, diag, "no-effect", path,
                           "has no effect, since maxPods is set, too");
}

void kubelet_warn(const Merge *m, Diag *diag) {
        warn_of_keys(m, diag);
        warn_of_expression(m, diag);
        warn_of_settings(m, diag);
        kubelet_warn_of_flags(m, diag);
        gates_warn(m, diag);
}
