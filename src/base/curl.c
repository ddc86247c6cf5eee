/* SPDX-License-Identifier: Apache-2.0
 * libcurl.so.4 by dlopen: only a process that speaks TLS loads the libraries behind it. */
#include "base/curl.h"

#include <sys/single_threaded.h>

/* Debian libcurl loads GnuTLS, 0.7 MiB for LDAP: https://gnutls.org/manual/html_node/Initialization.html */
#define NO_GNUTLS "GNUTLS_NO_IMPLICIT_INIT"

int curl_load(Curl *ret, char **ret_why) {
        library_settle_libcrypto();
        /* threads share the environment */
        bool implicit = __libc_single_threaded && !getenv(NO_GNUTLS);
        if (implicit)
                setenv(NO_GNUTLS, "1", 0);
        int r = library_load("libcurl.so.4", CURL_FUNCTIONS(LIBRARY_NAME), CURL_PACKAGE, ret, ret_why);
        if (implicit)
                unsetenv(NO_GNUTLS);    /* child programs may depend on it */
        return r;
}

bool curl_may_quote_proxy(const char *error) {
        return startswith(error, "Unsupported proxy") || strstr(error, "://") || strchr(error, '@');
}
