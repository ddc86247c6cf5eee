/* SPDX-License-Identifier: Apache-2.0
 * SIGTERM and SIGINT → a number to look at. Without SA_RESTART, so that a wait ends with EINTR. */
#include "base/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void on_signal(int signal) {
        if (!caught)
                caught = signal;
}

void stop_catch(void) {
        struct sigaction action = { .sa_handler = on_signal };
        sigemptyset(&action.sa_mask);
        (void)sigaction(SIGTERM, &action, NULL);
        (void)sigaction(SIGINT, &action, NULL);
}

int stop_signal(void) {
        return caught;
}

const char *stop_name(int signal) {
        return signal == SIGINT ? "SIGINT" : "SIGTERM";
}
