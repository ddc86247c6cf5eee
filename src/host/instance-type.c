/* SPDX-License-Identifier: Apache-2.0
 * The name of an EC2 instance type or region → what the compiled-in tables of conf/ know of it. Nothing
 * here looks at the machine: the tables say what to expect, never what is there. */
#include "host/tables.h"

static int compare_type(const void *name, const void *row) {
        return strcmp(name, ((const InstanceType *)row)->name);
}

static int compare_limit(const void *name, const void *row) {
        return strcmp(name, ((const EniLimit *)row)->type);
}

const InstanceType *instance_type_find(const char *name) {
        return name ? bsearch(name, instance_types, n_instance_types, sizeof *instance_types, compare_type)
                    : NULL;
}

static const EniLimit *find_limit(const char *type) {
        return type ? bsearch(type, eni_limits, n_eni_limits, sizeof *eni_limits, compare_limit) : NULL;
}

bool eni_limits_find(const char *type, unsigned *ret_enis, unsigned *ret_addresses) {
        const EniLimit *row = find_limit(type);
        if (!row)
                return false;
        *ret_enis = row->enis;
        *ret_addresses = row->addresses;
        return true;
}

unsigned network_cards_find(const char *type) {
        const InstanceType *t = instance_type_find(type);
        const EniLimit *row = find_limit(type);
        if (t && t->network_cards > 0)
                return (unsigned)t->network_cards;
        return row && !t ? row->cards : 0;
}
