/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a unit said last, for a message about it. */
#include "base/macro.h"

/* The last max lines the unit left since that instant (CLOCK_MONOTONIC), oldest first, one printable line
 * each; of a Go program that panicked, up to what it panicked at; what systemd said about it where it said
 * nothing itself; NULL where there are none. */
_nonnull_ char **journal_tail(const char *unit, uint64_t since_usec, size_t max);
