/* SPDX-License-Identifier: Apache-2.0
 * usage: networkd-tool reload SECONDS
 * Has systemd-networkd read its files again, as udev-net-manager has; exit status 0, or the errno and a sentence. */
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "networkd/networkd.h"

int main(int argc, char **argv) {
        Diag diag = {};
        uint64_t span = 0;
        if (argc != 3 || !streq(argv[1], "reload") || parse_timespan(argv[2], &span) < 0)
                return 2;
        int r = networkd_reload(now_usec() + span, NULL, NULL, &diag);
        for (size_t i = 0; i < diag.n; i++)
                log_error("%s: %s", cause_word(diag.items[i].cause), diag.items[i].text);
        diag_done(&diag);
        return -r;
}
