/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the lines of base/progress.h. */
#include "base/macro.h"
#include "base/root.h"
#include <jansson.h>

typedef struct ProgressLine {
        int64_t usec;
        int pid;
        const char *word, *what;        /* point into the text */
} ProgressLine;

/* Passes each well-formed line of text to f, and writes NULs into the text. Returns the size of the whole
 * lines. */
_nonnull(1, 2) size_t progress_parse(char *text, void (*f)(const ProgressLine *line, void *userdata),
                                     void *userdata);
/* userdata: a JSON object with the processes that have not ended, by pid. */
_nonnull_ void progress_take(const ProgressLine *line, void *userdata);
/* A current step of the process, or NULL. */
_nonnull(2) const json_t *progress_step(const json_t *process, const char *id);
/* Each init that runs now, with its current steps: [{"pid", "phases", "beginUsec", "steps": [{"id",
 * "beginUsec"}]}]. A new reference. */
_nonnull_ json_t *progress_read(const Root *root);
