/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 and HMAC by EVP_MD_fetch(3) and EVP_MAC_fetch(3), once, which takes 0.7 ms. openssl.cnf chooses the
 * provider, in FIPS mode the validated one (fips_module(7)). */
#include "base/hash.h"

#include "base/library.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdio.h>

static EVP_MD *sha256;
static EVP_MAC *hmac;

static void fetch(void) {
        library_settle_libcrypto();
        (void)!OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL);
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
}

/* Other threads may sign meanwhile. */
static bool is_there(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, fetch);
        return sha256 && hmac;
}

int hash_load(Diag *diag) {
        if (is_there())
                return 0;
        if (EVP_default_properties_is_fips_enabled(NULL))
                return diag_error(diag, -ENOTSUP, CAUSE_CRYPTO,
                                  "libcrypto lacks SHA-256 and HMAC: openssl.cnf says fips=yes, but the FIPS "
                                  "provider is missing or fails the self-test; run `openssl list "
                                  "-providers`, and check openssl.cnf and fipsmodule.cnf");
        return diag_error(diag, -ENOTSUP, CAUSE_CRYPTO,
                          "libcrypto lacks SHA-256 and HMAC: no provider in openssl.cnf has them; run "
                          "`openssl list -providers`, and check openssl.cnf");
}

/* No fallback may compute instead; hash_load() has reported it. */
static _Noreturn void give_up(void) {
        fputs("nodestrap: libcrypto does not compute SHA-256\n", stderr);
        abort();
}

void sha256_hex(const void *data, size_t size, char ret[static 65]) {
        unsigned char digest[32];
        if (!is_there() || EVP_Digest(data, size, digest, NULL, sha256, NULL) != 1)
                give_up();
        for (size_t i = 0; i < sizeof digest; i++)
                snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

void hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                 unsigned char ret[static 32]) {
        const OSSL_PARAM parameters[] = {
                OSSL_PARAM_construct_utf8_string("digest", (char *)"SHA256", 0),
                OSSL_PARAM_construct_end(),
        };
        EVP_MAC_CTX *context = is_there() ? EVP_MAC_CTX_new(hmac) : NULL;
        size_t done = 0;
        if (!context || EVP_MAC_init(context, key, key_size, parameters) != 1 ||
            EVP_MAC_update(context, data, size) != 1 || EVP_MAC_final(context, ret, &done, 32) != 1)
                give_up();
        EVP_MAC_CTX_free(context);              /* erases the key */
}
