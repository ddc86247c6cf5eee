/* SPDX-License-Identifier: Apache-2.0
 * dlopen(3) and dlsym(3), for a whole table at once. */
#include "base/library.h"

#include "base/str.h"

#include <dlfcn.h>
#include <errno.h>

int library_load(const char *name, const Symbol *symbols, size_t n, void *table, char **ret_why) {
        void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        bool whole = library;
        for (size_t i = 0; whole && i < n; i++) {
                void *address = dlsym(library, symbols[i].name);
                /* copied, since C has no cast from a pointer to data to one to a function */
                memcpy((char *)table + symbols[i].offset, &address, sizeof address);
                whole = address || symbols[i].optional;
        }
        if (whole)
                return 0;
        *ret_why = xstrdup(dlerror() ?: "it lacks a function");
        return -ELIBACC;
}
