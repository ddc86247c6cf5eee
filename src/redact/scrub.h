/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Texts that leave the machine, without the secrets in them: those that are known word by word, however they
 * are written, and whatever looks like one. */
#include "base/str.h"

#define HIDDEN "(hidden)"
/* Shorter ones are not looked for: half of all words would be hidden. */
#define SECRET_MIN 6

/* A zeroed one is empty. */
typedef struct Secrets { char **items; size_t n; bool sorted; size_t first[257]; } Secrets;
void secrets_done(Secrets *s);
/* Hides value from now on, also as JSON, systemd, URLs and base64 write it, and each of its lines. */
_nonnull_ void secrets_add(Secrets *s, const char *value);
/* "Environment=" of a unit or "DefaultEnvironment=" of system.conf, with blanks where systemd.syntax(7) takes
 * them: where the variables begin. 0: the line is another. */
_nonnull_ size_t environment_begin(const char *line);
/* The text with HIDDEN in the place of secrets; the caller's. */
_malloc_ _nonnull_ char *secrets_scrub(Secrets *s, const char *text, size_t size, size_t *ret_size);
/* The same of a message of ours: what looks like a secret is hidden in what it quotes, but not in its own
 * words. The caller's. */
_malloc_ _nonnull_ char *secrets_hide(Secrets *s, const char *message);
