/* SPDX-License-Identifier: Apache-2.0
 * dlopen(3) and dlsym(3) for a table of functions */
#include "base/library.h"

#include "base/str.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/crypto.h>

int library_load(const char *name, const char *functions, const char *package, void *table,
                 char **ret_why) {
        if (PORTABLE) {
                *ret_why = xstrdup("this build loads no libraries; install the nodestrap package");
                return -ELIBACC;
        }
        void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        bool whole = library;
        char *slot = table;
        for (const char *f = functions; whole && *f; f += strlen(f) + 1) {
                bool optional = *f == '?';
                void *address = dlsym(library, f + optional);
                /* C cannot cast a data pointer to a function pointer */
                memcpy(slot, &address, sizeof address);
                slot += sizeof address;
                whole = address || optional;
        }
        if (whole)
                return 0;
        const char *why = dlerror() ?: "it lacks a function";
        *ret_why = package ? xasprintf("%s; install %s", why, package) : xstrdup(why);
        return -ELIBACC;
}

void library_settle_libcrypto(void) {
        /* openssl.cnf is for the libcrypto of the machine, and may name providers that only it can load */
        (void)!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_NO_ATEXIT |
                                           (PORTABLE ? OPENSSL_INIT_NO_LOAD_CONFIG : 0),
                                   NULL);
}
