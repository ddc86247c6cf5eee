/* SPDX-License-Identifier: Apache-2.0
 * JSON of systemd-networkd → the states of its links. networkctl prints the answer of Manager.Describe in
 * another layout (systemd:src/network/networkctl.c). */
#include "networkd/networkd.h"

#include "base/json.h"
#include "base/str.h"
#include "doc/env-file.h"

#include <errno.h>

void links_done(Links *l) {
        for (size_t i = 0; i < l->n; i++)
                FREE_ALL(l->items[i].name, l->items[i].setup, l->items[i].operational, l->items[i].file);
        free(l->items);
        *l = (Links){};
}

/* "requesting,removing" */
static bool list_is_stuck(const json_t *list) {
        const json_t *item;
        size_t i;
        json_array_foreach(list, i, item) {
                const char *state = json_get_text(item, "ConfigState");
                if (strstr(state, "requesting") && strstr(state, "removing"))
                        return true;
        }
        return false;
}

static bool is_from(const json_t *item, const char *source) {
        return streq(json_get_text(item, "ConfigSource"), source);
}

static const json_t *address_of_dhcp6(const json_t *addresses) {
        const json_t *item;
        size_t i;
        json_array_foreach(addresses, i, item)
                if (is_from(item, "DHCPv6"))
                        return json_object_get(item, "Address");
        return NULL;
}

/* Both are lists of bytes. */
static bool prefix_covers(const json_t *prefix, json_int_t bits, const json_t *address) {
        for (size_t i = 0; i < (size_t)bits / 8 && i < json_array_size(prefix); i++)
                if (json_integer_value(json_array_get(prefix, i)) !=
                    json_integer_value(json_array_get(address, i)))
                        return false;
        return true;
}

/* Is its address in a subnet whose router it has not heard, or only routers of other subnets? */
static bool link_is_unrouted(const json_t *link) {
        const json_t *address = address_of_dhcp6(json_object_get(link, "Addresses")), *route;
        bool heard = false, other = false, own = false;
        size_t i;
        json_array_foreach(json_object_get(link, "Routes"), i, route) {
                json_int_t bits = json_integer_value(json_object_get(route, "DestinationPrefixLength"));
                const json_t *prefix = json_object_get(route, "Destination");
                if (!is_from(route, "NDisc"))
                        continue;
                heard = true;
                if (bits > 0)
                        *(prefix_covers(prefix, bits, address) ? &own : &other) = true;
        }
        return address && (!heard || (other && !own));
}

int links_parse(const char *json, size_t size, Links *ret) {
        json_auto_t *document = json_loadb(json, size, 0, NULL);
        const json_t *list = json_object_get(document, "Interfaces"), *item;
        size_t i;
        if (!json_is_array(list))
                return -EBADMSG;
        Links links = { .items = xcalloc(json_array_size(list) + 1, sizeof(Link)) };
        json_array_foreach(list, i, item) {
                if (!*json_get_text(item, "Name"))
                        continue;
                links.items[links.n++] = (Link){
                        .name = xstrdup(json_get_text(item, "Name")),
                        .index = (unsigned)json_integer_value(json_object_get(item, "Index")),
                        .setup = xstrdup(json_get_text(item, "AdministrativeState")),
                        .operational = xstrdup(json_get_text(item, "OperationalState")),
                        .stuck = list_is_stuck(json_object_get(item, "Addresses")) ||
                                 list_is_stuck(json_object_get(item, "Routes")),
                        .unrouted = link_is_unrouted(item),
                        .file = json_copy_text(item, "NetworkFile"),
                };
        }
        *ret = links;
        return 0;
}

Link link_from_state(const char *name, unsigned index, const char *text) {
        return (Link){ .name = xstrdup(name),
                       .index = index,
                       .setup = assignment_in_environment(text, "ADMIN_STATE") ?: xstrdup(""),
                       .operational = assignment_in_environment(text, "OPER_STATE") ?: xstrdup(""),
                       .file = assignment_in_environment(text, "NETWORK_FILE") };
}
