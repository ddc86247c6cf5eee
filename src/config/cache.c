/* SPDX-License-Identifier: Apache-2.0
 * The file of --config-cache: {"spec", "status"} as nodeadm writes it, for both tools to read. */
#include "config/fields.h"

#include "base/json.h"
#include "base/str.h"

#include <errno.h>

#define CACHE_LIMIT (4u << 20)          /* several unpacked documents */

int config_cache_read(const Root *root, const char *path, json_t **ret_spec, json_t **ret_status,
                      Diag *diag) {
        _free_ char *text = NULL;
        _cleanup_(json_decrefp) json_t *cache = NULL;
        size_t size = 0;
        int r = root_read(root, path, CACHE_LIMIT, &text, &size);
        if (r == -ENOENT)
                return r;
        if (r < 0) {
                diag_warn_at(diag, "config-cache", &(Position){ .source = path }, NULL,
                             "cannot be read and is not used: %s", strerror(-r));
                return r;
        }
        json_error_t error;
        cache = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
        json_t *spec = json_object_get(cache, "spec"), *status = json_object_get(cache, "status");
        if (!json_is_object(spec)) {
                unsigned line = cache || error.line < 1 ? 0 : (unsigned)error.line;
                diag_warn_at(diag, "config-cache", &(Position){ .source = path, .line = line }, NULL,
                             "is not a cached configuration and is not used");
                return -EBADMSG;
        }
        *ret_spec = json_incref(spec);
        *ret_status = json_is_object(status) ? json_incref(status) : NULL;
        return 0;
}

static json_t *text_without_empty(const Field *f, const char *text) {
        _free_ char *copy = xstrdup(text);
        char *to = copy;
        for (const char *p = text; *p; p++)
                if (f->bind != bind_authority || !strchr("\r\n", *p))
                        *to++ = *p;
        return to > copy ? json_stringn(copy, (size_t)(to - copy)) : NULL;
}

/* Go writes maps in the order of their keys. */
static json_t *sorted_copy(const json_t *value) {
        json_t *copy = json_is_object(value) ? json_object() : json_is_array(value) ? json_array()
                                                                                  : json_deep_copy(value);
        _free_ JsonMember *members = json_members(value, true);
        const json_t *item;
        size_t i;
        for (const JsonMember *m = members; m->key; m++)
                json_object_setn_new_nocheck(copy, m->key, m->size, sorted_copy(m->value));
        json_array_foreach(value, i, item)
                json_array_append_new(copy, sorted_copy(item));
        return copy;
}

static json_t *without_empty(const Field *f, const json_t *value);

/* In the order of the table, other keys last. */
static json_t *map_without_empty(const Field *fields, const json_t *map) {
        json_t *all = json_object(), *member;
        const char *key;
        for (const Field *f = fields; *f->key; f++) {
                member = json_object_get(map, f->key);
                json_object_set_new(all, f->key, member ? without_empty(f, member) : NULL);
        }
        json_object_foreach((json_t *)map, key, member)
                if (!fields_find(fields, key))
                        json_object_set(all, key, member);
        if (json_object_size(all) > 0)
                return all;
        json_decref(all);
        return NULL;
}

/* A copy without empty values, as omitempty of Go, or NULL. Free-form maps stay whole. */
static json_t *without_empty(const Field *f, const json_t *value) {
        if (f->type == FIELD_STRING && json_is_string(value))
                return text_without_empty(f, json_string_value(value));
        if (f->type == FIELD_MAP && json_is_object(value))
                return map_without_empty(f->fields, value);
        bool empty = (json_is_object(value) && json_object_size(value) == 0) ||
                (json_is_array(value) && json_array_size(value) == 0);
        return empty ? NULL : sorted_copy(value);
}

/* In the order of the structs of nodeadm, which also writes empty ones. Our keys come last. */
static json_t *spec_in_order(const json_t *spec) {
        static const struct { const char *path; bool is_struct; } order[] = {
                { "cluster", true }, { "containerd", true }, { "instance", true },
                { "instance/localStorage", true }, { "instance/environment", false },
                { "instance/network", true }, { "kubelet", true }, { "featureGates", false },
        };
        _cleanup_(json_decrefp) json_t *left = without_empty(fields_find(nodeconfig_fields, "spec"), spec);
        json_t *all = json_object();
        for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
                const char *slash = strchr(order[i].path, '/');
                json_t *from = slash ? json_object_get(left, "instance") : left;
                json_t *value = json_object_get(from, slash ? slash + 1 : order[i].path);
                if (streq(order[i].path, "instance"))
                        value = NULL;   /* its members follow */
                if (value || order[i].is_struct)
                        json_put(all, order[i].path, value ? json_incref(value) : json_object());
        }
        json_object_update_missing(json_object_get(all, "instance"), json_object_get(left, "instance"));
        json_object_update_missing(all, left);
        return all;
}

bool config_cache_matches(const json_t *spec, const json_t *cached) {
        const Field *f = fields_find(nodeconfig_fields, "spec");
        _cleanup_(json_decrefp) json_t *a = without_empty(f, spec), *b = without_empty(f, cached);
        if (!a || !b)
                return a == b;
        /* by text, as 1.0 comes back as 1 */
        _free_ char *x = json_text(a, 0, true), *y = json_text(b, 0, true);
        return streq(x, y);
}

int config_cache_write(const Root *root, const char *path, const Config *config, json_t *status, Diag *diag) {
        _cleanup_(json_decrefp) json_t *cache = json_object();
        json_object_set_new(cache, "metadata", json_object());
        json_object_set_new(cache, "spec", spec_in_order(json_object_get(config->document, "spec")));
        if (status)
                json_object_set(cache, "status", status);
        _free_ char *compact = json_text(cache, 0, false), *text = xasprintf("%s\n", compact);
        /* 0600, as environment variables may be secrets; our units keep it in /run */
        int r = startswith(path, "/run/") ? root_replace_volatile(root, path, text, strlen(text), 0600)
                                          : root_replace(root, path, text, strlen(text), 0600);
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s: cannot cache the configuration: %s", path,
                                  strerror(-r))
                     : 0;
}
