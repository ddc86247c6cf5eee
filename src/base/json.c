/* SPDX-License-Identifier: Apache-2.0
 * Texts and lists ⇄ json_t; json_t → the text of Go encoding/json
 * (https://pkg.go.dev/encoding/json#Marshal), for files of nodeadm. */
#include "base/json.h"

#include "base/str.h"

#include <math.h>

const char *json_get_text(const json_t *object, const char *key) {
        return json_string_value(json_object_get(object, key)) ?: "";
}

char *json_copy_text(const json_t *object, const char *key) {
        const char *text = json_get_text(object, key);
        return *text ? xstrdup(text) : NULL;
}

void json_set_text(json_t *object, const char *key, const char *text) {
        if (text)
                json_object_set_new(object, key, json_string(text));
}

void json_set_list(json_t *object, const char *key, char *const *texts) {
        if (texts)
                json_object_set_new(object, key, json_list(texts));
}

json_t *json_list(char *const *texts) {
        json_t *list = json_array();
        for (; texts && *texts; texts++)
                json_array_append_new(list, json_string(*texts));
        return list;
}

void json_put(json_t *object, const char *path, json_t *value) {
        _free_ char *rest = xstrdup(path);
        char *key = rest;
        for (char *slash = strchr(key, '/'); slash; slash = strchr(key, '/')) {
                *slash = 0;
                json_t *inner = json_object_get(object, key);
                if (!json_is_object(inner)) {
                        inner = json_object();
                        json_object_set_new(object, key, inner);
                }
                object = inner;
                key = slash + 1;
        }
        json_object_set_new(object, key, value);
}

static int compare_members(const void *a, const void *b) {
        const JsonMember *x = a, *y = b;
        int r = memcmp(x->key, y->key, MIN(x->size, y->size));
        return r != 0 ? r : (x->size > y->size) - (x->size < y->size);
}

JsonMember *json_members(const json_t *object, bool sorted) {
        JsonMember *all = xcalloc(json_object_size(object) + 1, sizeof *all);
        size_t n = 0, size;
        const char *key;
        json_t *value;
        json_object_keylen_foreach((json_t *)object, key, size, value)
                all[n++] = (JsonMember){ .key = key, .size = size, .value = value };
        if (sorted && n > 1)
                qsort(all, n, sizeof *all, compare_members);
        return all;
}

/* "-1.25e+03" → "-1250". */
static char *plain_real(const char *scientific) {
        Text t = {};
        const char *p = scientific + (*scientific == '-'), *mark = strchr(p, 'e');
        long point = strtol(mark + 1, NULL, 10) + 1;
        if (p != scientific)
                text_add(&t, "-");
        if (point <= 0)
                text_add(&t, "0.");
        for (; point < 0; point++)
                text_add(&t, "0");
        for (; p < mark; p++) {
                if (*p == '.')
                        continue;
                text_add(&t, "%c", *p);
                if (--point == 0 && p + 1 < mark)
                        text_add(&t, ".");
        }
        for (; point > 0; point--)
                text_add(&t, "0");
        return text_take(&t);
}

char *real_text(double value, bool exponents) {
        _free_ char *text = xasprintf("%.0e", value);
        for (int precision = 1; precision < 17 && strtod(text, NULL) != value; precision++) {
                free(text);
                text = xasprintf("%.*e", precision, value);
        }
        double size = fabs(value);
        if (!exponents || size == 0 || (size >= 1e-6 && size < 1e21))
                return plain_real(text);
        char *digits = strchr(text, 'e') + 2;
        if (*digits == '0')
                memmove(digits, digits + 1, strlen(digits));
        return TAKE_PTR(text);
}

static void add_string(Text *t, const char *s, size_t size) {
        static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
        text_add(t, "\"");
        for (size_t i = 0; i < size; i++) {
                const char *value = s[i] ? strchr(values, s[i]) : NULL;
                if (value)
                        text_add(t, "\\%c", names[value - values]);
                else if ((unsigned char)s[i] < 0x20 || strchr("<>&", s[i]))
                        text_add(t, "\\u%04x", (unsigned)s[i]);
                else if (startswith(s + i, "\u2028") || startswith(s + i, "\u2029")) {
                        text_add(t, "\\u202%c", s[i + 2] == '\xa8' ? '8' : '9');
                        i += 2;
                } else
                        text_add_bytes(t, s + i, 1);
        }
        text_add(t, "\"");
}

typedef struct Layout { unsigned indent, level; bool sorted; } Layout;

static void add_json(Text *t, const json_t *json, Layout at);

static void add_line(Text *t, Layout at) {
        if (at.indent > 0)
                text_add(t, "\n%*s", (int)(at.indent * at.level), "");
}

static void add_container(Text *t, const json_t *json, Layout at) {
        bool is_object = json_is_object(json);
        size_t n = is_object ? json_object_size(json) : json_array_size(json);
        _free_ JsonMember *members = is_object ? json_members(json, at.sorted) : NULL;
        Layout inner = { .indent = at.indent, .level = at.level + 1, .sorted = at.sorted };
        text_add(t, is_object ? "{" : "[");
        for (size_t i = 0; i < n; i++) {
                add_line(t, inner);
                if (is_object) {
                        add_string(t, members[i].key, members[i].size);
                        text_add(t, at.indent > 0 ? ": " : ":");
                }
                add_json(t, is_object ? members[i].value : json_array_get(json, i), inner);
                text_add(t, i + 1 < n ? "," : "");
        }
        if (n > 0)
                add_line(t, at);
        text_add(t, is_object ? "}" : "]");
}

static void add_json(Text *t, const json_t *json, Layout at) {
        switch (json_typeof(json)) {
        case JSON_OBJECT:
        case JSON_ARRAY:
                add_container(t, json, at);
                return;
        case JSON_STRING:
                add_string(t, json_string_value(json), json_string_length(json));
                return;
        case JSON_INTEGER:
                text_add(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
                return;
        case JSON_REAL: {
                _free_ char *real = real_text(json_real_value(json), true);
                text_add(t, "%s", real);
                return;
        }
        case JSON_TRUE:
        case JSON_FALSE:
                text_add(t, json_is_true(json) ? "true" : "false");
                return;
        case JSON_NULL:
        default:
                text_add(t, "null");
        }
}

char *json_text(const json_t *json, unsigned indent, bool sorted) {
        Text t = {};
        add_json(&t, json, (Layout){ .indent = indent, .sorted = sorted });
        return text_take(&t);
}
