/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One verdict, and where it goes: status files, journal, console, the last line on stderr. Nothing of it can
 * hold a secret. */
#include "base/error.h"
#include <jansson.h>
#include <time.h>

typedef struct Verdict {
        const char *word, *code;
        ExitCode exit_code;
        const char *step;               /* NULL where all went well, */
        const char *phase;              /* as this, in which it failed, */
        char *text;                     /* and this; owned */
        bool tolerated;                 /* the node joins all the same, tainted: nothing has to stop for it */
} Verdict;

/* Texts may quote a unit's words; JSON bears only UTF-8. NULL becomes null. */
json_t *text_json(const char *text);
/* verdict, code, exit, step, text and planId */
_nonnull(1, 2) void verdict_put(json_t *object, const Verdict *v, const char *plan_id);
/* An entry with fields in the journal. */
_nonnull_ void verdict_record(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                              const char *line);
/* The same, and the line on the console. */
_nonnull_ void verdict_announce(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                                const char *line);
/* Has systemd started this process for a unit? */
_must_check_ bool verdict_is_of_unit(void);
/* The last line on stderr. */
_nonnull_ void verdict_tell(const Verdict *v, const char *line);
/* "2026-01-02T03:04:05Z", now, by a clock that may not be set yet. */
_malloc_ char *verdict_time(void);
