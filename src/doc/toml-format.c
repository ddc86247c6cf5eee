/* SPDX-License-Identifier: Apache-2.0
 * JSON → TOML 1.0 (https://toml.io/en/v1.0.0) that parses to the same value, in the bytes of Marshal() of
 * github.com/pelletier/go-toml/v2, which nodeadm uses. That means keys sorted by bytes, literal strings where
 * possible, a header for each table. Tables come last, as a header ends the table above it. */
#include "doc/doc.h"

#include "base/json.h"

#include <errno.h>
#include <math.h>

/* A header repeats all names above it, so the text could grow with the square of the input. */
#define TOML_MAX_BYTES ((size_t)8 * DOC_MAX_BYTES)

typedef struct TomlText { Text text; bool header; } TomlText;       /* header: the last line is one */

/* Can [[x]] express it: an array of tables, not empty? */
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

static bool is_literal(const char *s, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (s[i] == '\'' || (unsigned char)s[i] < 0x20 || s[i] == 0x7f)
                        return false;
        return true;
}

static void format_string(Text *t, const char *s, size_t size) {
        static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
        bool literal = is_literal(s, size);
        text_add(t, literal ? "'" : "\"");
        for (size_t i = 0; i < size; i++) {
                const char *value = !literal && s[i] ? strchr(values, s[i]) : NULL;
                if (value)
                        text_add(t, "\\%c", names[value - values]);
                else if (!literal && ((unsigned char)s[i] < 0x20 || s[i] == 0x7f))
                        text_add(t, "\\u%04X", (unsigned)s[i]);
                else
                        text_add_bytes(t, s + i, 1);
        }
        text_add(t, literal ? "'" : "\"");
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

/* Without a point it would be an integer. */
static int add_real(Text *t, double value) {
        if (!isfinite(value))
                return -EINVAL;
        _free_ char *s = real_text(value, false);
        text_add(t, "%s%s", s, strchr(s, '.') ? "" : ".0");
        return 0;
}

static int format_value(Text *t, const json_t *value, unsigned depth);

static int add_inline_table(Text *t, const json_t *table, unsigned depth) {
        _free_ JsonMember *members = json_members(table, true);
        text_add(t, "{");
        for (const JsonMember *m = members; m->key; m++) {
                if (m != members)
                        text_add(t, ", ");
                add_key(t, m->key, m->size);
                text_add(t, " = ");
                int r = format_value(t, m->value, depth);
                if (r < 0)
                        return r;
        }
        text_add(t, "}");
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

/* depth: of the table or array around it, as the parser counts. */
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
        default:
                return -EINVAL;
        }
}

static int add_lines(TomlText *o, const JsonMember *members, unsigned depth) {
        for (const JsonMember *m = members; m->key; m++) {
                if (!fits_on_line(m->value))
                        continue;
                add_key(&o->text, m->key, m->size);
                text_add(&o->text, " = ");
                int r = format_value(&o->text, m->value, depth);
                if (r < 0)
                        return r;
                text_add(&o->text, "\n");
                o->header = false;
        }
        return 0;
}

static int add_table(TomlText *o, const Text *path, const json_t *table, unsigned depth);

static int add_headed(TomlText *o, const Text *path, const json_t *table, bool element, unsigned depth) {
        if (depth > DOC_MAX_DEPTH)
                return -EINVAL;
        if (o->text.size > TOML_MAX_BYTES)
                return -E2BIG;
        text_add(&o->text, element ? "%s[[%s]]\n" : "%s[%s]\n", o->text.size > 0 && !o->header ? "\n" : "",
                 path->data);
        o->header = true;
        return add_table(o, path, table, depth);
}

/* path: "" for the whole document. */
static int add_table(TomlText *o, const Text *path, const json_t *table, unsigned depth) {
        _free_ JsonMember *members = json_members(table, true);
        int r = add_lines(o, members, depth);
        for (const JsonMember *m = members; m->key && r >= 0; m++) {
                _cleanup_(text_done) Text inner = {};
                const json_t *element;
                size_t i;
                if (fits_on_line(m->value))
                        continue;
                text_add_bytes(&inner, path->data ?: "", path->size);
                text_add(&inner, "%s", path->size > 0 ? "." : "");
                add_key(&inner, m->key, m->size);
                if (json_is_object(m->value))
                        r = add_headed(o, &inner, m->value, false, depth + 1);
                json_array_foreach(m->value, i, element)
                        if (r >= 0)
                                r = add_headed(o, &inner, element, true, depth + 2);
        }
        return r;
}

int toml_format(const json_t *object, char **ret) {
        TomlText o = {};
        if (json_typeof(object) != JSON_OBJECT)
                return -EINVAL;
        int r = add_table(&o, &(Text){}, object, 1);
        if (r >= 0)
                *ret = text_take(&o.text);
        text_done(&o.text);
        return r;
}
