/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The wait between two attempts, which ends early where a signal asks to stop. */
#include "base/macro.h"

/* How long to wait after failure number n (from 0): anything from 0 to MIN(cap, base * 2^n), "full jitter":
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
uint64_t backoff_usec(unsigned n, uint64_t base_usec, uint64_t cap_usec);
/* How long to wait when the last wait took last_usec (0: there was none): anything from base to three times
 * that, cap at most, "decorrelated jitter" of the same article. No wait is short: for who is told that too
 * many ask. */
uint64_t backoff_apart_usec(uint64_t last_usec, uint64_t base_usec, uint64_t cap_usec);
/* Ends early where a signal asks to stop (base/stop.h), whichever thread had it. */
void sleep_usec(uint64_t usec);
