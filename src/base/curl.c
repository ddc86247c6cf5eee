/* SPDX-License-Identifier: Apache-2.0
 * The functions of libcurl.so.4, by dlopen: only a process that speaks TLS pays for the libraries behind
 * it. */
#include "base/curl.h"

#include "base/library.h"

#include <openssl/crypto.h>

static const Symbol symbols[] = {
        { "curl_easy_init",      offsetof(Curl, init)     },
        { "curl_easy_cleanup",   offsetof(Curl, cleanup)  },
        { "curl_easy_setopt",    offsetof(Curl, setopt)   },
        { "curl_easy_perform",   offsetof(Curl, perform)  },
        { "curl_easy_getinfo",   offsetof(Curl, getinfo)  },
        { "curl_easy_strerror",  offsetof(Curl, strerror) },
        { "curl_getdate",        offsetof(Curl, getdate)  },
        { "curl_slist_append",   offsetof(Curl, append)   },
        { "curl_slist_free_all", offsetof(Curl, free_all) },
};

/* Leaves out the texts of libcrypto's errors, half a MiB that no message shows: libssl's are loaded, and the
 * texts about certificates (X509_verify_cert_error_string(3)) are no part of either. */
int curl_load(Curl *ret, char **ret_why) {
        (void)!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, NULL);
        return library_load("libcurl.so.4", symbols, ARRAY_SIZE(symbols), ret, ret_why);
}

bool curl_may_quote_proxy(const char *error) {
        return startswith(error, "Unsupported proxy") || strstr(error, "://") || strchr(error, '@');
}
