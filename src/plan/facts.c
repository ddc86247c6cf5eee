/* SPDX-License-Identifier: Apache-2.0 */
/* What several planners want: versions compared, and the JSON they build, settings by path, text with exact
 * numbers. */
#include "plan/plan.h"
#include "base/str.h"

bool version_at_least(const char *version, unsigned major, unsigned minor) {
        char *end = NULL;
        unsigned long a = version ? strtoul(version, &end, 10) : 0;
        if (!version || end == version || *end != '.')
                return false;
        unsigned long b = strtoul(end + 1, NULL, 10);
        return a > major || (a == major && b >= minor);
}

void json_put(json_t *object, const char *path, json_t *value) {
        _cleanup_(freep) char *rest = xstrdup(path);
        char *key = rest;
        for (char *slash; (slash = strchr(key, '/')); key = slash + 1) {
                *slash = 0;
                json_t *inner = json_object_get(object, key);
                if (!json_is_object(inner)) {
                        inner = json_object();
                        json_object_set_new(object, key, inner);
                }
                object = inner;
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

/* registry.headers and registry.configs.*.auth of containerd; headers of kubelet's static pod URL;
 * process.env of an OCI spec. */
static const char *const secret_keys[] = {
        "auth",    "password",      "identitytoken",      "token", "secret", "header",
        "headers", "authorization", "staticPodURLHeader", "env",
};

static bool is_secret_key(const char *key) {
        for (size_t i = 0; i < ARRAY_SIZE(secret_keys); i++)
                if (strcasecmp(key, secret_keys[i]) == 0)
                        return true;
        return false;
}

/* Depth is bounded by the decoders (DOC_MAX_DEPTH). */
bool json_holds_secret(const json_t *json) {
        const char *key;
        json_t *value;
        size_t i;
        json_object_foreach((json_t *)json, key, value)
                if ((is_secret_key(key) && !(streq(key, "authorization") && json_is_object(value))) ||
                    json_holds_secret(value))
                        return true;
        json_array_foreach(json, i, value)
                if (json_holds_secret(value))
                        return true;
        return false;
}
