/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The last messages of a unit, for a diagnostic. */
#include "base/str.h"

/* line without its secrets; the caller frees it. */
typedef char *JournalHide(void *context, const char *line);
/* Each quoted line goes through it, before it is unescaped and cut. */
void journal_hide_with(JournalHide *hide, void *context);
/* The last max printable lines of a unit since an instant (CLOCK_MONOTONIC), oldest first. A Go program: up
 * to its panic. A silent unit: the lines of systemd about it. NULL: none. */
_nonnull_ char **journal_tail(const char *unit, uint64_t since_usec, size_t max);
/* The error in a log line (klog and logrus, also in JSON), unescaped; else the line without its klog head. */
_malloc_ _nonnull_ char *log_error(const char *line);
/* Adds ` and says "…"` with log_error() of the newest line that has both words; false: no such line. */
_nonnull_ bool journal_quote(Text *to, const char *unit, uint64_t since_usec, const char *word,
                             const char *other);
/* The same for a kubelet exit (kubernetes:staging/src/k8s.io/component-base/cli/run.go). */
_nonnull_ bool journal_quote_kubelet(Text *to, const char *unit, uint64_t since_usec);
