/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an init is doing, as it does it, for who looks on (`nodestrap status`): lines of four fields, with
 * tabs between them:
 *     microseconds of CLOCK_MONOTONIC, process id, word, what
 * word is start (what: its phases), end (its verdict), begin (the id of a step) or, when that has ended, its
 * outcome. Nothing of it can hold a secret: ids name paths and units. What cannot be written is no
 * failure. */
#include "base/paths.h"
#include "base/root.h"
#include "base/str.h"

#define PROGRESS_FILE RUN_DIR "/progress"

/* A line more of text. */
_nonnull_ void progress_add(Text *t, uint64_t usec, const char *word, const char *what);
/* Hands text over and empties it. *fd: -1 before the first time; the caller closes it. */
_nonnull_ void progress_write(const Root *root, int *fd, Text *t);
/* One line by itself, of now. */
_nonnull_ void progress_note(const Root *root, const char *word, const char *what);
