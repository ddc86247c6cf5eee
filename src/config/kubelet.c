/* SPDX-License-Identifier: Apache-2.0
 * spec.kubelet.config as kubelet will read it, and the tables, those of flags too. A value of another type
 * than kubelet's, or one that it refuses by itself, ends kubelet at its start, and is refused here. Quoted
 * numbers are only warned about, for a document with one is valid to nodeadm, and what no kubelet of the
 * tables knows, since a newer one may. Read with kubelet 1.37: its drop-ins are merged as JSON, and unknown
 * keys of them passed over. */
#include "config/kubelet.h"

#include "base/json.h"
#include "base/quantity.h"
#include "base/str.h"
#include "config/fields.h"
#include "config/table.h"

#include <limits.h>
#include <math.h>

#define CONFIG "spec.kubelet.config"

/* ---- the tables ---- */

static const char *all_settings(void) {
        static Table table = { kubelet_known_settings, &kubelet_known_settings_size, NULL };
        return table_text(&table);
}

static const char *all_flags(void) {
        static Table table = { kubelet_known_flags, &kubelet_known_flags_size, NULL };
        return table_text(&table);
}

static unsigned two_digits(const char *s) {
        return (unsigned)(s[0] - '0') * 10 + (unsigned)(s[1] - '0');
}

/* The next row; false behind the last one. */
static bool setting_next(const char **at, KubeletSetting *ret) {
        if (!**at)
                return false;
        *ret = (KubeletSetting){ .type = **at, .since = two_digits(*at + 1), .name = *at + 3 };
        ret->limits = ret->name + strlen(ret->name) + 1;
        *at = ret->limits + strlen(ret->limits) + 1;
        return true;
}

static bool flag_next(const char **at, KubeletFlag *ret) {
        if (!**at)
                return false;
        *ret = (KubeletFlag){ .deprecated = **at == 'd', .from = two_digits(*at + 1),
                              .until = two_digits(*at + 3), .name = *at + 5 };
        ret->key = ret->name + strlen(ret->name) + 1;
        *at = ret->key + strlen(ret->key) + 1;
        return true;
}

bool kubelet_setting_find(const char *name, KubeletSetting *ret) {
        for (const char *at = all_settings(); setting_next(&at, ret);)
                if (streq(ret->name, name))
                        return true;
        return false;
}

bool kubelet_flag_find(const char *flag, KubeletFlag *ret) {
        _cleanup_(freep) char *name = kubelet_flag_name(flag);
        for (const char *at = all_flags(); name && flag_next(&at, ret);)
                if (streq(ret->name, name))
                        return true;
        return false;
}

char *kubelet_flag_name(const char *flag) {
        if (startswith(flag, "-v"))             /* the one short flag; its value may follow at once: -v2 */
                return xstrdup("v");
        if (!startswith(flag, "--"))
                return NULL;
        char *name = xstrndup(flag + 2, strcspn(flag + 2, "= \t"));
        for (char *p = name; *p; p++)
                if (*p == '_')
                        *p = '-';
        return name;
}

const char *kubelet_flag_nearest(const char *name) {
        _cleanup_(freep) const char **names = NULL;
        size_t n = 0;
        KubeletFlag f;
        for (const char *at = all_flags(); flag_next(&at, &f);) {
                names = xrealloc(names, n + 2, sizeof *names);
                names[n++] = f.name;
                names[n] = NULL;
        }
        return nearest_name(name, names);
}

static const char *setting_nearest(const char *name) {
        _cleanup_(freep) const char **names = NULL;
        size_t n = 0;
        KubeletSetting s;
        for (const char *at = all_settings(); setting_next(&at, &s);) {
                names = xrealloc(names, n + 2, sizeof *names);
                names[n++] = s.name;
                names[n] = NULL;
        }
        return nearest_name(name, names);
}

/* ---- values ---- */

/* A Go duration: "1h30m", "0.5s" (pkg.go.dev/time#ParseDuration), in seconds. */
bool kubelet_parse_duration(const char *s, double *ret) {
        static const char *const units[] = { "ns", "us", "\xc2\xb5s", "\xce\xbcs", "ms", "s", "m", "h" };
        static const double seconds[] = { 1e-9, 1e-6, 1e-6, 1e-6, 1e-3, 1, 60, 3600 };
        double sign = *s == '-' ? -1 : 1, sum = 0;
        s += *s == '+' || *s == '-';
        *ret = 0;
        if (streq(s, "0"))
                return true;
        do {
                double number = strtod(s, NULL);
                size_t digits = strspn(s, "0123456789"), fraction = 0, unit = 0, n;
                s += digits;
                if (*s == '.')
                        s += 1 + (fraction = strspn(s + 1, "0123456789"));
                for (n = 0; n < ARRAY_SIZE(units) && unit == 0; n++)
                        if (startswith(s, units[n]))
                                unit = strlen(units[n]);
                if (digits + fraction == 0 || unit == 0)
                        return false;
                sum += number * seconds[n - 1];
                s += unit;
        } while (*s);
        *ret = sign * sum;
        return true;
}

static bool is_among(const char *word, const char *list) {
        size_t length = strlen(word);
        for (; *list; list += *list == '|') {
                size_t n = strcspn(list, "|");
                if (n == length && strncmp(list, word, n) == 0)
                        return true;
                list += n;
        }
        return false;
}

/* What json.Unmarshal takes for a Go integer: 20 and 20.0 are, 1e2 is not, but nobody writes it. */
static bool is_in_range(const json_t *value, const char *limits) {
        const char *colon = strchr(limits, ':');
        double n = json_number_value(value), low = INT_MIN, high = INT_MAX;
        if (colon && colon > limits)
                low = strtod(limits, NULL);
        if (colon && colon[1])
                high = strtod(colon + 1, NULL);
        return n >= low && n <= high && !(json_is_real(value) && fabs(n) >= 0x1p63);
}

static bool is_quantity(const char *text, bool percent) {
        size_t n = strlen(text);
        int64_t ignored;
        if (percent && n > 1 && text[n - 1] == '%')
                return strspn(text, "0123456789.") == n - 1;
        return quantity_parse(text, &ignored) >= 0;
}

/* Of a map: what is wrong with one of its members, or NULL. */
static const char *member_fault(const KubeletSetting *s, const char *key, const json_t *value) {
        if (json_is_null(value))
                return NULL;
        if (s->type == 'g')
                return json_is_boolean(value) ? NULL : "must be true or false, without quotes";
        if (!json_is_string(value))
                return "must be text: put it in quotes";
        if (*s->limits && !is_among(key, s->limits))
                return s->type == 'q' ? "is no resource that can be reserved: cpu, memory, ephemeral-storage "
                                        "and pid can"
                                      : "is no eviction signal, such as memory.available";
        if ((s->type == 'q' || s->type == 'e') && !is_quantity(json_string_value(value), s->type == 'e'))
                return s->type == 'q' ? "must be a quantity, such as 500m or 1Gi"
                                      : "must be a quantity or a percentage, such as 100Mi or 5%";
        return NULL;
}

static const char *integer_fault(const json_t *value, const char *limits, Text *room) {
        const char *colon = strchr(limits, ':');
        double whole;
        if (!json_is_integer(value) && !(json_is_real(value) && modf(json_real_value(value), &whole) == 0.0))
                return "must be a whole number, without quotes";
        if (is_in_range(value, limits))
                return NULL;
        text_add(room, "must be from %.*s", colon && colon > limits ? (int)(colon - limits) : 11,
                 colon && colon > limits ? limits : "-2147483648");
        text_add(room, " to %s", colon && colon[1] ? colon + 1 : "2147483647");
        return room->data;
}

static const char *float_fault(const json_t *value, const char *limits) {
        double n = json_number_value(value);
        if (!json_is_number(value))
                return "must be a number, without quotes";
        return *limits && !(n > strtod(limits, NULL) && n <= strtod(strchr(limits, ':') + 1, NULL))
                       ? "is out of its range, which begins above 0 and ends with 1" : NULL;
}

static const char *duration_fault(const json_t *value, const char *limits, Text *room) {
        const char *colon = strchr(limits, ':');
        double n, low, high;
        if (!json_is_string(value) || !kubelet_parse_duration(json_string_value(value), &n))
                return "must be a duration with its unit, such as 10s or 1h30m";
        if (!colon)
                return NULL;
        _cleanup_(freep) char *least = xstrndup(limits, (size_t)(colon - limits));
        if (kubelet_parse_duration(least, &low) && n >= low &&
            (!kubelet_parse_duration(colon + 1, &high) || n <= high))
                return NULL;
        text_add(room, "must be at least %s", least);
        if (colon[1])
                text_add(room, " and at most %s", colon + 1);
        return room->data;
}

static const char *quantity_fault(const json_t *value) {
        int64_t n;
        return json_is_string(value) && quantity_parse(json_string_value(value), &n) >= 0 && n % 1000 == 0
                       ? NULL : "must be a whole quantity in quotes, such as 50Mi";
}

const char *kubelet_value_fault(const KubeletSetting *s, const json_t *value, Text *room) {
        size_t i;
        json_t *item;
        switch (s->type) {
        case 's':
                if (!json_is_string(value))
                        return "must be text: put it in quotes";
                if (!*s->limits || !json_string_length(value) ||
                    is_among(json_string_value(value), s->limits))
                        return NULL;
                text_add(room, "is not one of ");
                for (const char *p = s->limits; *p; p++)
                        if (*p == '|')
                                text_add(room, ", ");
                        else
                                text_add_bytes(room, p, 1);
                return room->data;
        case 'b':
                return json_is_boolean(value) ? NULL : "must be true or false, without quotes";
        case 'i':
                return integer_fault(value, s->limits, room);
        case 'f':
                return float_fault(value, s->limits);
        case 'd':
                return duration_fault(value, s->limits, room);
        case 'z':
                return quantity_fault(value);
        case 'l':
                if (!json_is_array(value))
                        return "must be a list of texts";
                json_array_foreach(value, i, item)
                        if (!json_is_string(item) ||
                            (*s->limits && !is_among(json_string_value(item), s->limits)))
                                return json_is_string(item) ? "holds a word that kubelet does not know"
                                                            : "must be a list of texts";
                return NULL;
        case 'a':
                json_array_foreach(value, i, item)
                        if (!json_is_object(item) && !streq(s->name, "tlsCurvePreferences"))
                                return "must be a list of maps";
                return json_is_array(value) ? NULL : "must be a list";
        default:
                return json_is_object(value) ? NULL : "must be a map";
        }
}

/* Valid to nodeadm (T5 of tests/userdata/README.md), so that it is told and not refused. */
static bool is_quoted_number(const KubeletSetting *s, const json_t *value) {
        const char *text = json_string_value(value);
        return s->type == 'i' && text && *text && strspn(text, "0123456789") == strlen(text);
}

static bool fail(const Merge *m, Diag *diag, const char *path, const char *fault) {
        _cleanup_(freep) char *text = xasprintf("%s; otherwise kubelet does not start", fault);
        config_report(m, diag, path, text);
        return false;
}

/* The values of one document, or (merge NULL) of all that kubelet is given. */
typedef struct Reading {
        const Merge *merge;
        Diag *diag;
        const KubeletGiven *given;
        KubeletTell *tell;
        void *context;
} Reading;

static bool report(const Reading *r, const char *path, const char *fault) {
        if (r->merge)
                return fail(r->merge, r->diag, path, fault);
        const char *name = path + strlen(CONFIG ".");
        _cleanup_(freep) char *key = xstrndup(name, strcspn(name, ".[")),
                              *at = kubelet_setting_path(r->given->user, r->given->flags, key);
        r->tell(r->context, at && startswith(at, CONFIG) ? path : at, fault);
        return false;
}

static bool read_setting(const Reading *r, const KubeletSetting *s, const json_t *value, const char *path) {
        _cleanup_(text_done) Text room = {};
        const char *fault = kubelet_value_fault(s, value, &room), *key;
        bool good = true;
        json_t *member;
        if (r->merge && is_quoted_number(s, value)) {
                diag_warn_at(r->diag, "kubelet-setting", origins_find(&r->merge->origins, path), path,
                             "is a number in quotes, which is text to kubelet: it does not start with it");
                return true;
        }
        if (fault)
                return report(r, path, fault);
        if (!strchr("mgqe", s->type))
                return true;
        json_object_foreach((json_t *)value, key, member) {
                fault = member_fault(s, key, member);
                if (!fault)
                        continue;
                _cleanup_(freep) char *name = xasprintf("%s[%s]", path, key);
                good = report(r, name, fault);
        }
        return good;
}

/* What a row of the table names, below value. */
static bool read_below(const Reading *r, const KubeletSetting *s, const char *rest, const json_t *value,
                       const Path *path) {
        bool good = true;
        json_t *item;
        size_t i;
        if (!value || json_is_null(value))
                return true;
        if (!*rest) {
                _cleanup_(freep) char *name = path_format(path);
                return read_setting(r, s, value, name);
        }
        if (startswith(rest, "[]")) {
                json_array_foreach(value, i, item)
                        good = read_below(r, s, rest + 2, item, &(Path){ path, NULL, i }) && good;
                return good;
        }
        rest += *rest == '.';
        _cleanup_(freep) char *key = xstrndup(rest, strcspn(rest, ".["));
        return read_below(r, s, rest + strlen(key), json_object_get(value, key), &(Path){ path, key, 0 });
}

static bool read_settings(const Reading *r, const json_t *config, unsigned minor) {
        const Path spec = { NULL, "spec", 0 }, kubelet = { &spec, "kubelet", 0 },
                   path = { &kubelet, "config", 0 };
        KubeletSetting s;
        bool good = true;
        for (const char *at = all_settings(); setting_next(&at, &s);)
                if (minor == 0 || minor >= s.since)
                        good = read_below(r, &s, s.name, config, &path) && good;
        return good;
}

bool kubelet_judge(const KubeletGiven *g, KubeletTell *tell, void *context) {
        Reading r = { .given = g, .tell = tell, .context = context };
        bool good = read_settings(&r, g->all, g->minor);
        return kubelet_judge_together(g, tell, context) && good;
}

/* ---- values beside one another ---- */

char *kubelet_setting_path(const json_t *config, char *const *flags, const char *key) {
        KubeletFlag f;
        for (size_t i = strv_length(flags); i-- > 0;) {
                _cleanup_(strv_freep) char **words = kubelet_words((char *[]){ flags[i], NULL });
                for (char **w = words; w && *w; w++)
                        if (kubelet_flag_find(*w, &f) && startswith(f.key, key) &&
                            strchr(".", f.key[strlen(key)]))    /* the key, or one below it */
                                return xasprintf("spec.kubelet.flags[%zu]", i);
        }
        return json_object_get(config, key) ? xasprintf(CONFIG ".%s", key) : NULL;
}

typedef struct Judgement { const Merge *merge; Diag *diag; } Judgement;

static void tell(void *context, const char *path, const char *fault) {
        const Judgement *j = context;
        fail(j->merge, j->diag, path ?: CONFIG, fault);
}

/* The user's own, of a machine and a kubelet that are not known. */
static bool validate_together(const Merge *m, const json_t *config, Diag *diag) {
        _cleanup_(json_decrefp) json_t *all = config ? json_deep_copy(config) : json_object();
        _cleanup_(strv_freep) char **flags = NULL;
        json_t *flag;
        size_t i;
        json_array_foreach(json_object_get(kubelet_options(m), "flags"), i, flag)
                strv_push(&flags, xstrdup(json_string_value(flag) ?: ""));
        _cleanup_(strv_freep) char **words = kubelet_words(flags);
        kubelet_flags_merge(all, words);
        KubeletGiven given = { .all = all, .user = config, .flags = flags, .whole = !m->partial };
        return kubelet_judge_together(&given, tell, &(Judgement){ m, diag });
}

const json_t *kubelet_options(const Merge *m) {
        return json_object_get(json_object_get(m->document, "spec"), "kubelet");
}

bool kubelet_validate(const Merge *m, Diag *diag) {
        const json_t *config = json_object_get(kubelet_options(m), "config");
        bool good = read_settings(&(Reading){ .merge = m, .diag = diag }, config, 0);
        good = validate_together(m, config, diag) && good;
        good = gates_validate(m, diag) && good;
        return kubelet_validate_flags(m, diag) && good;
}

/* ---- what is doubtful ---- */

static void warn_of_keys(const Merge *m, Diag *diag) {
        const char *key;
        json_t *unused;
        KubeletSetting s;
        json_object_foreach(json_object_get(kubelet_options(m), "config"), key, unused) {
                if (kubelet_setting_find(key, &s) || streq(key, "maxPodsExpression"))
                        continue;
                const Path spec = { NULL, "spec", 0 }, kubelet = { &spec, "kubelet", 0 },
                           config = { &kubelet, "config", 0 };
                _cleanup_(freep) char *path = path_format(&(Path){ &config, key, 0 });
                const char *near = setting_nearest(key);
                diag_warn_at(diag, "kubelet-setting", origins_find(&m->origins, path), path,
                             "is no key of KubeletConfiguration in Kubernetes 1.%d to 1.%d",
                             KUBELET_TABLES_FROM, KUBELET_TABLES_TO);
                if (near)
                        diag_suggest(diag, "%s", near);
        }
}

static void warn_of_setting(const Merge *m, const char *path, const char *fault, Diag *diag) {
        diag_warn_at(diag, "kubelet-setting", origins_find(&m->origins, path), path,
                     "%s: kubelet does not start with it, unless a flag replaces it", fault);
}

/* What kubelet ends at when it has containerd: pkg/kubelet/eviction/helpers.go:ParseThresholdConfig and
 * memory_manager.go:validateReservedMemory. A flag may replace each of them. */
static void warn_of_settings(const Merge *m, Diag *diag) {
        const json_t *config = json_object_get(kubelet_options(m), "config"),
                     *grace = json_object_get(config, "evictionSoftGracePeriod");
        const char *signal;
        json_t *item;
        size_t i;
        json_array_foreach(json_object_get(config, "registerWithTaints"), i, item) {
                _cleanup_(freep) char *path = xasprintf(CONFIG ".registerWithTaints[%zu]", i);
                if (!*json_get_text(item, "effect"))
                        diag_warn_at(diag, "kubelet-setting", origins_find(&m->origins, path), path,
                                     "has no effect, and the API server refuses a node with such a taint: "
                                     "NoSchedule, PreferNoSchedule or NoExecute");
        }
        json_object_foreach(json_object_get(config, "evictionSoft"), signal, item) {
                _cleanup_(freep) char *path = xasprintf(CONFIG ".evictionSoft[%s]", signal);
                if (!json_object_get(grace, signal))
                        warn_of_setting(m, path, "has no evictionSoftGracePeriod", diag);
        }
        if (streq(json_get_text(config, "memoryManagerPolicy"), "Static") && !m->partial &&
            json_array_size(json_object_get(config, "reservedMemory")) == 0 &&
            !kubelet_flags_set(m, "reservedMemory"))
                warn_of_setting(m, CONFIG ".memoryManagerPolicy",
                                "is Static without reservedMemory, which has to be what is kept from pods",
                                diag);
}

static void warn_of_expression(const Merge *m, Diag *diag) {
        const char *path = "spec.kubelet.maxPodsExpression";
        const json_t *options = kubelet_options(m);
        if (*json_get_text(options, "maxPodsExpression") &&
            (json_integer_value(json_object_get(json_object_get(options, "config"), "maxPods")) > 0 ||
             kubelet_flags_set(m, "maxPods")))
                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                             "has no effect, since the number of pods is set directly as well");
}

void kubelet_warn(const Merge *m, Diag *diag) {
        warn_of_keys(m, diag);
        warn_of_expression(m, diag);
        warn_of_settings(m, diag);
        kubelet_warn_of_flags(m, diag);
        gates_warn(m, diag);
}
