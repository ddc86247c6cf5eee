/* SPDX-License-Identifier: Apache-2.0
 * The file of --config-cache: {"spec", "status"} as nodeadm writes it, so that either tool reads what the
 * other left behind. */
#include "config/fields.h"

#include "base/str.h"

#include <errno.h>

#define CACHE_LIMIT (4u << 20)          /* of unpacked documents there may be several */

int config_cache_read(const Root *root, const char *path, json_t **ret_spec, json_t **ret_status,
                      Diag *diag) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(json_decrefp) json_t *cache = NULL;
        size_t size = 0;
        int r = root_read(root, path, CACHE_LIMIT, &text, &size);

        if (r == -ENOENT)
                return r;
        if (r < 0) {
                diag_warn_at(diag, "config-cache", &(Position){ path, 0, 0 }, NULL,
                             "cannot be read and is not used: %s", strerror(-r));
                return r;
        }
        json_error_t error;
        cache = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
        json_t *spec = json_object_get(cache, "spec"), *status = json_object_get(cache, "status");
        if (!json_is_object(spec)) {
                unsigned line = cache || error.line < 1 ? 0 : (unsigned)error.line;
                diag_warn_at(diag, "config-cache", &(Position){ path, 0, line }, NULL,
                             "is no cached configuration and is not used");
                return -EBADMSG;
        }
        *ret_spec = json_incref(spec);
        *ret_status = json_is_object(status) ? json_incref(status) : NULL;
        return 0;
}

static json_t *text_without_empty(const Field *f, const char *text) {
        _cleanup_(text_done) Text t = {};
        for (const char *p = text; *p; p++)
                if (f->bind != bind_authority || !strchr("\r\n", *p))
                        text_add_bytes(&t, p, 1);
        return t.size > 0 ? json_stringn(t.data, t.size) : NULL;
}

/* A copy without what is empty, as Go's omitempty leaves it out; NULL when nothing remains. Free-form maps,
 * which kubelet or containerd reads, stay whole. */
static json_t *without_empty(const Field *f, const json_t *value) {
        const char *key;
        json_t *member;

        if (f->type == FIELD_STRING && json_is_string(value))
                return text_without_empty(f, json_string_value(value));
        if (f->type != FIELD_MAP || !json_is_object(value))
                return (json_is_object(value) && json_object_size(value) == 0) ||
                                       (json_is_array(value) && json_array_size(value) == 0)
                               ? NULL
                               : json_deep_copy(value);
        _cleanup_(json_decrefp) json_t *all = json_object();
        json_object_foreach((json_t *)value, key, member) {
                const Field *row = fields_find(f->fields, key);
                json_t *kept = row ? without_empty(row, member) : json_incref(member);
                if (kept)
                        json_object_set_new(all, key, kept);
        }
        return json_object_size(all) > 0 ? TAKE_PTR(all) : NULL;
}

bool config_cache_matches(const json_t *spec, const json_t *cached) {
        const Field *f = fields_find(nodeconfig_fields, "spec");
        _cleanup_(json_decrefp) json_t *a = without_empty(f, spec), *b = without_empty(f, cached);
        return a == b || json_equal(a, b);
}

int config_cache_write(const Root *root, const char *path, const Config *config, json_t *status, Diag *diag) {
        _cleanup_(json_decrefp) json_t *cache = json_object();
        json_t *spec = json_object_get(config->document, "spec");

        if (spec)
                json_object_set(cache, "spec", spec);
        if (status)
                json_object_set(cache, "status", status);
        _cleanup_(freep) char *text = json_dumps(cache, JSON_COMPACT);
        /* The environment in it may hold secrets. The units keep it in /run. */
        int r = startswith(path, "/run/") ? root_replace_volatile(root, path, text, strlen(text), 0600)
                                          : root_replace(root, path, text, strlen(text), 0600);
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s: the configuration cannot be cached: %s", path,
                                  strerror(-r))
                     : 0;
}
