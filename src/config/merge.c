/* SPDX-License-Identifier: Apache-2.0
 * Document over document, in their order:
 *   1. maps merge, a later scalar wins, also false, 0 and "" (G1, G4); null and an empty map change nothing
 *   2. kubelet.flags go behind the earlier ones (G2)
 *   3. other lists are replaced, also by an empty one (G3)
 *   4. containerd.config merges as TOML (G5); the text of a single one is kept as it is. */
#include "config/containerd.h"
#include "config/fields.h"

#include "base/str.h"

#include <errno.h>

void merge_done(Merge *m) {
        json_decref(m->document);
        json_decref(m->toml);
        json_decref(m->toml_one);
        origins_done(&m->origins);
}

static bool is_empty_map(const json_t *value) {
        return json_is_object(value) && json_object_size(value) == 0;
}

/* Merges free-form maps, and maps whose types decode.c has checked. */
static void merge_deep(json_t *into, json_t *from) {
        const char *key;
        json_t *value;
        json_object_foreach(from, key, value) {
                json_t *old = json_object_get(into, key);
                if (json_is_object(old) && json_is_object(value))
                        merge_deep(old, value);
                else if (!old || !(is_empty_map(value) || json_is_null(value)))
                        json_object_set(into, key, value);
        }
}

static void merge_fields(const Field *fields, json_t *into, json_t *from) {
        for (const Field *f = fields; *f->key; f++) {
                json_t *value = json_object_get(from, f->key), *old = json_object_get(into, f->key);
                if (!value || f->flags & FIELD_TOML)
                        continue;
                if (old && f->type == FIELD_MAP)
                        merge_fields(f->fields, old, value);
                else if (old && f->flags & FIELD_APPEND)
                        json_array_extend(old, value);
                else if (json_is_object(old) && json_is_object(value))
                        merge_deep(old, value);
                else
                        json_object_set(into, f->key, value);
        }
}

/* Names the very line where the lines of the TOML are those of the source. Folded lines have become one. */
static void fail_toml(const Origins *origins, unsigned line, const char *why, Diag *diag) {
        const Position at = origins_toml(origins, line);
        _free_ char *within = origins->toml_block == '|' ? NULL : xasprintf("line %u of this text: ", line);
        diag_error_at(diag, -EINVAL, CAUSE_INVALID, &at, TOML_PATH, "is not TOML: %s%s%s", within ?: "", why,
                      origins->toml_block == '>'   ? "; YAML folds the lines after config: > into one"
                      : origins->toml_block == ' ' ? "; without config: |, YAML folds the lines into one"
                                                   : "");
        if (origins->toml_block && origins->toml_block != '|')
                diag_suggest(diag, "config: |");
}

/* Adds a position for each key of TOML whose lines are those of the source, spelt as in names. Paths repeat
 * the tables above them, so left bounds their bytes; later keys have the position of their table. */
static void add_lines(Origins *origins, const json_t *table, const json_t *names, const TomlLines *lines,
                      const Path *path, size_t *left) {
        void *named = json_object_iter((json_t *)names);
        const char *key;
        json_t *value;
        size_t i;
        json_object_foreach((json_t *)table, key, value) {
                const Path own = { path, json_object_iter_key(named), 0 };
                _free_ char *name = path_format(&own);
                size_t size = strlen(name) + sizeof(Position);
                if (*left < size)
                        return;
                *left -= size;
                origins_add(origins, name, origins_toml(origins, toml_line(lines, key)));
                add_lines(origins, value, json_object_iter_value(named), lines, &own, left);
                named = json_object_iter_next((json_t *)names, named);
        }
        json_array_foreach(table, i, value)
                add_lines(origins, value, json_array_get(names, i), lines, &(Path){ path, NULL, i }, left);
}

/* Parses each text at once, so that an error names its document. */
static void merge_toml(Merge *m, json_t *document, Origins *origins, Diag *diag) {
        json_t *containerd = json_object_get(json_object_get(document, "spec"), "containerd"),
               *text = json_object_get(containerd, "config");
        _cleanup_(json_decrefp) json_t *written = NULL, *toml = NULL, *one = NULL;
        _cleanup_(toml_lines_done) TomlLines lines = {};
        const char *why = NULL;
        unsigned line = 0;
        size_t left = DOC_MAX_BYTES;
        if (!text)
                return;
        if (toml_parse_lines(json_string_value(text), json_string_length(text), &written, &lines, &line,
                             &why) < 0) {
                fail_toml(origins, line, why ?: "syntax error", diag);
                origins_fail(origins, TOML_PATH);
                return;
        }
        toml = containerd_folded(written, false);
        one = containerd_folded(written, true);
        if (json_equal(one, toml))
                one = (json_decref(one), NULL);
        if (origins->toml_block == '|')
                add_lines(origins, written, toml, &lines, &containerd_config_path, &left);
        if (origins->toml_block == '|' && one)
                add_lines(origins, written, one, &lines, &containerd_config_path, &left);
        if (!m->toml || is_empty_map(m->toml)) {
                json_t *old = merge_find(m, "spec.containerd");
                if (!is_empty_map(toml) || !json_object_get(old, "config"))
                        json_object_set(old, "config", text);
                json_decref(m->toml);
                m->toml = TAKE_PTR(toml);
                json_decref(m->toml_one);
                m->toml_one = TAKE_PTR(one);
                m->origins.toml_block = origins->toml_block;
                m->origins.toml_line = origins->toml_line;
        } else if (!is_empty_map(toml)) {
                json_merge_deep(m->toml, toml);
                json_decref(m->toml_one);
                m->toml_one = NULL;     /* of several documents the text has the spelling of the table */
                m->toml_mixed = true;
                m->origins.toml_block = 0;
        }
}

void merge_add(Merge *m, json_t *document, Origins *origins, Diag *diag) {
        size_t flags = json_array_size(merge_find(m, "spec.kubelet.flags"));
        if (!m->document)
                m->document = json_object();
        /* A copy, as the merge changes maps in place, and YAML aliases may share them. */
        _cleanup_(json_decrefp) json_t *from = json_deep_copy(document);
        json_t *containerd = json_object_get(json_object_get(from, "spec"), "containerd");
        _cleanup_(json_decrefp) json_t *text = json_incref(json_object_get(containerd, "config"));
        json_object_del(containerd, "config");
        merge_fields(nodeconfig_fields, m->document, from);
        if (text)
                merge_toml(m, document, origins, diag);
        origins_move(&m->origins, origins, "spec.kubelet.flags", flags);
        json_decref(document);
}

void merge_finish(Merge *m, Diag *diag) {
        _free_ char *text = NULL;
        if (!m->toml_mixed)
                return;
        int r = toml_format(m->toml, &text);
        if (r >= 0) {
                json_object_set_new(merge_find(m, "spec.containerd"), "config", json_string(text));
                return;
        }
        diag_error_at(diag, r, r == -E2BIG ? CAUSE_LIMIT : CAUSE_INVALID,
                      origins_find(&m->origins, TOML_PATH), TOML_PATH, "cannot be written as TOML%s",
                      r == -E2BIG ? ": each table repeats the names of the tables above it, and the text "
                                    "becomes too long; shorten those names"
                                  : "");
        origins_fail(&m->origins, TOML_PATH);
}
