/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A packed table: cells one behind another, a NUL behind each, and one more behind the last. */
#include "base/macro.h"
#include <stddef.h>

typedef struct Table { const unsigned char *packed; const size_t *size; const char *text; } Table;
/* Unpacks it the first time; it stays. */
_nonnull_ const char *table_text(Table *t);
