/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Microseconds: spans, and instants of CLOCK_MONOTONIC, since the time of day may jump. */
#include "base/macro.h"
#include <signal.h>
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

/* The wait after failure n (from 0): 0 to MIN(cap, base * 2^n), "full jitter":
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
uint64_t backoff_usec(unsigned n, uint64_t base_usec, uint64_t cap_usec);
/* The wait after a wait of last_usec (0: none), from base to three times that, at most cap: "decorrelated
 * jitter" of the same article. For a throttled client: never short. */
uint64_t backoff_apart_usec(uint64_t last_usec, uint64_t base_usec, uint64_t cap_usec);
/* Ends early when a signal asks to stop (below), in any thread. */
void sleep_usec(uint64_t usec);

/* A request to stop: SIGTERM, SIGINT, or the SIGHUP of a lost session. Work goes on until it can report why
 * it ended, so look here after an interrupted wait and before the next one. */


/* Those that are not ignored. */
_nonnull_ void stop_signals(sigset_t *ret);
/* Only notes them from now on. */
void stop_catch(void);
/* The first signal, or 0. */
int stop_signal(void);
/* "SIGTERM" */
const char *stop_name(int signal);
/* Sleeps until fd is readable (1), an instant or another signal (0); -EINTR: asked to stop, now or before. */
_must_check_ int stop_wait(int fd, uint64_t until_usec);
