/* SPDX-License-Identifier: Apache-2.0
 * The merged, valid document → struct Config, by the offsets of the field table, with all defaults. */
#include "config/fields.h"

#include "base/str.h"

static void bind_value(const Field *f, const json_t *value, Config *c) {
        void *into = (char *)c + f->offset;
        const char *text = json_string_length(value) > 0 ? json_string_value(value) : f->fallback;
        json_t *item;
        size_t i;
        switch (f->type) {
        case FIELD_STRING:
                *(char **)into = xstrdup_or_null(text);
                break;
        case FIELD_BOOL:
                *(bool *)into = json_is_true(value);
                break;
        case FIELD_INTEGER:
                *(unsigned *)into = (unsigned)(value ? json_integer_value(value) : field_fallback_number(f));
                break;
        case FIELD_ENUM:
                *(int *)into = text ? field_enum_index(f, text) : 0;
                break;
        case FIELD_FREE:
                *(json_t **)into = json_object_size(value) > 0 ? json_incref((json_t *)value) : NULL;
                break;
        case FIELD_LIST:
                json_array_foreach(value, i, item)
                        strv_add(into, json_string_value(item));
                break;
        default:
                break;
        }
}

/* Also of fields that the document does not have, for their defaults. */
static void bind_fields(const Field *fields, const json_t *map, Config *c) {
        for (const Field *f = fields; *f->key; f++) {
                const json_t *value = json_object_get(map, f->key);
                if (f->type == FIELD_MAP)
                        bind_fields(f->fields, value, c);
                else if (f->bind)
                        f->bind(f, value, (char *)c + f->offset);
                else if (!(f->flags & FIELD_TOML))
                        bind_value(f, value, c);
        }
}

Config *config_bind(Merge *m) {
        const Field *spec = fields_find(nodeconfig_fields, "spec");
        Config *c = xcalloc(1, sizeof *c);
        bind_fields(spec->fields, json_object_get(m->document, "spec"), c);
        c->containerd.config = json_object_size(m->toml) > 0 ? json_incref(m->toml) : NULL;
        c->containerd.as_one = json_incref(m->toml_one);
        c->document = json_incref(m->document);
        c->origins = xcalloc(1, sizeof *c->origins);
        *c->origins = m->origins;
        m->origins = (Origins){};
        return c;
}

const Position *config_position(const Config *c, const char *path) {
        return c->origins ? origins_find(c->origins, path) : NULL;
}

bool config_says(const Config *c, const char *path) {
        _free_ char *copy = xstrdup(path);
        const json_t *at = c->document;
        for (char *rest = copy, *key = strsep(&rest, "."); key && at; key = strsep(&rest, "."))
                at = json_object_get(at, key);
        return at;
}

static void variables_free(Variable *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                FREE_ALL(list[i].name, list[i].value);
        free(list);
}

/* Frees what bind_value() allocated. */
static void release_fields(const Field *fields, Config *c) {
        for (const Field *f = fields; *f->key; f++) {
                void *in = (char *)c + f->offset;
                if (f->type == FIELD_MAP)
                        release_fields(f->fields, c);
                else if (f->bind || f->flags & FIELD_TOML)
                        continue;
                else if (f->type == FIELD_STRING)
                        free(*(char **)in);
                else if (f->type == FIELD_FREE)
                        json_decref(*(json_t **)in);
                else if (f->type == FIELD_LIST)
                        strv_free(*(char ***)in);
        }
}

/* Frees what the BOUND() functions allocated. */
static void release_bound(Config *c) {
        InstanceOptions *o = &c->instance;
        FREE_ALL(c->cluster.certificate_authority, o->storage.mount_path);
        volumes_free(o->volumes, o->n_volumes);
        free(o->hugepages.pages);
        for (size_t i = 0; i < o->n_environment; i++) {
                free(o->environment[i].service);
                variables_free(o->environment[i].variables, o->environment[i].n);
        }
        free(o->environment);
        variables_free(o->sysctl, o->n_sysctl);
        for (size_t i = 0; i < c->nvidia.n_mig; i++) {
                free(c->nvidia.mig[i].gpus);
                variables_free(c->nvidia.mig[i].profiles, c->nvidia.mig[i].n_profiles);
        }
        free(c->nvidia.mig);
}

Config *config_free(Config *c) {
        if (!c)
                return NULL;
        release_fields(fields_find(nodeconfig_fields, "spec")->fields, c);
        release_bound(c);
        json_decref(c->containerd.config);
        json_decref(c->containerd.as_one);
        json_decref(c->document);
        if (c->origins)
                origins_done(c->origins);
        FREE_ALL(c->origins, c);
        return NULL;
}
