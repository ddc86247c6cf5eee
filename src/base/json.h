/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is wanted of jansson again and again. Texts are UTF-8: others would be left out. */
#include "base/macro.h"
#include <jansson.h>

/* The text at key; "" where there is none, also where object is none. */
_nonnull(2) const char *json_get_text(const json_t *object, const char *key);
/* The same as a copy, the caller's; NULL where it is "". */
_must_check_ _nonnull(2) char *json_copy_text(const json_t *object, const char *key);
/* Nothing is set where the value is NULL. */
_nonnull(1, 2) void json_set_text(json_t *object, const char *key, const char *text);
_nonnull(1, 2) void json_set_list(json_t *object, const char *key, char *const *texts);
/* A new reference; an empty list for NULL. */
json_t *json_list(char *const *texts);
/* As Go's MarshalIndent writes it, so many blanks a level (0: all on one line, as its Marshal does); without
 * a line end behind it. sorted: as maps, whose keys are in the order of their bytes; otherwise as structs,
 * in the objects' order. */
_malloc_ char *json_text(const json_t *json, unsigned indent, bool sorted);
/* The shortest digits that read back as value, which is finite: "1250", "0.1"; with exponents as JSON of Go
 * has them: "1e-7", "1e+21". */
_malloc_ char *real_text(double value, bool exponents);
typedef struct JsonMember { const char *key; size_t size; json_t *value; } JsonMember;
/* The members of an object, in its order or in that of the keys' bytes, and one without a key behind them.
 * The array is the caller's, what it points to the object's. */
_malloc_ JsonMember *json_members(const json_t *object, bool sorted);
/* Sets what stands at a path like "authentication/webhook/enabled"; makes the objects between. Takes the
 * value. */
_nonnull_ void json_put(json_t *object, const char *path, json_t *value);
