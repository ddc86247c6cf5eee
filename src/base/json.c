/* SPDX-License-Identifier: Apache-2.0
 * Texts and lists of them ⇄ json_t; values set by path. */
#include "base/json.h"

#include "base/str.h"

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
        _cleanup_(freep) char *rest = xstrdup(path);
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

/* jansson writes 0.9 as 0.90000000000000002; 15 digits are prettier, and kept where they mean the same
 * number. */
char *json_text(const json_t *json) {
        size_t flags = JSON_INDENT(4) | JSON_ENCODE_ANY;
        char *text = json_dumps(json, flags | JSON_REAL_PRECISION(15));
        json_t *again = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!json_equal(again, json)) {
                free(text);
                text = json_dumps(json, flags | JSON_REAL_PRECISION(17));
        }
        json_decref(again);
        char *line = xasprintf("%s\n", text);
        free(text);
        return line;
}
