/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap boot-hook`: waits for the network of the boot (nic/boot-network.c). */
#include "commands/run.h"

#include "base/log.h"
#include "base/time.h"
#include "nic/nic.h"

#define TOTAL_USEC (60 * USEC_PER_SEC)

int command_boot_hook(Run *run) {
        uint64_t span = run->options.timeout_usec ?: TOTAL_USEC;
        _free_ char *configured = NULL;
        run->step = "network";
        stop_catch();
        int r = boot_network_wait(run->root, run->begin_usec, run->begin_usec + span, &configured,
                                  &run->diag);
        if (r < 0)
                return r;
        _free_ char *took = usec_text((int64_t)(now_usec() - run->begin_usec));
        log_info("The network is ready after %s. Configured: %s; all other links are unmanaged.", took,
                 configured);
        return 0;
}
