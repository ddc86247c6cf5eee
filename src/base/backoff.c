/* SPDX-License-Identifier: Apache-2.0
 * Full jitter: thousands of nodes that boot in the same second must not retry in the same second. */

#include "base/time.h"

#include <sys/random.h>
#include <time.h>

#define SLICE_USEC (250 * USEC_PER_MSEC)

static uint64_t random_usec(uint64_t span) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
                /* early boot without entropy: the clock must do */
                random = now_usec() * 0x9e3779b97f4a7c15u;
        return random % (span + 1);
}

uint64_t backoff_usec(unsigned n, uint64_t base_usec, uint64_t cap_usec) {
        uint64_t span = base_usec;
        while (n-- > 0 && span < cap_usec)
                span *= 2;
        return random_usec(MIN(span, cap_usec));
}

uint64_t backoff_apart_usec(uint64_t last_usec, uint64_t base_usec, uint64_t cap_usec) {
        uint64_t most = 3 * MAX(last_usec, base_usec), usec = base_usec + random_usec(most - base_usec);
        return MIN(usec, cap_usec);
}

/* In slices: the signal may arrive just before the sleep, or in another thread. */
void sleep_usec(uint64_t usec) {
        uint64_t now = now_usec(), end = now + usec;
        for (; !stop_signal() && now < end; now = now_usec()) {
                struct timespec t = { .tv_nsec = (long)MIN(end - now, SLICE_USEC) * 1000 };
                (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
        }
}
