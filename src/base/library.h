/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A shared library that only some processes need, loaded by those with dlopen(3): its functions are called by a
 * table of pointers. */
#include "base/macro.h"

typedef struct Symbol {
        const char *name;
        size_t offset;                  /* of the pointer in the table */
        bool optional;                  /* NULL where the library is too old for it */
} Symbol;

/* Fills the table with the addresses of these symbols. -ELIBACC where there is no such library, or it lacks one
 * of them: then *ret_why, the caller's, says so, and the table is not to be used. The library stays for the life
 * of the process. */
_must_check_ _nonnull_ int library_load(const char *name, const Symbol *symbols, size_t n, void *table,
                                        char **ret_why);
