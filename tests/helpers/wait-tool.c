/* SPDX-License-Identifier: Apache-2.0
 * usage: wait-tool EXPECTED TIMEOUT [DEVICE...]
 * Waits for instance stores of this machine, and for volumes of these names, as init does, with the debug
 * log on. tests/vm/late-disks.sh runs it. The last line is "RESULT after MICROSECONDS us": 1, 0 or a
 * negative errno. */
#include "host/detect.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

int main(int argc, char **argv) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(root_freep) Root *root = NULL;
        uint64_t expected = 0, timeout_usec = 0;
        Config config = { .instance.storage.strategy = STORAGE_RAID0 };

        if (argc < 3 || parse_u64(argv[1], &expected) < 0 || parse_timespan(argv[2], &timeout_usec) < 0 ||
            root_new("/", &root) < 0)
                return 2;
        config.instance.volumes = xcalloc((size_t)argc, sizeof(Volume));
        for (int i = 3; i < argc; i++)
                config.instance.volumes[config.instance.n_volumes++].device = argv[i];
        log_set_level(LOG_DEBUG);
        stop_catch();
        uint64_t begin = now_usec();
        int r = wait_for_disks(root, &config, (unsigned)expected,
                               &(HostOptions){ .disks_timeout_usec = timeout_usec,
                                               .volumes_timeout_usec = timeout_usec },
                               &diag);
        unsigned long long took = now_usec() - begin;
        for (size_t i = 0; i < diag.n; i++) {
                _free_ char *text = diagnostic_format(&diag.items[i]);
                log_error("%s", text);
        }
        printf("%d after %llu us\n", r, took);
        return 0;
}
