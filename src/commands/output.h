/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of a command, its last act. */
#include "base/error.h"
#include <jansson.h>

/* From here on SIGPIPE ends the program, as in any pipeline: a reader such as head may go away. */
void output_begin(void);
/* Was all of it written? -EIO with a diagnostic if not. */
_must_check_ _nonnull_ int output_end(Diag *diag);
_must_check_ _nonnull_ int output_text(const char *text, Diag *diag);
/* Bytes, on stdout; refuses a terminal. */
_must_check_ _nonnull_ int output_bytes(const void *data, size_t size, Diag *diag);
/* Writes a file in one step, mode 0600, or a pipe or device of the caller or in /dev. Refuses a link to a
 * file. Without data it writes nothing, and reports what it can in advance. */
_must_check_ _nonnull(1, 4) int output_file(const char *file, const void *data, size_t size, Diag *diag);
/* On stdout, or as output_file() does. NULL, or text that is not UTF-8: -EILSEQ. */
_must_check_ _nonnull(3) int output_json(const json_t *json, const char *file, Diag *diag);
