/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which settings of a user are secret: nothing here knows the secrets themselves. */
#include "base/macro.h"
#include <jansson.h>

/* Does such a key of free-form settings have a secret behind it? */
_nonnull(1) bool key_is_secret(const char *key, const json_t *value);
/* Do options and variables of such a name (X-Amz-Security-Token, --bootstrap-token)? value: the text that
 * begins with what is assigned, "" where that is not known. */
_nonnull_ bool name_is_secret(const char *name, size_t size, const char *value);
/* Is there a URL with a user or a password in it? */
_nonnull_ bool text_holds_password(const char *text);
/* Is there a key that usually has a secret behind it? NULL holds none. */
bool json_holds_secret(const json_t *json);
/* The same of a command line's options and their values. */
bool words_hold_secret(char *const *words);
