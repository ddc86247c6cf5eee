/* SPDX-License-Identifier: Apache-2.0
 * Two JSON objects → one (tests/userdata/README.md, G5). */
#include "doc/doc.h"

void json_merge_deep(json_t *into, const json_t *from) {
        const char *key;
        size_t size;
        json_t *value;
        json_object_keylen_foreach((json_t *)from, key, size, value) {
                json_t *old = json_object_getn(into, key, size);
                if (json_is_object(old) && json_is_object(value))
                        json_merge_deep(old, value);
                else    /* a copy: a later merge into the result must not change `from` */
                        json_object_setn_new_nocheck(into, key, size, json_deep_copy(value));
        }
}

void json_merge_patch(json_t *into, const json_t *patch) {
        const char *key;
        size_t size;
        json_t *value;
        json_object_keylen_foreach((json_t *)patch, key, size, value) {
                bool object = json_is_object(value);
                if (json_is_null(value))
                        json_object_del(into, key);
                else if (!object || !json_is_object(json_object_getn(into, key, size)))
                        json_object_setn_new_nocheck(into, key, size,
                                                     object ? json_object() : json_deep_copy(value));
                if (object)
                        json_merge_patch(json_object_getn(into, key, size), value);
        }
}
