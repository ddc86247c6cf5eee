/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A verdict → status files, journal, console, stderr. It never has a secret. */
#include "base/error.h"
#include <jansson.h>
#include <time.h>

typedef struct Verdict {
        const char *word, *code;
        ExitCode exit_code;
        const char *step;               /* NULL if all is well, as */
        const char *phase;              /* the phase that failed, */
        char *text;                     /* and this message; owned */
        bool tolerated;                 /* the node joins with a taint */
} Verdict;

/* NULL becomes null. Replaces text that is not UTF-8, which units may print. */
json_t *text_json(const char *text);
/* Sets verdict, code, exit, step, text and planId. */
_nonnull(1, 2) void verdict_put(json_t *object, const Verdict *v, const char *plan_id);
/* Writes a journal entry with fields. */
_nonnull_ void verdict_record(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                              const char *line);
/* The same, and a line on the console. */
_nonnull_ void verdict_announce(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                                const char *line);
/* Did systemd start this process for a unit? */
_must_check_ bool verdict_is_of_unit(void);
/* Prints the last line on stderr. */
_nonnull_ void verdict_tell(const Verdict *v, const char *line);
/* Now, "2026-01-02T03:04:05Z"; the clock may not be set yet. */
_malloc_ char *verdict_time(void);
