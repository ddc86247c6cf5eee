/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* In place of src/base/time.c and src/base/backoff.c. Time passes only in a sleep, and by a microsecond
 * with each look at the clock, so that every loop with a deadline ends. One source file of a
 * program includes it. */
#include "base/str.h"
#include "base/time.h"

static uint64_t fake_now = USEC_PER_SEC;

uint64_t now_usec(void) {
        return fake_now++;
}

void sleep_usec(uint64_t usec) {
        fake_now += usec;
}

uint64_t backoff_usec(unsigned n, uint64_t base_usec, uint64_t cap_usec) {
        return MIN(base_usec << MIN(n, 10U), cap_usec);
}

uint64_t backoff_apart_usec(uint64_t last_usec, uint64_t base_usec, uint64_t cap_usec) {
        return MIN(MAX(last_usec, base_usec), cap_usec);
}

char *usec_text(int64_t usec) {
        return xasprintf("%lld us", (long long)usec);
}

double usec_seconds(uint64_t usec) {
        return (double)usec / USEC_PER_SEC;
}

char *time_text(int64_t seconds) {
        return xasprintf("%lld s after 1970", (long long)seconds);
}

int parse_timespan(const char *s, uint64_t *ret_usec) {
        return parse_u64(s, ret_usec);
}
