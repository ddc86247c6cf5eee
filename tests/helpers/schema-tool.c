/* SPDX-License-Identifier: Apache-2.0
 * usage: schema-tool [--strict] >conf/nodeconfig[-strict].schema.json
 * The field table → JSON Schema (draft 2020-12) of one NodeConfig document. It accepts what the decoder
 * does: null for absent, unknown keys (the decoder warns), numbers for text. It checks types, names, ranges
 * and simple formats; only `config check` can check the merged whole. The strict one serves editors of a
 * whole NodeConfig: it is closed, has required keys, and lists names that an editor can complete. It refuses
 * forms that no user writes (null, another case, "" for absent). */
#define FIELD_TEXTS
#include "../../src/config/fields.c"            // NOLINT(bugprone-suspicious-include): with its texts

#include <stdio.h>

/* Editors and catalogues keep schemas by it, so it changes with the API version alone. A name, not an
 * address: nothing has to serve it. */
#define SCHEMA_ID "urn:nodestrap:" CONFIG_API_VERSION

static json_t *schema_field(const Field *f, bool strict);

static json_t *schema_properties(const Field *fields, bool strict) {
        json_t *properties = json_object();
        for (; *fields->key; fields++)
                json_object_set_new(properties, fields->key, schema_field(fields, strict));
        return properties;
}

static json_t *schema_types(const Field *f, bool strict) {
        static const char *const names[_FIELD_TYPE_MAX] = {
                [FIELD_MAP] = "object",    [FIELD_DICT] = "object", [FIELD_FREE] = "object",
                [FIELD_STRING] = "string", [FIELD_ENUM] = "string", [FIELD_LIST] = "array",
                [FIELD_BOOL] = "boolean",  [FIELD_INTEGER] = "integer",
        };
        json_t *types = json_array();
        json_array_append_new(types, json_string(names[f->type]));
        if (f->flags & FIELD_OR_TEXT)
                json_array_append_new(types, json_string("string"));
        if ((f->type == FIELD_STRING || f->flags & FIELD_OR_TEXT) && !(f->flags & FIELD_NO_NUMBER)) {
                json_array_append_new(types, json_string("number"));
                json_array_append_new(types, json_string("boolean"));
        }
        if (!strict)
                json_array_append_new(types, json_string("null"));
        return types;
}

/* JSON Schema has no flag for "any case". */
static json_t *schema_any_case(const Field *f) {
        Text t = {};
        text_add(&t, "^(");
        for (size_t i = 0; i < f->n_names; i++)
                for (const char *c = f->names[i]; *c; c++) {
                        if (c == f->names[i])
                                text_add(&t, "%s", i > 1 ? "|" : "");
                        if ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')
                                text_add(&t, "[%c%c]", *c & ~0x20, *c | 0x20);
                        else
                                text_add(&t, "%c", *c);
                }
        text_add(&t, ")?$");
        _free_ char *pattern = text_take(&t);
        return json_string(pattern);
}

static void add_names(json_t *schema, const Field *f, bool strict) {
        json_t *names = json_array();
        for (size_t i = 0; i < f->n_names; i++)
                if (*f->names[i])
                        json_array_append_new(names, json_string(f->names[i]));
        if (f->flags & FIELD_NEEDED || strict) {
                json_object_set_new(schema, "enum", names);
                return;
        }
        if (*f->key)
                json_array_append_new(names, json_string(""));
        json_array_append_new(names, json_null());
        /* YAML 1.1 tools make these of on and off; decode.c undoes it */
        if (field_enum_index(f, "on") >= 0)
                json_array_append_new(names, json_true());
        if (field_enum_index(f, "off") >= 0)
                json_array_append_new(names, json_false());
        json_object_set_new(schema, "enum", names);
}

static void add_enum(json_t *schema, const Field *f, bool strict) {
        _free_ char *list = field_enum_list(f);
        if (strict || !(f->flags & FIELD_ANY_CASE)) {
                add_names(schema, f, strict);
                return;
        }
        json_object_set_new(schema, "type", schema_types(f, false));
        json_object_set_new(schema, "pattern", schema_any_case(f));
        json_object_set_new(schema, "description", json_sprintf("%s One of %s, in upper or lower case.", f->doc, list));
}

/* jansson ignores the NULL of a field without a default. */
static void add_fallback(json_t *schema, const Field *f) {
        json_object_set_new(schema, "default",
                            f->type == FIELD_BOOL && *f->key          ? json_false()
                            : f->type == FIELD_INTEGER && f->fallback ? json_integer(field_fallback_number(f))
                                                                      : json_string(field_fallback(f)));
}

/* "x-since": the first version of nodestrap with the key; the API of nodeadm has the other keys. */
static void add_example(json_t *schema, const Field *f) {
        json_t *example = json_loads(f->example, JSON_DECODE_ANY, NULL);
        json_object_set_new(schema, "examples", json_pack("[o]", example ?: json_string(f->example)));
        if (*f->since)
                json_object_set_new(schema, "x-since", json_string(f->since));
}

static json_t *schema_field(const Field *f, bool strict) {
        json_t *schema = json_object();
        if (f->doc)
                json_object_set_new(schema, "description", json_string(f->doc));
        if (f->example)
                add_example(schema, f);
        if (f->type == FIELD_IGNORED)
                return schema;
        if (f->type == FIELD_ENUM)
                add_enum(schema, f, strict);
        else
                json_object_set_new(schema, "type", schema_types(f, strict));
        bool closed = f->type == FIELD_MAP || f->flags & FIELD_GATES;
        if (closed)
                json_object_set_new(schema, "properties", schema_properties(f->fields, strict));
        if (f->type == FIELD_LIST)
                json_object_set_new(schema, "items", schema_field(f->fields, strict));
        if (strict && closed)
                json_object_set_new(schema, "additionalProperties", json_false());
        else if (f->type == FIELD_DICT) {
                const Field element = { .type = f->fields->type, .fields = f->fields->fields,
                                        .min = f->fields->min, .max = f->fields->max };
                json_object_set_new(schema, "additionalProperties", schema_field(&element, strict));
        }
        if (f->type == FIELD_INTEGER) {
                json_object_set_new(schema, "minimum", json_integer(f->min));
                json_object_set_new(schema, "maximum", json_integer(f->max));
        }
        if (f->pattern)
                json_object_set_new(schema, "pattern", json_string(f->pattern));
        add_fallback(schema, f);
        return schema;
}

/* The keys that config_validate() always needs. */
static void add_required(json_t *schema) {
        json_t *spec = json_object_get(json_object_get(schema, "properties"), "spec"),
               *cluster = json_object_get(json_object_get(spec, "properties"), "cluster");
        json_object_set_new(spec, "required", json_pack("[s]", "cluster"));
        json_object_set_new(cluster, "required",
                            json_pack("[s, s, s, s]", "name", "apiServerEndpoint", "certificateAuthority",
                                      "cidr"));
        json_array_append_new(json_object_get(schema, "required"), json_string("spec"));
        json_object_set_new(schema, "additionalProperties", json_false());
}

static json_t *whole_schema(bool strict) {
        json_t *schema = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:[s, s]}", "$schema",
                                   "https://json-schema.org/draft/2020-12/schema", "$id",
                                   strict ? SCHEMA_ID ":strict" : SCHEMA_ID, "title", CONFIG_KIND,
                                   "description", "Settings of an EKS node (" CONFIG_API_VERSION ").",
                                   "type", "object", "properties",
                                   schema_properties(nodeconfig_fields, strict), "required", "apiVersion",
                                   "kind");
        if (strict)
                add_required(schema);
        return schema;
}

int main(int argc, char **argv) {
        json_auto_t *schema = whole_schema(argc > 1 && streq(argv[1], "--strict"));
        json_dumpf(schema, stdout, JSON_INDENT(2));
        return puts("") < 0;
}
