/* SPDX-License-Identifier: Apache-2.0
 * Instance types and GPUs → rows of the compiled tables in conf/. */
#include "host/tables.h"

#include "base/str.h"

#include <errno.h>

static int compare_type(const void *name, const void *row) {
        return strcmp(name, ((const InstanceType *)row)->name);
}

const InstanceType *instance_type_find(const char *name) {
        return name ? bsearch(name, instance_types, n_instance_types, sizeof *instance_types, compare_type)
                    : NULL;
}

static const EniShape *find_limit(const char *type) {
        size_t n = strcspn(type ?: "", ".");
        bool same = false;
        for (size_t i = 0; type && type[n] && i < n_eni_limits; i++) {
                const char *family = eni_families[eni_limits[i].family];
                const EniShape *shape = &eni_shapes[eni_limits[i].shape];
                if (i == 0 || eni_limits[i].family != eni_limits[i - 1].family)
                        same = strncmp(family, type, n) == 0 && !family[n];
                if (same && streq(shape->size, type + n + 1))
                        return shape;
        }
        return NULL;
}

char **eni_limits_types(void) {
        char **list = NULL;
        for (size_t i = 0; i < n_eni_limits; i++)
                strv_push_at(&list, i, xasprintf("%s.%s", eni_families[eni_limits[i].family],
                                                 eni_shapes[eni_limits[i].shape].size));
        return list;
}

bool eni_limits_find(const char *type, unsigned *ret_enis, unsigned *ret_addresses) {
        const EniShape *row = find_limit(type);
        if (!row)
                return false;
        *ret_enis = row->enis;
        *ret_addresses = row->addresses;
        return true;
}

unsigned network_cards_find(const char *type) {
        const InstanceType *t = instance_type_find(type);
        const EniShape *row = find_limit(type);
        if (t && t->network_cards > 0)
                return (unsigned)t->network_cards;
        return row && !t ? row->cards : 0;
}

const NetworkCards *network_cards_of(const char *type, size_t *ret_n) {
        const NetworkCards *first = FIND(c, network_cards, n_network_cards, streq(c->type, type));
        size_t n = 0;
        while (first && first + n < network_cards + n_network_cards && streq(first[n].type, type))
                n++;
        *ret_n = n;
        return first;
}

bool instance_type_is_known(const char *name) {
        return instance_type_find(name) || find_limit(name);
}

/* The nearest of the same family first: p5.99xlarge does not mean c5.9xlarge. */
static int refuse_type(const char *type, const char *where, Diag *diag) {
        _strv_ char **names = eni_limits_types();
        Nearest any = { .text = type }, family = { .text = type };
        size_t n = strcspn(type, ".");
        for (size_t i = 0; i < n_instance_types; i++)
                strv_push_at(&names, n_eni_limits + i, xstrdup(instance_types[i].name));
        STRV_FOREACH(name, names) {
                nearest_try(&any, *name);
                if (strncmp(*name, type, n) == 0 && (*name)[n] == '.')
                        nearest_try(&family, *name);
        }
        int r = diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, where,
                              "this version does not know the instance type \"%s\"", type);
        diag_suggest_name(diag, "", family.best ?: any.best);
        return r;
}

int instance_type_check(const char *name, const char *where, Diag *diag) {
        return instance_type_is_known(name) ? 0 : refuse_type(name, where, diag);
}

const MigProfile *mig_profiles_of(const char *gpu, size_t *ret_n) {
        const MigProfile *first = NULL;
        *ret_n = 0;
        for (size_t i = 0; i < n_mig_profiles; i++)
                if (streq(mig_profiles[i].gpu, gpu)) {
                        first = first ?: &mig_profiles[i];
                        (*ret_n)++;
                }
        return first;
}
