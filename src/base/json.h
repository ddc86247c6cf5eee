/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Helpers for jansson. Texts are UTF-8; jansson leaves out others. */
#include "base/macro.h"
#include <jansson.h>

/* The text at key, or ""; object may be NULL. */
_nonnull(2) const char *json_get_text(const json_t *object, const char *key);
/* The same, a copy; NULL for "". */
_must_check_ _nonnull(2) char *json_copy_text(const json_t *object, const char *key);
/* A NULL value sets nothing. */
_nonnull(1, 2) void json_set_text(json_t *object, const char *key, const char *text);
_nonnull(1, 2) void json_set_list(json_t *object, const char *key, char *const *texts);
/* A new reference; [] for NULL. */
json_t *json_list(char *const *texts);
/* The output of Go MarshalIndent with indent blanks a level (0: of Marshal), without a newline at the end.
 * sorted: keys as in a Go map, by bytes; else as in a struct, by insertion. */
_malloc_ char *json_text(const json_t *json, unsigned indent, bool sorted);
/* The shortest digits of a finite value: "1250", "0.1"; with exponents as in Go JSON: "1e-7", "1e+21". */
_malloc_ char *real_text(double value, bool exponents);
typedef struct JsonMember { const char *key; size_t size; json_t *value; } JsonMember;
/* The members of an object, and an empty one as the end. The caller frees the array only. */
_malloc_ JsonMember *json_members(const json_t *object, bool sorted);
/* Sets the value at a path like "authentication/webhook/enabled"; adds missing ones. Takes value. */
_nonnull_ void json_put(json_t *object, const char *path, json_t *value);
