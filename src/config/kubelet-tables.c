/* SPDX-License-Identifier: Apache-2.0
 * The tables of kubelet settings and flags, and the check of one value. */
#include "config/kubelet.h"

#include "base/json.h"
#include "base/str.h"
#include "config/fields.h"

#include <limits.h>
#include <math.h>

static Table settings = { kubelet_known_settings, &kubelet_known_settings_size, NULL },
             flags = { kubelet_known_flags, &kubelet_known_flags_size, NULL };

bool kubelet_setting_next(const char **at, KubeletSetting *ret) {
        if (!*at)
                *at = table_text(&settings);
        if (!**at)
                return false;
        *ret = (KubeletSetting){ .type = **at, .since = two_digits(*at + 1) };
        ret->name = table_cell(at) + 3;
        ret->limits = table_cell(at);
        return true;
}

static bool flag_next(const char **at, KubeletFlag *ret) {
        if (!**at)
                return false;
        *ret = (KubeletFlag){ .deprecated = **at == 'd', .from = two_digits(*at + 1),
                              .until = two_digits(*at + 3) };
        ret->name = table_cell(at) + 5;
        ret->key = table_cell(at);
        return true;
}

bool kubelet_setting_find(const char *name, KubeletSetting *ret) {
        for (const char *at = NULL; kubelet_setting_next(&at, ret);)
                if (streq(ret->name, name))
                        return true;
        return false;
}

bool kubelet_flag_find(const char *flag, KubeletFlag *ret) {
        _free_ char *name = kubelet_flag_name(flag);
        for (const char *at = table_text(&flags); name && flag_next(&at, ret);)
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
        for (char *p = name; (p = strchr(p, '_'));)
                *p = '-';
        return name;
}

const char *kubelet_flag_nearest(const char *name) {
        Nearest near = { .text = name };
        KubeletFlag f;
        for (const char *at = table_text(&flags); flag_next(&at, &f);)
                nearest_try(&near, f.name);
        return near.best;
}

const char *kubelet_setting_nearest(const char *name) {
        Nearest near = { .text = name };
        KubeletSetting s;
        for (const char *at = NULL; kubelet_setting_next(&at, &s);)
                nearest_try(&near, s.name);
        return near.best;
}

bool kubelet_parse_duration(const char *s, double *ret) {
        static const char units[][4] = { "ns", "us", "\xc2\xb5s", "\xce\xbcs", "ms", "s", "m", "h" };
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
        return sum < 0x1p63 * 1e-9;     /* nanoseconds of 64 bits */
}

/* As json.Unmarshal of Go reads integers, 20.0 included. It refuses 1e2, which no user writes. */
static bool is_in_range(const json_t *value, const char *limits) {
        const char *colon = strchr(limits, ':');
        double n = json_number_value(value), low = colon && colon > limits ? strtod(limits, NULL) : INT_MIN,
               high = colon && colon[1] ? strtod(colon + 1, NULL) : INT_MAX;
        return n >= low && n <= high && !(json_is_real(value) && fabs(n) >= 0x1p63);
}

static bool is_quantity(const char *text, bool percent) {
        size_t n = strlen(text);
        int64_t ignored;
        return percent && n > 1 && text[n - 1] == '%' ? strspn(text, "0123456789.") == n - 1
                                                      : quantity_parse(text, &ignored) >= 0;
}

const char *kubelet_member_fault(const KubeletSetting *s, const char *key, const json_t *value) {
        if (json_is_null(value))
                return NULL;
        if (s->type == 'g')
                return json_is_boolean(value) ? NULL : "must be true or false, without quotes";
        if (!json_is_string(value))
                return "must be a string: put it in quotes";
        bool quantity = s->type == 'q';
        if (*s->limits && !word_is_among(key, s->limits))
                return quantity ? "is not one of the resources cpu, memory, ephemeral-storage and pid"
                                : "is not an eviction signal; memory.available is one";
        if ((!quantity && s->type != 'e') || is_quantity(json_string_value(value), !quantity))
                return NULL;
        return quantity ? "must be a quantity, such as 500m or 1Gi"
                        : "must be a quantity or a percentage, such as 100Mi or 5%";
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
        return text_say(room, " to %s", colon && colon[1] ? colon + 1 : "2147483647");
}

static const char *float_fault(const json_t *value, const char *limits) {
        double n = json_number_value(value);
        if (!json_is_number(value))
                return "must be a number, without quotes";
        return *limits && !(n > strtod(limits, NULL) && n <= strtod(strchr(limits, ':') + 1, NULL))
                       ? "must be above 0 and at most 1" : NULL;
}

static const char *duration_fault(const json_t *value, const char *limits, Text *room) {
        const char *colon = strchr(limits, ':');
        double n, low, high;
        if (!json_is_string(value) || !kubelet_parse_duration(json_string_value(value), &n))
                return "must be a duration with a unit, such as 10s or 1h30m";
        if (!colon)
                return NULL;
        _free_ char *least = xstrndup(limits, (size_t)(colon - limits));
        if (kubelet_parse_duration(least, &low) && n >= low &&
            (!kubelet_parse_duration(colon + 1, &high) || n <= high))
                return NULL;
        text_add(room, "must be at least %s", least);
        return colon[1] ? text_say(room, " and at most %s", colon + 1) : room->data;
}

const char *kubelet_value_fault(const KubeletSetting *s, const json_t *value, Text *room) {
        size_t i;
        json_t *item;
        int64_t n;
        switch (s->type) {
        case 's':
                if (!json_is_string(value))
                        return "must be a string: put it in quotes";
                return *s->limits && json_string_length(value) > 0
                               ? word_fault(json_string_value(value), s->limits, room) : NULL;
        case 'b':
                return json_is_boolean(value) ? NULL : "must be true or false, without quotes";
        case 'i':
                return integer_fault(value, s->limits, room);
        case 'f':
                return float_fault(value, s->limits);
        case 'd':
                return duration_fault(value, s->limits, room);
        case 'z':
                return json_is_string(value) && quantity_parse(json_string_value(value), &n) >= 0 &&
                                       n % 1000 == 0
                               ? NULL : "must be a quantity without a fraction, in quotes, such as \"50Mi\"";
        case 'l':
                if (!json_is_array(value))
                        return "must be a list of strings";
                json_array_foreach(value, i, item) {
                        if (!json_is_string(item))
                                return "must be a list of strings";
                        if (*s->limits && !word_is_among(json_string_value(item), s->limits)) {
                                text_add(room, "contains a value that ");
                                return word_fault(json_string_value(item), s->limits, room);
                        }
                }
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
