/* SPDX-License-Identifier: Apache-2.0
 * systemd-networkd's JSON → the states of its links. networkctl prints the answer of Manager.Describe as it
 * is (systemd:src/network/networkctl.c), in other layouts. Of addresses and routes only their ConfigState
 * counts. */
#include "networkd/networkd.h"

#include "base/json.h"
#include "base/str.h"
#include "doc/env-file.h"

#include <errno.h>

void links_done(Links *l) {
        for (size_t i = 0; i < l->n; i++) {
                free(l->items[i].name);
                free(l->items[i].setup);
                free(l->items[i].operational);
                free(l->items[i].file);
        }
        free(l->items);
        *l = (Links){};
}

static char *text_or_null(const char *text) {
        return *text ? xstrdup(text) : NULL;
}

/* "requesting,removing" */
static bool list_is_stuck(const json_t *list) {
        const json_t *item;
        size_t i;
        json_array_foreach(list, i, item) {
                const char *state = json_get_text(item, "ConfigState");
                if (strstr(state, "removing") && !streq(state, "removing"))
                        return true;
        }
        return false;
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
                        .setup = xstrdup(json_get_text(item, "AdministrativeState")),
                        .operational = xstrdup(json_get_text(item, "OperationalState")),
                        .stuck = list_is_stuck(json_object_get(item, "Addresses")) ||
                                 list_is_stuck(json_object_get(item, "Routes")),
                        .file = text_or_null(json_get_text(item, "NetworkFile")),
                };
        }
        *ret = links;
        return 0;
}

Link link_from_state(const char *name, const char *text) {
        char *setup = assignment_in_environment(text, "ADMIN_STATE");
        char *operational = assignment_in_environment(text, "OPER_STATE");
        return (Link){ .name = xstrdup(name),
                       .setup = setup ?: xstrdup(""),
                       .operational = operational ?: xstrdup(""),
                       .file = assignment_in_environment(text, "NETWORK_FILE") };
}
