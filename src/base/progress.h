/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The steps of a running init, for `nodestrap status`. A line has microseconds of CLOCK_MONOTONIC, process
 * id, word and text, with tabs between. The word is start (text: the phases), end (its verdict), begin (a
 * step id), or the outcome of a step. Ids name paths and units, never secrets. Write errors are ignored. */
#include "base/paths.h"
#include "base/root.h"
#include "base/str.h"

#define PROGRESS_FILE RUN_DIR "/progress"

_nonnull_ void progress_add(Text *t, uint64_t usec, const char *word, const char *what);
/* Writes text and empties it. *fd: -1 at first; the caller closes it. */
_nonnull_ void progress_write(const Root *root, int *fd, Text *t);
/* Adds a line stamped now. */
_nonnull_ void progress_note(const Root *root, const char *word, const char *what);
