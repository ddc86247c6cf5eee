/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Microseconds: spans, and instants of CLOCK_MONOTONIC, since the time of day may jump. */
#include "base/macro.h"
#define USEC_PER_MSEC 1000ULL
#define USEC_PER_SEC  1000000ULL
uint64_t now_usec(void);
/* 0: it is over. */
static inline uint64_t usec_left(uint64_t until_usec) {
        uint64_t now = now_usec();
        return until_usec > now ? until_usec - now : 0;
}
/* "0.3 ms", "41.2 s" */
_malloc_ char *usec_text(int64_t usec);
/* Seconds for "%g": three digits, whole from 100 on. */
double usec_seconds(uint64_t usec);
/* "2026-01-02T03:04:05Z" of seconds since 1970 */
_malloc_ char *time_text(int64_t seconds);
/* "90", "90s", "5m", "1h30m", "250ms"; -EINVAL */
_must_check_ int parse_timespan(const char *s, uint64_t *ret_usec);
