/* SPDX-License-Identifier: Apache-2.0
 * Keys as text ⇄ 32 bytes, and EVP_DigestVerify(3) with them. All keys have the same length and prefix in
 * PEM (RFC 8410, 4 and 7), so reading them does not need the decoders of libcrypto. */
#include "source/ed25519.h"

#include "base/hash.h"
#include "base/library.h"
#include "base/str.h"
#include "doc/doc.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#define BEGIN "-----BEGIN "
#define END   "-----END "

typedef struct KeyKind { const char *label, *why; unsigned char prefix[16]; size_t n; } KeyKind;
static const KeyKind public_kind = {
        "PUBLIC KEY-----",
        "it is not an Ed25519 public key in PEM, as openssl pkey -pubout writes it",
        { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 },
        12
};
static const KeyKind private_kind = {
        "PRIVATE KEY-----",
        "it is not an Ed25519 private key in PEM, as openssl genpkey -algorithm ed25519 writes it",
        { 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 },
        16
};

/* The text between "-----BEGIN LABEL" and "-----END LABEL", in place; or NULL. */
static char *inside(char *text, const char *label) {
        _free_ char *begin = xasprintf(BEGIN "%s", label), *end = xasprintf(END "%s", label);
        if (!startswith(text, begin) || !endswith(text + strlen(begin), end))
                return NULL;
        text[strlen(text) - strlen(end)] = 0;
        return text + strlen(begin);
}

static int parse(const KeyKind *kind, const char *text, size_t size, Ed25519Key *ret, const char **ret_why) {
        char *der = NULL;
        size_t n = 0;
        *ret_why = kind->why;
        if (strlen(text) != size)
                return -EINVAL;
        char *pem = str_strip(text), *body = inside(pem, kind->label);
        bool valid = body && base64_decode(body, strlen(body), true, &der, &n) >= 0 &&
                     n == kind->n + ED25519_KEY && memcmp(der, kind->prefix, kind->n) == 0;
        if (valid)
                memcpy(ret->bytes, der + kind->n, ED25519_KEY);
        if (der)
                OPENSSL_cleanse(der, n);
        OPENSSL_cleanse(pem, strlen(pem));
        if (body)
                OPENSSL_cleanse(body, strlen(body));
        FREE_ALL(der, pem);
        return valid ? 0 : -EINVAL;
}

int ed25519_parse_public(const char *text, size_t size, Ed25519Key *ret, const char **ret_why) {
        int r = parse(&public_kind, text, size, ret, ret_why);
        if (r < 0 && strstr(text, "PRIVATE KEY-----"))
                *ret_why = "it is a private key, which belongs to the signer; put the output of openssl pkey "
                           "-in KEY.pem -pubout here";
        return r;
}

int ed25519_parse_private(const char *text, size_t size, Ed25519Key *ret, const char **ret_why) {
        int r = parse(&private_kind, text, size, ret, ret_why);
        if (r < 0 && strstr(text, BEGIN "ENCRYPTED PRIVATE KEY"))
                *ret_why = "it has a passphrase, which nodestrap cannot ask for; run umask 077 and openssl "
                           "pkey -in KEY.pem -out PLAIN.pem, sign with PLAIN.pem, then remove it";
        return r;
}

char *ed25519_name(const Ed25519Key *key) {
        unsigned char der[12 + ED25519_KEY];
        char hex[65];
        memcpy(der, public_kind.prefix, public_kind.n);
        memcpy(der + public_kind.n, key->bytes, ED25519_KEY);
        sha256_hex(der, sizeof der, hex);
        return xasprintf("sha256:%s", hex);
}

static void settle(void) {
        library_settle_libcrypto();
        (void)!OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL);
}

static int refuse(Diag *diag) {
        return diag_error(
                diag, -ENOTSUP, CAUSE_CRYPTO,
                "libcrypto has no Ed25519, which signatures need%s; see openssl list -signature-algorithms "
                "and openssl.cnf",
                EVP_default_properties_is_fips_enabled(NULL)
                        ? ": fips=yes allows only the FIPS provider, and this version of it lacks Ed25519"
                        : "");
}

int ed25519_verify(const Ed25519Key *key, const void *data, size_t size,
                   const unsigned char signature[static ED25519_SIGNATURE], Diag *diag) {
        settle();
        EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->bytes, ED25519_KEY);
        EVP_MD_CTX *context = pkey ? EVP_MD_CTX_new() : NULL;
        int r = -ENOTSUP;
        if (context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) == 1)
                r = EVP_DigestVerify(context, signature, ED25519_SIGNATURE, data, size) == 1;
        EVP_MD_CTX_free(context);
        EVP_PKEY_free(pkey);
        return r < 0 ? refuse(diag) : r;
}

int ed25519_sign(const Ed25519Key *key, const void *data, size_t size,
                 unsigned char ret[static ED25519_SIGNATURE], Ed25519Key *ret_public, Diag *diag) {
        size_t n = ED25519_SIGNATURE, m = ED25519_KEY;
        settle();
        EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->bytes, ED25519_KEY);
        EVP_MD_CTX *context = pkey ? EVP_MD_CTX_new() : NULL;
        bool done = context && EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) == 1 &&
                    EVP_DigestSign(context, ret, &n, data, size) == 1 && n == ED25519_SIGNATURE &&
                    EVP_PKEY_get_raw_public_key(pkey, ret_public->bytes, &m) == 1 && m == ED25519_KEY;
        EVP_MD_CTX_free(context);
        EVP_PKEY_free(pkey);
        return done ? 0 : refuse(diag);
}
