/* SPDX-License-Identifier: Apache-2.0
 * The functions of libcurl.so.4, by dlopen: only a process that speaks TLS pays for the libraries behind
 * it. */
#include "base/curl.h"

#include <openssl/crypto.h>

/* Leaves out the texts of libcrypto's errors, half a MiB that no message shows: libssl's are loaded, and the
 * texts about certificates (X509_verify_cert_error_string(3)) are no part of either. */
int curl_load(Curl *ret, char **ret_why) {
        (void)!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, NULL);
        return library_load("libcurl.so.4", CURL_FUNCTIONS(LIBRARY_NAME), ret, ret_why);
}

bool curl_may_quote_proxy(const char *error) {
        return startswith(error, "Unsupported proxy") || strstr(error, "://") || strchr(error, '@');
}
