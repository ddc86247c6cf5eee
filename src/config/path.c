/* SPDX-License-Identifier: Apache-2.0
 * Paths in text form, and the source, part and line of each. These survive the merge, so that a rule that is
 * broken in the end still names the line that broke it. */
#include "config/fields.h"

#include "base/str.h"

static const Path spec = { NULL, "spec", 0 }, kubelet = { &spec, "kubelet", 0 },
                  containerd = { &spec, "containerd", 0 };
const Path kubelet_config_path = { &kubelet, "config", 0 },
           containerd_config_path = { &containerd, "config", 0 },
           runtime_spec_path = { &containerd, "baseRuntimeSpec", 0 };

/* The name of a registry table is a URL, which may hold a password. */
static void add_key(Text *t, const char *key) {
        size_t size;
        const char *user = name_user(key, &size), *rest = size > 0 ? user + size : key;
        if (size > 0) {
                text_add_shown(t, key, (size_t)(user - key), 80, 0);
                text_add(t, "(hidden)");
        }
        text_add_shown(t, rest, strlen(rest), 80, 0);
}

char *path_key(const char *key) {
        Text t = {};
        add_key(&t, key);
        return text_take(&t);
}

static void add_path(Text *t, const Path *p) {
        if (!p)
                return;
        add_path(t, p->up);
        if (!p->key) {
                text_add(t, "[%zu]", p->index);
                return;
        }
        text_add(t, "%s", t->size > 0 ? "." : "");
        add_key(t, p->key);
}

char *path_format(const Path *path) {
        Text t = {};
        add_path(&t, path);
        return text_take(&t);
}

char *text_quote(const char *text, size_t size) {
        Text t = {};
        text_add(&t, "\"");
        text_add_shown(&t, text, size, 40, '"');
        text_add(&t, "\"");
        return text_take(&t);
}

json_t *merge_find(const Merge *m, const char *path) {
        json_t *value = m->document;
        while (value && *path) {
                _free_ char *key = str_cut(&path, ".");
                value = json_object_get(value, key);
        }
        return value;
}

char **merge_flags(const Merge *m) {
        char **flags = NULL;
        json_t *flag;
        size_t i;
        json_array_foreach(merge_find(m, "spec.kubelet.flags"), i, flag)
                strv_push_at(&flags, i, xstrdup(json_string_value(flag) ?: ""));
        return flags;
}

void origins_done(Origins *o) {
        json_decref(o->lines);
        json_decref(o->failed);
        free(o->positions);
        *o = (Origins){};
}

void origins_add(Origins *o, const char *path, Position at) {
        if (!o->lines)
                o->lines = json_object();
        json_object_set_new(o->lines, path, json_integer((json_int_t)o->n));
        *APPEND(o->positions, o->n) = at;
}

const Position *origins_find(const Origins *o, const char *path) {
        _free_ char *p = xstrdup(path);
        const json_t *index = json_object_get(o->lines, p);
        for (size_t n = strlen(p); n > 0 && !index; n--)
                if (p[n - 1] == '.' || p[n - 1] == '[') {
                        p[n - 1] = 0;
                        index = json_object_get(o->lines, p);
                }
        return index ? &o->positions[json_integer_value(index)] : NULL;
}

Position origins_toml(const Origins *o, unsigned line) {
        const Position *found = origins_find(o, TOML_PATH);
        Position at = found ? *found : (Position){};
        if (line == 0 || o->toml_block != '|')
                return at;
        return (Position){ .source = at.source, .part = at.part, .line = o->toml_line + line };
}

void origins_fail(Origins *o, const char *path) {
        if (!o->failed)
                o->failed = json_object();
        json_object_set_new(o->failed, path, json_true());
}

static bool is_path_below(const char *path, const char *above) {
        size_t n = strlen(above);
        return strncmp(path, above, n) == 0 && (path[n] == 0 || path[n] == '.' || path[n] == '[');
}

bool origins_failed(const Origins *o, const char *path) {
        const char *failed;
        json_t *unused;
        json_object_foreach(o->failed, failed, unused)
                if (is_path_below(path, failed) || is_path_below(failed, path))
                        return true;
        return false;
}

void origins_move(Origins *to, Origins *from, const char *list_path, size_t shift) {
        size_t n = strlen(list_path);
        const char *path;
        json_t *index, *unused;
        json_object_foreach(from->lines, path, index) {
                const Position at = from->positions[json_integer_value(index)];
                if (shift > 0 && strncmp(path, list_path, n) == 0 && path[n] == '[') {
                        char *rest;
                        size_t item = strtoul(path + n + 1, &rest, 10);
                        _free_ char *moved = xasprintf("%s[%zu%s", list_path, item + shift, rest);
                        origins_add(to, moved, at);
                } else
                        origins_add(to, path, at);
        }
        json_object_foreach(from->failed, path, unused)
                origins_fail(to, path);
        origins_done(from);
}
