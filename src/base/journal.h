/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a unit said last, for a message about it. */
#include "base/str.h"

/* The last max lines the unit left since that instant (CLOCK_MONOTONIC), oldest first, one printable line
 * each; of a Go program that panicked, up to what it panicked at; what systemd said about it where it said
 * nothing itself; NULL where there are none. */
_nonnull_ char **journal_tail(const char *unit, uint64_t since_usec, size_t max);
/* The error that a log line names (klog and logrus, also in JSON), without its escapes. A line that names
 * none: all of it, but for the head that klog writes. The caller's. */
_malloc_ _nonnull_ char *log_error(const char *line);
/* Adds ` and says "…"` to a sentence, from the newest line of the unit since then that has both words. It
 * quotes log_error() of it. false: none has. */
_nonnull_ bool journal_quote(Text *to, const char *unit, uint64_t since_usec, const char *word,
                             const char *other);
/* The same of why kubelet ended (kubernetes:staging/src/k8s.io/component-base/cli/run.go). */
_nonnull_ bool journal_quote_kubelet(Text *to, const char *unit, uint64_t since_usec);
