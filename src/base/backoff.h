/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The wait between two attempts. */
#include "base/macro.h"

/* The wait after failure n (from 0): 0 to MIN(cap, base * 2^n), "full jitter":
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
uint64_t backoff_usec(unsigned n, uint64_t base_usec, uint64_t cap_usec);
/* The wait after a wait of last_usec (0: none), from base to three times that, at most cap: "decorrelated
 * jitter" of the same article. For a throttled client: never short. */
uint64_t backoff_apart_usec(uint64_t last_usec, uint64_t base_usec, uint64_t cap_usec);
/* Ends early when a signal asks to stop (base/stop.h), in any thread. */
void sleep_usec(uint64_t usec);
