/* SPDX-License-Identifier: Apache-2.0
 * Binds fields that are more than a text, a number or a list to struct Config. */
#include "config/fields.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>

/* Of Variable or ServiceEnvironment: by the text that each begins with. */
static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A map of texts or numbers, in its order. */
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
                qsort(*ret, n, sizeof **ret, compare_names);
        return n;
}

void bind_environment(_unused_ const Field *f, const json_t *value, void *into) {
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
                qsort(o->environment, o->n_environment, sizeof *o->environment, compare_names);
}

void bind_sysctl(_unused_ const Field *f, const json_t *value, void *into) {
        InstanceOptions *o = into;
        o->n_sysctl = bind_sorted(value, &o->sysctl);
}

void bind_authority(_unused_ const Field *f, const json_t *value, void *into) {
        Cluster *c = into;
        const char *text = json_string_value(value);
        if (text)
                (void)!base64_decode(text, strlen(text), true, &c->certificate_authority,
                                     &c->certificate_authority_size);
}

void bind_disabled_mounts(_unused_ const Field *f, const json_t *value, void *into) {
        LocalStorage *s = into;
        const struct { const char *name; bool *flag; } mounts[] = {
                { "Containerd", &s->no_containerd }, { "PodLogs", &s->no_pod_logs },
                { "SOCI", &s->no_soci },             { "Kubelet", &s->no_kubelet },
        };
        json_t *item;
        size_t i;
        json_array_foreach(value, i, item)
                for (size_t m = 0; m < ARRAY_SIZE(mounts); m++)
                        *mounts[m].flag |= streq(json_string_value(item), mounts[m].name);
}

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

void bind_mount_path(const Field *f, const json_t *value, void *into) {
        const char *text = json_string_value(value);
        *(char **)into = path_normalise(text && *text ? text : f->fallback);
}

void bind_pages(_unused_ const Field *f, const json_t *value, void *into) {
        HugePages *h = into;
        json_t *item;
        size_t i;
        h->pages = xcalloc(json_array_size(value), sizeof *h->pages);
        json_array_foreach(value, i, item) {
                PageRequest *p = &h->pages[h->n_pages];
                json_t *node = json_object_get(item, "numaNode");
                (void)!parse_page_size(json_string_value(json_object_get(item, "size")), &p->size);
                p->count = (unsigned)json_integer_value(json_object_get(item, "count"));
                p->numa_node = node ? (int)json_integer_value(node) : -1;
                h->n_pages++;
        }
}

void bind_timespan(const Field *f, const json_t *value, void *into) {
        const char *text = json_string_value(value);
        (void)!parse_timespan(text && *text ? text : f->fallback, into);
}

void bind_gates(const Field *f, const json_t *value, void *into) {
        for (const Field *gate = f->fields; *gate->key; gate++)
                *(bool *)((char *)into + gate->offset) = json_is_true(json_object_get(value, gate->key));
}

/* "off": a request without profiles. "9,14,14": a count of each, in the order of first mention, since larger
 * ones must come first on A100 (MIG user guide, "Creating GPU Instances"). */
static void bind_short_mig(const char *text, MigRequest *m) {
        _cleanup_(json_decrefp) json_t *counts = json_object();
        while (*text && !streq(text, "off")) {
                size_t n = strcspn(text, ", ");
                _free_ char *profile = xstrndup(text, n);
                json_int_t before = json_integer_value(json_object_get(counts, profile));
                if (n > 0)
                        json_object_set_new(counts, profile, json_integer(before + 1));
                text += n + (text[n] != 0);
        }
        m->n_profiles = bind_variables(counts, &m->profiles);
}

void bind_mig(_unused_ const Field *f, const json_t *value, void *into) {
        Nvidia *n = into;
        json_t *item, *index;
        size_t i, k;
        if (json_string_length(value) > 0) {
                n->mig = xcalloc(1, sizeof *n->mig);
                n->n_mig = 1;
                bind_short_mig(json_string_value(value), n->mig);
                return;
        }
        n->mig = xcalloc(json_array_size(value), sizeof *n->mig);
        json_array_foreach(value, i, item) {
                MigRequest *m = &n->mig[n->n_mig++];
                json_t *devices = json_object_get(item, "devices");
                m->gpus = xcalloc(json_array_size(devices), sizeof *m->gpus);
                json_array_foreach(devices, k, index)
                        m->gpus[m->n_gpus++] = (unsigned)json_integer_value(index);
                m->n_profiles = bind_variables(json_object_get(item, "profiles"), &m->profiles);
        }
}
