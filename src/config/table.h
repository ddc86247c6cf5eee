/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A packed table: cells one behind another, a NUL behind each, and one more behind the last. */
#include "base/str.h"

typedef struct Table { const unsigned char *packed; const size_t *size; const char *text; } Table;
/* Unpacks it the first time; it stays. */
_nonnull_ const char *table_text(Table *t);
/* The cell at *at, which is at the next one then. */
static inline const char *table_cell(const char **at) {
        const char *cell = *at;
        *at += strlen(cell) + 1;
        return cell;
}
static inline unsigned two_digits(const char *s) {
        return (unsigned)(s[0] - '0') * 10 + (unsigned)(s[1] - '0');
}
