/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a command answers: the last thing that it does. */
#include "base/error.h"
#include <jansson.h>

/* What is printed from here on is all that is left to do: a reader that goes away (head) ends the program, as
 * in any pipeline. */
void output_begin(void);
/* Did all of it get there? -EIO with a diagnostic where not. */
_must_check_ _nonnull_ int output_end(Diag *diag);
/* A text as it is, on stdout. */
_must_check_ _nonnull_ int output_text(const char *text, Diag *diag);
/* Bytes that are no text, on stdout: a terminal is refused. */
_must_check_ _nonnull_ int output_bytes(const void *data, size_t size, Diag *diag);
/* Into a file, in one step and with mode 0600, or into a pipe or device of the caller's or in /dev. A link
 * to a file is refused. Where data is NULL nothing is written, and told what can be told beforehand. */
_must_check_ _nonnull(1, 4) int output_file(const char *file, const void *data, size_t size, Diag *diag);
/* On stdout, or where file is not NULL into that as output_file() does, since it may hold secrets. NULL, or
 * what is not UTF-8: -EILSEQ. */
_must_check_ _nonnull(3) int output_json(const json_t *json, const char *file, Diag *diag);
