/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A packed table of cells; a NUL ends each, and another one the table. */
#include "base/str.h"

typedef struct Table { const unsigned char *packed; const size_t *size; const char *text; } Table;
/* Unpacks it once. */
_nonnull_ const char *table_text(Table *t);
/* The cell at *at, which then points to the next one. */
static inline const char *table_cell(const char **at) {
        const char *cell = *at;
        *at += strlen(cell) + 1;
        return cell;
}
static inline unsigned two_digits(const char *s) {
        return (unsigned)(s[0] - '0') * 10 + (unsigned)(s[1] - '0');
}
