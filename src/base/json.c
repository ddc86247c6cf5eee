/* SPDX-License-Identifier: Apache-2.0
 * Texts and lists of them ⇄ json_t. */
#include "base/json.h"

const char *json_get_text(const json_t *object, const char *key) {
        return json_string_value(json_object_get(object, key)) ?: "";
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
