/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A shared library that only some processes need, loaded by those: a table of pointers takes the place of
 * linking. */
#include "base/macro.h"

typedef struct Symbol {
        const char *name;
        size_t offset;                  /* of the pointer in the table */
        bool optional;                  /* NULL where the library is too old for it */
} Symbol;

/* 0 and the table is filled; or -ELIBACC, *ret_why, the caller's, and a table that is not to be used. The
 * library stays for the life of the process. */
_must_check_ _nonnull_ int library_load(const char *name, const Symbol *symbols, size_t n, void *table,
                                        char **ret_why);
