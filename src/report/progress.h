/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What base/progress.h's lines say. */
#include "base/macro.h"
#include "base/root.h"
#include <jansson.h>

typedef struct ProgressLine {
        int64_t usec;
        int pid;
        const char *word, *what;        /* of the text, with NUL in place of the tabs */
} ProgressLine;

/* Takes whole lines off the front of text (NUL behind it), which it writes into, and hands over those that
 * are well formed. Returns how many bytes that were. */
_nonnull(1, 2) size_t progress_parse(char *text, void (*f)(const ProgressLine *line, void *userdata),
                                     void *userdata);
/* Keeps what a line says in userdata, an object with the processes that have not ended, by their numbers. */
_nonnull_ void progress_take(const ProgressLine *line, void *userdata);
/* Of a process, a step that it has in hand; NULL where it has not. */
_nonnull(2) const json_t *progress_step(const json_t *process, const char *id);
/* Each init that is at work now: [{"pid", "phases", "beginUsec", "steps": [{"id", "beginUsec"}]}], with the
 * steps that it has in hand. Empty where nobody says so. A new reference. */
_nonnull_ json_t *progress_read(const Root *root);
