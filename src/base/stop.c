/* SPDX-License-Identifier: Apache-2.0
 * SIGTERM, SIGINT and SIGHUP → a number. Without SA_RESTART, so that a wait ends with EINTR. */

#include "base/time.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

static const struct { int signal; const char *name; } names[] = {
        { SIGTERM, "SIGTERM" }, { SIGINT, "SIGINT" }, { SIGHUP, "SIGHUP" },
};
static volatile sig_atomic_t caught;

static void remember_signal(int signal) {
        if (!caught)
                caught = signal;
}

/* nohup(1) ignores SIGHUP. Blocking it would deliver it later anyway: sigpending(2). */
void stop_signals(sigset_t *ret) {
        struct sigaction hangup = {};
        sigemptyset(ret);
        sigaddset(ret, SIGTERM);
        sigaddset(ret, SIGINT);
        if (sigaction(SIGHUP, NULL, &hangup) < 0 || hangup.sa_handler != SIG_IGN)
                sigaddset(ret, SIGHUP);
}

void stop_catch(void) {
        struct sigaction action = { .sa_handler = remember_signal };
        sigset_t signals;
        sigemptyset(&action.sa_mask);
        stop_signals(&signals);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (sigismember(&signals, names[i].signal))
                        (void)sigaction(names[i].signal, &action, NULL);
}

int stop_signal(void) {
        return caught;
}

const char *stop_name(int signal) {
        return PICK(n, names, ARRAY_SIZE(names), n->signal == signal, n->name, "a signal");
}

/* Unblocks signals only in the sleep: one between check and sleep would be lost. */
int stop_wait(int fd, uint64_t until_usec) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        sigset_t held, before;

        stop_signals(&held);
        sigprocmask(SIG_BLOCK, &held, &before);
        uint64_t now = now_usec(), left = until_usec > now ? until_usec - now : 0;
        struct timespec t = { (time_t)(left / USEC_PER_SEC), (long)(left % USEC_PER_SEC * 1000) };
        int n = stop_signal() ? 0 : ppoll(&p, 1, &t, &before), r = n < 0 && errno != EINTR ? -errno : n > 0;
        sigprocmask(SIG_SETMASK, &before, NULL);
        return stop_signal() ? -EINTR : r;
}
