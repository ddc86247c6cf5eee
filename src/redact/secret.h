/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/macro.h"
#include <jansson.h>

/* Does this key of free-form settings have a secret value? */
_nonnull(1) bool key_is_secret(const char *key, const json_t *value);
/* The same of options and variables (X-Amz-Security-Token). value: a text that begins with it, or "". */
_nonnull_ bool name_is_secret(const char *name, size_t size, const char *value);
/* Does it hold a URL with a user or a password? */
_nonnull_ bool text_holds_password(const char *text);
/* The same of a key, which may be a URL without a scheme. */
_nonnull_ bool key_holds_password(const char *key);
/* Does it hold a secret key, or such a URL? */
bool json_holds_secret(const json_t *json);
/* The same of options and their values. */
bool words_hold_secret(char *const *words);
