/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hides secrets in texts that leave the machine: known values in all forms, and all that looks like one. */
#include "base/str.h"

#define HIDDEN "(hidden)"
/* Shorter values are not searched for, as they would hide half of all words. */
#define SECRET_MIN 6

typedef struct Secrets { char **items; size_t n; bool sorted; size_t first[257]; } Secrets;
void secrets_done(Secrets *s);
/* Hides value from now on, and each of its lines, also in the forms of JSON, systemd, URLs and base64. */
_nonnull_ void secrets_add(Secrets *s, const char *value);
/* Where the variables begin in a line "Environment=" or "DefaultEnvironment=", with the blanks that
 * systemd.syntax(7) allows. 0: another line. */
_nonnull_ size_t environment_begin(const char *line);
/* The text with HIDDEN in place of secrets, for the caller to free. */
_malloc_ _nonnull_ char *secrets_scrub(Secrets *s, const char *text, size_t size, size_t *ret_size);
/* The same of a message of ours: patterns are hidden only in its quotations, not in its own words. */
_malloc_ _nonnull_ char *secrets_hide(Secrets *s, const char *message);
