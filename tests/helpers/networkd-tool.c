/* SPDX-License-Identifier: Apache-2.0
 * usage: networkd-tool reload SECONDS
 *        networkd-tool serve FILE
 * reload makes systemd-networkd read its files again, as udev-net-manager does. The exit status is 0, or
 * the errno after a message. serve is a systemd-networkd that answers Manager.Describe with the text of
 * FILE. */
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "networkd/networkd.h"

#include <errno.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

static int describe(sd_bus_message *call, void *userdata, _unused_ sd_bus_error *error) {
        return sd_bus_reply_method_return(call, "s", userdata);
}

static const sd_bus_vtable manager[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Describe", "", "s", describe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int serve(const char *path) {
        static char text[1U << 20];
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        FILE *f = fopen(path, "re");    /* the sandbox of its unit forbids openat2(2) */
        if (!f || fread(text, 1, sizeof text - 1, f) == 0)
                return -EIO;
        fclose(f);
        int r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/network1", "org.freedesktop.network1.Manager", manager, text);
        if (r >= 0)
                r = sd_bus_request_name(bus, "org.freedesktop.network1", 0);
        while (r >= 0) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, UINT64_MAX);
        }
        return r;
}

static int reload(const char *seconds) {
        Diag diag = {};
        uint64_t span = 0;
        if (parse_timespan(seconds, &span) < 0)
                return -2;
        int r = networkd_reload(now_usec() + span, NULL, NULL, &diag);
        for (size_t i = 0; i < diag.n; i++)
                log_error("%s: %s", cause_word(diag.items[i].cause), diag.items[i].text);
        diag_done(&diag);
        return r;
}

int main(int argc, char **argv) {
        if (argc != 3 || !ONE_OF(argv[1], "reload", "serve"))
                return 2;
        return -(streq(argv[1], "serve") ? serve : reload)(argv[2]);
}
