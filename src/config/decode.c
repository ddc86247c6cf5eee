/* SPDX-License-Identifier: Apache-2.0
 * The nodes of one document → JSON of the types that the table wants. A scalar keeps its source text where
 * the table wants text (T1 to T5 of tests/userdata/README.md). Null means absent. */
#include "config/fields.h"

#include "base/str.h"

#include <errno.h>

typedef struct Decoder { Position at; Origins *origins; Diag *diag; } Decoder;

static json_t *decode_value(Decoder *d, const Field *f, const Node *node, const Path *path);

static Position mark_position(const Decoder *d, Mark mark) {
        return (Position){ d->at.source, d->at.part, mark.line, mark.column };
}

static json_t *decode_fail(Decoder *d, const Node *node, const Path *path, const char *text) {
        Position at = mark_position(d, node->at);
        _free_ char *name = path_format(path);
        origins_fail(d->origins, name);
        diag_error_at(d->diag, -EINVAL, CAUSE_INVALID, &at, name, "%s", text);
        return NULL;
}

/* The value of a scalar without quotes, or NULL; a new reference. */
static json_t *plain_value(const Node *node) {
        json_t *value = NULL;
        return node->type == NODE_SCALAR && node->plain && yaml_resolve(node, &value) >= 0 ? value : NULL;
}

static json_t *fail_type(Decoder *d, const Node *node, const Path *path, const char *wanted) {
        _cleanup_(json_decrefp) json_t *value = plain_value(node);
        const char *is = node->type == NODE_MAP     ? "a map"
                         : node->type == NODE_LIST  ? "a list"
                         : !node->plain             ? "a quoted string"
                         : json_is_number(value)    ? "a number"
                         : json_is_boolean(value)   ? "a boolean"
                                                    : "an unquoted string";
        _free_ char *text = xasprintf("must be %s, but is %s", wanted, is);
        decode_fail(d, node, path, text);
        const char *within = path && path->up ? path->up->key : NULL;
        /* a variable in the place of a service */
        if (within && streq(within, "environment") && path->key && !streq(path->key, "default") &&
            node->type == NODE_SCALAR)
                diag_suggest(d->diag, "default: {%s: ...}", path->key);
        return NULL;
}

/* Without blanks and characters that look like one. *ret_name: the last of these characters, or NULL. */
static char *without_blanks(const char *key, const char **ret_name) {
        Text t = {};
        *ret_name = NULL;
        for (size_t room = strlen(key), n; room > 0; key += n, room -= n) {
                const char *name = utf8_false_blank(key, room);
                n = utf8_length(key, room) ?: 1;
                *ret_name = name ?: *ret_name;
                text_add_bytes(&t, key, name || *key == ' ' ? 0 : n);
        }
        return text_take(&t);
}

static void warn_unknown(Decoder *d, const Field *fields, Mark mark, const Path *path) {
        Position at = mark_position(d, mark);
        const char *blank, *colon = strchr(path->key, ':');
        /* without a blank after the colon the value is a part of the key, and it may be a secret */
        _free_ char *key_alone = xstrndup(path->key, strcspn(path->key, ":")),
                    *name = path_format(&(Path){ path->up, key_alone, path->index }),
                    *key = without_blanks(key_alone, &blank), *near = fields_suggest(fields, key);
        diag_warn_at(d->diag, "unknown-field", &at, name, "is not known and is ignored%s%s%s",
                     blank   ? ": "
                     : colon ? ": a space is missing after the colon"
                             : "",
                     blank ?: "", blank ? " in it is not an ordinary space" : "");
        diag_suggest_name(d->diag, "", near);
}

static json_t *decode_text(Decoder *d, const Node *node, const Path *path) {
        if (node->type != NODE_SCALAR)
                return fail_type(d, node, path, "a string");
        if (memchr(node->text, 0, node->n))
                return decode_fail(d, node, path, "contains a NUL byte");
        return json_stringn(node->text, node->n) ?: decode_fail(d, node, path, "is not UTF-8");
}

static json_t *decode_bool(Decoder *d, const Node *node, const Path *path) {
        _cleanup_(json_decrefp) json_t *value = plain_value(node);
        return json_is_boolean(value) ? TAKE_PTR(value)
                                      : fail_type(d, node, path, "true or false");
}

static json_t *decode_integer(Decoder *d, const Node *node, const Path *path) {
        _cleanup_(json_decrefp) json_t *value = plain_value(node);
        double real = json_real_value(value);   /* 4.0 and 1e3 are whole, too, as in JSON Schema */
        if (json_is_real(value) && real >= -9e15 && real <= 9e15 && real == (double)(json_int_t)real)
                return json_integer((json_int_t)real);
        return json_is_integer(value) ? TAKE_PTR(value)
                                      : fail_type(d, node, path, "a whole number");
}

/* Tools that rewrite YAML 1.1 turn on and off into true and false: the word before that, or NULL. */
static const char *switch_word(const Node *node) {
        _cleanup_(json_decrefp) json_t *value = plain_value(node);
        return !json_is_boolean(value) ? NULL : json_is_true(value) ? "on" : "off";
}

static json_t *decode_enum(Decoder *d, const Field *f, const Node *node, const Path *path) {
        const char *word = switch_word(node);
        return word && field_enum_index(f, word) >= 0 ? json_string(word) : decode_text(d, node, path);
}

static void note_origin(Decoder *d, Mark mark, const Path *path) {
        Position at = mark_position(d, mark);
        _free_ char *name = path_format(path);
        origins_add(d->origins, name, at);
}

static void warn_gate(Decoder *d, const Field *f, const Member *m, const Path *path) {
        Position at = mark_position(d, m->at);
        _free_ char *name = path_format(path), *near = fields_suggest(f->fields, m->key);
        diag_warn_at(d->diag, "unknown-feature-gate", &at, name, "is not known and has no effect");
        diag_suggest_name(d->diag, "", near);
}

static json_t *decode_map(Decoder *d, const Field *f, const Node *node, const Path *path) {
        if (node->type != NODE_MAP)
                return fail_type(d, node, path, "a map");
        json_t *map = json_object();
        for (size_t i = 0; i < node->n; i++) {
                const Member *m = &node->members[i];
                const Path here = { path, m->key, 0 };
                const Field *own = fields_find(f->fields, m->key),
                            *row = f->type == FIELD_DICT ? f->fields : own;
                if (!row)
                        warn_unknown(d, f->fields, m->at, &here);
                if (!row || row->type == FIELD_IGNORED || node_is_null(m->value))
                        continue;
                note_origin(d, m->at, &here);
                if (f->flags & FIELD_GATES && !own)
                        warn_gate(d, f, m, &here);
                json_t *value = decode_value(d, row, m->value, &here);
                if (value)
                        json_object_set_new(map, m->key, value);
        }
        return map;
}

static json_t *decode_list(Decoder *d, const Field *f, const Node *node, const Path *path) {
        if (f->flags & FIELD_OR_TEXT && node->type == NODE_SCALAR) {
                const char *word = switch_word(node);
                return word ? json_string(word) : decode_text(d, node, path);
        }
        if (node->type != NODE_LIST)
                return fail_type(d, node, path, "a list");
        json_t *list = json_array();
        for (size_t i = 0; i < node->n; i++) {
                /* its place without earlier nulls */
                const Path here = { path, NULL, i }, there = { path, NULL, json_array_size(list) };
                if (node_is_null(node->items[i]))
                        continue;
                note_origin(d, node->items[i]->at, &there);
                json_t *item = decode_value(d, f->fields, node->items[i], &here);
                /* the document is refused; the rest keeps its numbers */
                json_array_append_new(list, item ?: json_null());
        }
        return list;
}

static void note_members(Decoder *d, const Node *node, const Path *path, unsigned levels) {
        for (size_t i = 0; levels > 0 && node->type == NODE_MAP && i < node->n; i++) {
                const Path here = { path, node->members[i].key, 0 };
                note_origin(d, node->members[i].at, &here);
                note_members(d, node->members[i].value, &here, levels - 1);
        }
}

/* Null stays: in a drop-in of kubelet it removes a value of config.json (RFC 7396). */
static json_t *decode_free(Decoder *d, const Field *f, const Node *node, const Path *path) {
        _cleanup_(json_decrefp) json_t *value = NULL;
        if (node->type != NODE_MAP)
                return fail_type(d, node, path, "a map");
        if (yaml_to_json(node, &value) < 0)
                return decode_fail(d, node, path, "contains a value that JSON cannot express, such as a "
                                                  "number that is too large");
        bool kubelet = streq(f->key, "config");
        note_members(d, node, path, kubelet ? 2 : 0);
        /* users often put this key one level too deep */
        const Node *expression = kubelet ? node_get(node, "maxPodsExpression") : NULL;
        if (expression) {
                const Path here = { path, "maxPodsExpression", 0 };
                _free_ char *name = path_format(&here);
                const Position at = mark_position(d, expression->at);
                diag_warn_at(d->diag, "unknown-field", &at, name, "is not a key of KubeletConfiguration");
                diag_suggest(d->diag, "spec.kubelet.maxPodsExpression");
        }
        return TAKE_PTR(value);
}

static json_t *decode_value(Decoder *d, const Field *f, const Node *node, const Path *path) {
        switch (f->type) {
        case FIELD_MAP:
        case FIELD_DICT:
                return decode_map(d, f, node, path);
        case FIELD_LIST:
                return decode_list(d, f, node, path);
        case FIELD_FREE:
                return decode_free(d, f, node, path);
        case FIELD_BOOL:
                return decode_bool(d, node, path);
        case FIELD_INTEGER:
                return decode_integer(d, node, path);
        case FIELD_ENUM:
                return decode_enum(d, f, node, path);
        default:
                if (f->flags & FIELD_TOML) {
                        d->origins->toml_block = node->block;
                        d->origins->toml_line = node->at.line;
                }
                return decode_text(d, node, path);
        }
}

static const char *scalar_text(const Node *node) {
        return node && node->type == NODE_SCALAR && !node_is_null(node) ? node->text : NULL;
}

bool document_is_ours(const Node *root) {
        if (!root || root->type != NODE_MAP)
                return false;
        const char *version = scalar_text(node_get(root, "apiVersion")),
                   *kind = scalar_text(node_get(root, "kind"));
        return (kind && streq(kind, CONFIG_KIND)) || (version && startswith(version, "node.eks.aws/"));
}

/* The message may show the value, which is not a secret here. */
static bool check_identity(Decoder *d, const Node *root, const char *key, const char *wanted) {
        const Node *node = node_get(root, key);
        Position at = mark_position(d, (node ?: root)->at);
        if (!node || node_is_null(node)) {
                const Member *near = FIND(m, root->members, node ? 0 : root->n, strcasecmp(m->key, key) == 0);
                if (near)
                        at = mark_position(d, near->at);
                diag_error_at(d->diag, -EINVAL, CAUSE_INVALID, &at, key, "is missing; it must be %s", wanted);
                if (near)       /* apiversion */
                        diag_suggest(d->diag, "%s instead of %s", key, near->key);
        } else if (node->type != NODE_SCALAR)
                fail_type(d, node, &(Path){ NULL, key, 0 }, wanted);
        else if (node->n != strlen(wanted) || memcmp(node->text, wanted, node->n) != 0) {
                _free_ char *is = text_quote(node->text, node->n);
                diag_error_at(d->diag, -EINVAL, CAUSE_INVALID, &at, key, "is %s; it must be %s", is, wanted);
        } else
                return true;
        return false;
}

json_t *document_decode(const Node *root, Position at, Origins *origins, Diag *diag) {
        Decoder d = { at, origins, diag };
        const Field whole = { .type = FIELD_MAP, .fields = nodeconfig_fields };
        bool version = check_identity(&d, root, "apiVersion", CONFIG_API_VERSION),
             kind = check_identity(&d, root, "kind", CONFIG_KIND);
        /* keys of another version may have another meaning */
        if (!version || !kind) {
                origins_fail(origins, "apiVersion");
                return json_object();
        }
        return decode_map(&d, &whole, root, NULL);
}
