/* SPDX-License-Identifier: Apache-2.0
 * SIGTERM and SIGINT → a number to look at. Without SA_RESTART, so that a wait ends with EINTR. */
#include "base/stop.h"

#include "base/time.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

static volatile sig_atomic_t caught;

static void remember_signal(int signal) {
        if (!caught)
                caught = signal;
}

void stop_catch(void) {
        struct sigaction action = { .sa_handler = remember_signal };
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

/* Signals are blocked except while it sleeps, so that none arrives unseen between the check and the sleep. */
int stop_wait(int fd, uint64_t until_usec) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        sigset_t held, before;

        sigemptyset(&held);
        sigaddset(&held, SIGTERM);
        sigaddset(&held, SIGINT);
        sigprocmask(SIG_BLOCK, &held, &before);
        uint64_t now = now_usec(), left = until_usec > now ? until_usec - now : 0;
        struct timespec t = { (time_t)(left / USEC_PER_SEC), (long)(left % USEC_PER_SEC * 1000) };
        int n = stop_signal() ? 0 : ppoll(&p, 1, &t, &before), r = n < 0 && errno != EINTR ? -errno : n > 0;
        sigprocmask(SIG_SETMASK, &before, NULL);
        return stop_signal() ? -EINTR : r;
}
