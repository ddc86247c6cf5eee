/* SPDX-License-Identifier: Apache-2.0
 * JSON → TOML 1.0 (https://toml.io/en/v1.0.0) that parses to the same value. In each table what fits on a
 * line comes first and tables come last: a header ends the table above it, so a key written behind it would
 * land in the wrong one. */
#include "doc/doc.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* A header repeats the names of all tables above it: a long one above many tables would grow with the square
 * of the input. */
#define TOML_MAX_BYTES ((size_t)8 * DOC_MAX_BYTES)

/* [[x]] can say this: an array of tables only, and at least one. */
static bool is_table_array(const json_t *value) {
        size_t n = json_array_size(value);
        for (size_t i = 0; i < n; i++)
                if (!json_is_object(json_array_get(value, i)))
                        return false;
        return n > 0;
}

static bool fits_on_line(const json_t *value) {
        return !json_is_object(value) && !is_table_array(value);
}

static void format_string(Text *t, const char *s, size_t size) {
        static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
        text_add(t, "\"");
        for (size_t i = 0; i < size; i++) {
                const char *value = s[i] ? strchr(values, s[i]) : NULL;
                if (value)
                        text_add(t, "\\%c", names[value - values]);
                else if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
                        text_add(t, "\\u%04X", (unsigned)s[i]);
                else
                        text_add_bytes(t, s + i, 1);
        }
        text_add(t, "\"");
}

static void add_key(Text *t, const char *key, size_t size) {
        size_t bare = 0;
        while (bare < size && key[bare] &&
               strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", key[bare]))
                bare++;
        if (size > 0 && bare == size)
                text_add_bytes(t, key, size);
        else
                format_string(t, key, size);
}

/* The shortest form that reads back as the same number; without a point or an exponent it would be an
 * integer. */
static int add_real(Text *t, double value) {
        if (!isfinite(value))
                return -EINVAL;
        for (int precision = 15;; precision++) {
                _cleanup_(freep) char *s = xasprintf("%.*g", precision, value);
                if (precision < 17 && strtod(s, NULL) != value)
                        continue;
                text_add(t, "%s%s", s, strpbrk(s, ".e") ? "" : ".0");
                return 0;
        }
}

static int format_value(Text *t, const json_t *value, unsigned depth);

static int add_inline_table(Text *t, const json_t *table, unsigned depth) {
        const char *key, *separator = "";
        size_t size;
        json_t *value;
        text_add(t, "{");
        json_object_keylen_foreach((json_t *)table, key, size, value) {
                text_add(t, "%s ", separator);
                add_key(t, key, size);
                text_add(t, " = ");
                int r = format_value(t, value, depth);
                if (r < 0)
                        return r;
                separator = ",";
        }
        text_add(t, " }");
        return 0;
}

static int format_array(Text *t, const json_t *array, unsigned depth) {
        size_t i;
        json_t *value;
        text_add(t, "[");
        json_array_foreach(array, i, value) {
                if (i > 0)
                        text_add(t, ", ");
                int r = format_value(t, value, depth);
                if (r < 0)
                        return r;
        }
        text_add(t, "]");
        return 0;
}

/* depth is that of what holds the value, as the parser counts it. */
static int format_value(Text *t, const json_t *value, unsigned depth) {
        switch (json_typeof(value)) {
        case JSON_STRING:
                format_string(t, json_string_value(value), json_string_length(value));
                return 0;
        case JSON_INTEGER:
                text_add(t, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                return 0;
        case JSON_REAL:
                return add_real(t, json_real_value(value));
        case JSON_TRUE:
        case JSON_FALSE:
                text_add(t, json_is_true(value) ? "true" : "false");
                return 0;
        case JSON_OBJECT:
                return depth < DOC_MAX_DEPTH ? add_inline_table(t, value, depth + 1) : -EINVAL;
        case JSON_ARRAY:
                return depth < DOC_MAX_DEPTH ? format_array(t, value, depth + 1) : -EINVAL;
        case JSON_NULL:
        default:
                return -EINVAL;
        }
}

static int add_lines(Text *t, const json_t *table, unsigned depth) {
        const char *key;
        size_t size;
        json_t *value;
        json_object_keylen_foreach((json_t *)table, key, size, value) {
                if (!fits_on_line(value))
                        continue;
                add_key(t, key, size);
                text_add(t, " = ");
                int r = format_value(t, value, depth);
                if (r < 0)
                        return r;
                text_add(t, "\n");
        }
        return 0;
}

/* A header is left out where those of the tables below imply it. */
static bool needs_header(const json_t *table) {
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)table, key, value)
                if (fits_on_line(value))
                        return true;
        return json_object_size(table) == 0;
}

static int add_tables(Text *t, const char *prefix, const json_t *table, unsigned depth);

static int add_table(Text *t, const char *path, const json_t *table, bool element, unsigned depth) {
        if (depth > DOC_MAX_DEPTH)
                return -EINVAL;
        if (t->size > TOML_MAX_BYTES)
                return -E2BIG;
        if (element || needs_header(table))
                text_add(t, element ? "%s[[%s]]\n" : "%s[%s]\n", t->size > 0 ? "\n" : "", path);
        int r = add_lines(t, table, depth);
        return r < 0 ? r : add_tables(t, path, table, depth);
}

/* The tables, which add_lines() leaves out. */
static int add_tables(Text *t, const char *prefix, const json_t *table, unsigned depth) {
        const char *key;
        size_t size, i;
        json_t *value, *element;
        int r = 0;

        json_object_keylen_foreach((json_t *)table, key, size, value) {
                _cleanup_(text_done) Text path = {};
                if (fits_on_line(value))
                        continue;
                text_add(&path, "%s%s", prefix, *prefix ? "." : "");
                add_key(&path, key, size);
                if (json_is_object(value))
                        r = add_table(t, path.data, value, false, depth + 1);
                json_array_foreach(value, i, element)
                        if (r >= 0)
                                r = add_table(t, path.data, element, true, depth + 2);
                if (r < 0)
                        return r;
        }
        return 0;
}

int toml_format(const json_t *object, char **ret) {
        _cleanup_(text_done) Text t = {};
        if (json_typeof(object) != JSON_OBJECT)
                return -EINVAL;
        int r = add_lines(&t, object, 1);
        if (r >= 0)
                r = add_tables(&t, "", object, 1);
        if (r >= 0)
                *ret = text_take(&t);
        return r;
}
