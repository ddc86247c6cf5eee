/* SPDX-License-Identifier: Apache-2.0
 * What systemd says about kubelet.service, and what kubelet said last: nobody else knows why there is no
 * Node. */
#include "kube/internal.h"

#include "base/journal.h"
#include "base/time.h"

#include <systemd/sd-bus.h>

#define UNIT "kubelet.service"
#define PATH "/org/freedesktop/systemd1/unit/kubelet_2eservice"
#define LINES 5
#define LOOK_BACK 400U          /* newer ones write out their configuration at the start, a hundred lines */

void kubelet_done(Kubelet *k) {
        free(k->state);
        free(k->words);
        strv_free(k->lines);
        *k = (Kubelet){};
}

static char *property(sd_bus *bus, const char *interface, const char *name) {
        char *value = NULL;
        _cleanup_(freep) char *whole = xasprintf("org.freedesktop.systemd1.%s", interface);
        if (sd_bus_get_property_string(bus, "org.freedesktop.systemd1", PATH, whole, name, NULL, &value) < 0)
                return NULL;
        return value;
}

static void take_state(sd_bus *bus, Kubelet *k) {
        _cleanup_(freep) char *load = property(bus, "Unit", "LoadState"),
                              *active = property(bus, "Unit", "ActiveState");
        _cleanup_(freep) char *sub = property(bus, "Unit", "SubState"),
                              *result = property(bus, "Service", "Result");
        uint32_t restarts = 0;
        Text t = {};
        if (!load || !active)
                return;
        if (streq(load, "not-found")) {
                k->state = xstrdup(UNIT " does not exist on this machine");
                return;
        }
        (void)sd_bus_get_property_trivial(bus, "org.freedesktop.systemd1", PATH,
                                          "org.freedesktop.systemd1.Service", "NRestarts", NULL, 'u',
                                          &restarts);
        text_add(&t, UNIT " is %s (%s)", active, sub ?: "?");
        if (result && !streq(result, "success"))
                text_add(&t, ", result %s", result);
        if (restarts > 0)
                text_add(&t, ", restarted %u time%s", restarts, restarts > 1 ? "s" : "");
        k->state = text_take(&t);
        k->runs = streq(active, "active") && restarts == 0;
}

/* Where klog's own words end and the message begins; 0: this is no line of its own
 * (https://pkg.go.dev/k8s.io/klog/v2: "Lmmdd hh:mm:ss.uuuuuu threadid file:line] msg"). */
static size_t klog_header(const char *line) {
        const char *end = strstr(line, "] ");
        if (!strchr("IWEF", *line) || !*line || strspn(line + 1, "0123456789") != 4 || line[5] != ' ' || !end)
                return 0;
        return (size_t)(end - line) + strlen("] ");
}

const char *klog_text(const char *line) {
        return line + klog_header(line);
}

static bool is_error(const char *line) {
        return klog_header(line) > 0 && strchr("EF", *line);
}

/* Words of kubelet's: its last ones before it exits (cmd/kubelet), and why it has no Node
 * (pkg/kubelet/kubelet_node_status.go, tryRegisterWithAPIServer()). They outlive what it says meanwhile about
 * a Node that it does not find. */
static bool is_telling(const char *line) {
        static const char *const words[] = { "\"command failed\"", "Unable to register node with API server",
                                             "Unable to construct v1.Node object" };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strstr(line, words[i]))
                        return true;
        return false;
}

const char *kubelet_choose_line(char *const *lines, bool registered) {
        size_t n = strv_length(lines);
        for (size_t i = n; i > 0 && !registered && !strstr(lines[i - 1], "Successfully registered node"); i--)
                if (is_telling(lines[i - 1]))
                        return lines[i - 1];
        for (size_t i = n; i > 0; i--)
                if (is_error(lines[i - 1]))
                        return lines[i - 1];
        return n > 0 ? lines[n - 1] : NULL;
}

void kubelet_look(const Root *root, bool registered, Kubelet *ret) {
        sd_bus *bus = NULL;
        *ret = (Kubelet){};
        if (!root_is_host(root))
                return;
        if (sd_bus_open_system(&bus) >= 0) {
                (void)sd_bus_set_method_call_timeout(bus, 2 * USEC_PER_SEC);
                take_state(bus, ret);
        }
        sd_bus_flush_close_unref(bus);
        _cleanup_(strv_freep) char **lines = journal_tail(UNIT, 0, LOOK_BACK);
        const char *line = kubelet_choose_line(lines, registered);
        size_t n = strv_length(lines);
        if (line)
                ret->words = xstrdup(klog_text(line));
        for (size_t i = n - MIN(n, (size_t)LINES); i < n; i++)
                strv_add(&ret->lines, lines[i]);
}
