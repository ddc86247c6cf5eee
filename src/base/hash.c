/* SPDX-License-Identifier: Apache-2.0
 * Bytes → SHA-256, HMAC. The calls of OpenSSL 1.1 are used on purpose: they need none of the set-up of the
 * newer ones (providers, error strings, engines, openssl.cnf), which takes longer than all the rest of a
 * configuration phase. */
#include "base/hash.h"

#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>
#include <stdio.h>

#define BLOCK SHA256_CBLOCK

void sha256_hex(const void *data, size_t size, char ret[static 65]) {
        unsigned char digest[SHA256_DIGEST_LENGTH];
        SHA256_CTX context;
        if (SHA256_Init(&context) != 1 || SHA256_Update(&context, data, size) != 1 ||
            SHA256_Final(digest, &context) != 1)
                abort();
        for (size_t i = 0; i < sizeof digest; i++)
                snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* SHA-256 over the key block, changed by pad, and data behind it. */
static void pass(const unsigned char key[static BLOCK], unsigned char pad, const void *data, size_t size,
                 unsigned char ret[static 32]) {
        unsigned char block[BLOCK];
        SHA256_CTX context;
        for (size_t i = 0; i < BLOCK; i++)
                block[i] = key[i] ^ pad;
        if (SHA256_Init(&context) != 1 || SHA256_Update(&context, block, BLOCK) != 1 ||
            SHA256_Update(&context, data, size) != 1 || SHA256_Final(ret, &context) != 1)
                abort();
        explicit_bzero(block, sizeof block);
        explicit_bzero(&context, sizeof context);
}

void hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                 unsigned char ret[static 32]) {
        unsigned char block[BLOCK] = {}, inner[32];
        SHA256_CTX context;
        if (key_size <= BLOCK)
                memcpy(block, key, key_size);
        else if (SHA256_Init(&context) != 1 || SHA256_Update(&context, key, key_size) != 1 ||
                 SHA256_Final(block, &context) != 1)
                abort();
        pass(block, 0x36, data, size, inner);
        pass(block, 0x5c, inner, sizeof inner, ret);
        explicit_bzero(block, sizeof block);
}
