/* SPDX-License-Identifier: Apache-2.0
 * The state of kubelet.service in systemd, with the last message of kubelet, secrets hidden. Its other
 * output stays in the journal, since it may quote its files. */
#include "kube/internal.h"

#include "base/journal.h"
#include "base/time.h"

#include <systemd/sd-bus.h>

#define SYSTEMD    "org.freedesktop.systemd1"
#define OF_UNIT    SYSTEMD ".Unit"
#define OF_SERVICE SYSTEMD ".Service"
#define UNIT "kubelet.service"
#define PATH "/org/freedesktop/systemd1/unit/kubelet_2eservice"
#define ENDS 3                          /* kubelet may end this often while something is still missing */

void kubelet_done(Kubelet *k) {
        free(k->state);
        *k = (Kubelet){};
}

static char *property(sd_bus *bus, const char *interface, const char *name) {
        char *value = NULL;
        (void)sd_bus_get_property_string(bus, SYSTEMD, PATH, interface, name, NULL, &value);
        return value;
}

static void take_state(sd_bus *bus, Kubelet *k) {
        _free_ char *load = property(bus, OF_UNIT, "LoadState"),
                    *active = property(bus, OF_UNIT, "ActiveState"),
                    *sub = property(bus, OF_UNIT, "SubState"),
                    *result = property(bus, OF_SERVICE, "Result"), *id = property(bus, OF_UNIT, "Id");
        uint32_t restarts = 0;
        uint64_t since = 0;
        Text t = {};
        if (!load || !active)
                return;
        if (streq(load, "not-found")) {
                k->state = xstrdup(UNIT " does not exist on this machine");
                return;
        }
        (void)sd_bus_get_property_trivial(bus, SYSTEMD, PATH, OF_SERVICE, "NRestarts", NULL, 'u', &restarts);
        (void)sd_bus_get_property_trivial(bus, SYSTEMD, PATH, OF_SERVICE, "ExecMainStartTimestampMonotonic",
                                          NULL, 't', &since);
        text_add(&t, UNIT " is %s (%s)", active, sub ?: "?");
        if (result && !streq(result, "success"))
                text_add(&t, ", result %s", result);
        if (restarts > 0)
                text_add(&t, ", restarted %u time%s", restarts, restarts > 1 ? "s" : "");
        k->runs = streq(active, "active") && restarts == 0;
        /* not if it was stopped; ignore what an earlier process had logged */
        bool stopped = streq(active, "inactive") && (!result || streq(result, "success"));
        k->said = !streq(active, "active") && !stopped && journal_quote_kubelet(&t, id ?: UNIT, since);
        k->lost = k->said && (streq(active, "failed") ||
                              (restarts >= ENDS && sub && startswith(sub, "auto-restart")));
        k->state = text_take(&t);
}

void kubelet_look(const Root *root, Kubelet *ret) {
        sd_bus *bus = NULL;
        *ret = (Kubelet){};
        if (!root_is_host(root))
                return;
        if (sd_bus_open_system(&bus) >= 0) {
                (void)sd_bus_set_method_call_timeout(bus, 2 * USEC_PER_SEC);
                take_state(bus, ret);
        }
        sd_bus_flush_close_unref(bus);
}
