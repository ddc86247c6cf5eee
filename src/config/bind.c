/* SPDX-License-Identifier: Apache-2.0
 * The merged, valid document → struct Config, by the offsets of the field table. What was not said gets its
 * default here. */
#include "config/fields.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>

static int compare_variables(const void *a, const void *b) {
        return strcmp(((const Variable *)a)->name, ((const Variable *)b)->name);
}

static int compare_services(const void *a, const void *b) {
        return strcmp(((const ServiceEnvironment *)a)->service, ((const ServiceEnvironment *)b)->service);
}

/* A map of texts or numbers, in its own order. */
static size_t bind_variables(const json_t *map, Variable **ret) {
        Variable *list = xcalloc(json_object_size(map), sizeof *list);
        const char *name;
        json_t *value;
        size_t n = 0;

        json_object_foreach((json_t *)map, name, value) {
                list[n].name = xstrdup(name);
                list[n++].value = json_is_integer(value)
                                          ? xasprintf("%lld", (long long)json_integer_value(value))
                                          : xstrdup(json_string_value(value));
        }
        *ret = list;
        return n;
}

static size_t bind_sorted(const json_t *map, Variable **ret) {
        size_t n = bind_variables(map, ret);
        if (n > 0)
                qsort(*ret, n, sizeof **ret, compare_variables);
        return n;
}

int bind_environment(_unused_ const Field *f, const json_t *value, void *into) {
        InstanceOptions *o = into;
        const char *service;
        json_t *variables;

        o->environment = xcalloc(json_object_size(value), sizeof *o->environment);
        json_object_foreach((json_t *)value, service, variables) {
                ServiceEnvironment *e = &o->environment[o->n_environment++];
                e->service = xstrdup(service);
                e->n = bind_sorted(variables, &e->variables);
        }
        if (o->n_environment > 0)
                qsort(o->environment, o->n_environment, sizeof *o->environment, compare_services);
        return 0;
}

int bind_sysctl(_unused_ const Field *f, const json_t *value, void *into) {
        InstanceOptions *o = into;
        o->n_sysctl = bind_sorted(value, &o->sysctl);
        return 0;
}

int bind_authority(_unused_ const Field *f, const json_t *value, void *into) {
        Cluster *c = into;
        const char *text = json_string_value(value);
        return text ? base64_decode(text, strlen(text), true, &c->certificate_authority,
                                    &c->certificate_authority_size)
                    : 0;
}

int bind_disabled_mounts(_unused_ const Field *f, const json_t *value, void *into) {
        LocalStorage *s = into;
        const struct { const char *name; bool *flag; } mounts[] = {
                { "Containerd", &s->no_containerd },
                { "PodLogs",    &s->no_pod_logs },
                { "SOCI",       &s->no_soci },
                { "Kubelet",    &s->no_kubelet },
        };
        json_t *item;
        size_t i;

        json_array_foreach(value, i, item) {
                for (size_t m = 0; m < ARRAY_SIZE(mounts); m++)
                        if (streq(json_string_value(item), mounts[m].name))
                                *mounts[m].flag = true;
        }
        return 0;
}

/* Paths are made below it. Validate refuses "..". */
char *path_normalise(const char *path) {
        Text t = {};
        for (const char *part = path; *part; part += strcspn(part, "/")) {
                part += strspn(part, "/");
                size_t n = strcspn(part, "/");
                if (n > 0 && !(n == 1 && *part == '.'))
                        text_add(&t, "/%.*s", (int)n, part);
        }
        return text_take(&t);
}

int bind_mount_path(const Field *f, const json_t *value, void *into) {
        const char *text = json_string_value(value);
        *(char **)into = path_normalise(text && *text ? text : f->fallback);
        return 0;
}

int bind_pages(_unused_ const Field *f, const json_t *value, void *into) {
        HugePages *h = into;
        json_t *item;
        size_t i;

        h->pages = xcalloc(json_array_size(value), sizeof *h->pages);
        json_array_foreach(value, i, item) {
                PageRequest *p = &h->pages[h->n_pages];
                json_t *node = json_object_get(item, "numaNode");
                int r = parse_page_size(json_string_value(json_object_get(item, "size")), &p->size);
                if (r < 0)
                        return r;
                p->count = (unsigned)json_integer_value(json_object_get(item, "count"));
                p->numa_node = node ? (int)json_integer_value(node) : -1;
                h->n_pages++;
        }
        return 0;
}

int bind_timespan(const Field *f, const json_t *value, void *into) {
        const char *text = json_string_value(value);
        return parse_timespan(text && *text ? text : f->fallback, into);
}

int bind_gates(const Field *f, const json_t *value, void *into) {
        for (const Field *gate = f->fields; gate->key; gate++)
                *(bool *)((char *)into + gate->offset) = json_is_true(json_object_get(value, gate->key));
        return 0;
}

/* "off": a request without profiles. "9,14,14": how many of each, in the order of their first mention, since
 * on A100 the larger ones must come first (MIG user guide, "Creating GPU Instances"). */
static void bind_short_mig(const char *text, MigRequest *m) {
        _cleanup_(json_decrefp) json_t *counts = json_object();
        while (*text && !streq(text, "off")) {
                size_t n = strcspn(text, ", ");
                _cleanup_(freep) char *profile = xstrndup(text, n);
                if (n > 0)
                        json_object_set_new(
                                counts, profile,
                                json_integer(json_integer_value(json_object_get(counts, profile)) + 1));
                text += n + (text[n] != 0);
        }
        m->n_profiles = bind_variables(counts, &m->profiles);
}

int bind_mig(_unused_ const Field *f, const json_t *value, void *into) {
        Nvidia *n = into;
        json_t *item, *index;
        size_t i, k;

        if (json_string_length(value) > 0) {
                n->mig = xcalloc(1, sizeof *n->mig);
                n->n_mig = 1;
                bind_short_mig(json_string_value(value), n->mig);
                return 0;
        }
        n->mig = xcalloc(json_array_size(value), sizeof *n->mig);
        json_array_foreach(value, i, item) {
                MigRequest *m = &n->mig[n->n_mig++];
                json_t *devices = json_object_get(item, "devices");
                m->gpus = xcalloc(json_array_size(devices), sizeof *m->gpus);
                json_array_foreach(devices, k, index) {
                        m->gpus[m->n_gpus++] = (unsigned)json_integer_value(index);
                }
                m->n_profiles = bind_variables(json_object_get(item, "profiles"), &m->profiles);
        }
        return 0;
}

static void bind_value(const Field *f, const json_t *value, Config *c) {
        void *into = (char *)c + f->offset;
        const char *text = json_string_length(value) > 0 ? json_string_value(value) : f->fallback;
        json_t *item;
        size_t i;

        switch (f->type) {
        case FIELD_STRING:
                *(char **)into = text ? xstrdup(text) : NULL;
                break;
        case FIELD_BOOL:
                *(bool *)into = json_is_true(value);
                break;
        case FIELD_INTEGER:
                *(unsigned *)into = (unsigned)(value ? json_integer_value(value) : field_fallback_number(f));
                break;
        case FIELD_ENUM:
                *(int *)into =
                        json_string_length(value) > 0 ? field_enum_index(f, json_string_value(value)) : 0;
                break;
        case FIELD_FREE:
                *(json_t **)into = json_object_size(value) > 0 ? json_incref((json_t *)value) : NULL;
                break;
        case FIELD_LIST:
                json_array_foreach(value, i, item) {
                        strv_add(into, json_string_value(item));
                }
                break;
        default:
                break;
        }
}

/* Walks fields that the document does not have, too, for their defaults. */
static void bind_fields(const Field *fields, const json_t *map, Config *c) {
        for (const Field *f = fields; f->key; f++) {
                const json_t *value = json_object_get(map, f->key);
                if (f->type == FIELD_MAP)
                        bind_fields(f->fields, value, c);
                else if (f->bind)
                        /* validate let nothing pass that it refuses */
                        (void)f->bind(f, value, (char *)c + f->offset);
                else if (!(f->flags & FIELD_TOML))
                        bind_value(f, value, c);
        }
}

Config *config_bind(Merge *m) {
        const Field *spec = fields_find(nodeconfig_fields, "spec");
        Config *c = xcalloc(1, sizeof *c);

        bind_fields(spec->fields, json_object_get(m->document, "spec"), c);
        c->containerd.config = json_object_size(m->toml) > 0 ? json_incref(m->toml) : NULL;
        c->document = json_incref(m->document);
        c->origins = xcalloc(1, sizeof *c->origins);
        *c->origins = m->origins;
        m->origins = (Origins){};
        return c;
}

const Position *config_position(const Config *c, const char *path) {
        return c->origins ? origins_find(c->origins, path) : NULL;
}

static void variables_free(Variable *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(list[i].name);
                free(list[i].value);
        }
        free(list);
}

static void instance_done(InstanceOptions *o) {
        free(o->storage.mount_path);
        volumes_free(o->volumes, o->n_volumes);
        free(o->hugepages.pages);
        for (size_t i = 0; i < o->n_environment; i++) {
                free(o->environment[i].service);
                variables_free(o->environment[i].variables, o->environment[i].n);
        }
        free(o->environment);
        strv_free(o->nameservers);
        strv_free(o->domains);
        variables_free(o->sysctl, o->n_sysctl);
}

static void nvidia_done(Nvidia *n) {
        strv_free(n->imex_nodes);
        for (size_t i = 0; i < n->n_mig; i++) {
                free(n->mig[i].gpus);
                variables_free(n->mig[i].profiles, n->mig[i].n_profiles);
        }
        free(n->mig);
}

Config *config_free(Config *c) {
        if (!c)
                return NULL;
        free(c->cluster.name);
        free(c->cluster.endpoint);
        free(c->cluster.certificate_authority);
        free(c->cluster.cidr);
        free(c->cluster.id);
        json_decref(c->kubelet.config);
        strv_free(c->kubelet.flags);
        free(c->kubelet.max_pods_expression);
        json_decref(c->containerd.config);
        json_decref(c->containerd.base_runtime_spec);
        instance_done(&c->instance);
        nvidia_done(&c->nvidia);
        json_decref(c->document);
        if (c->origins)
                origins_done(c->origins);
        free(c->origins);
        free(c);
        return NULL;
}
