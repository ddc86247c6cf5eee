/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 and HMAC over it, by the provider that libcrypto's configuration chooses. */
#include "base/error.h"

/* Finds the two, once; later calls say the same. -ENOTSUP with a diagnostic where the configuration of
 * libcrypto allows no provider that has them, as with "fips=yes" and no FIPS provider. What follows ends the
 * process in that case, so this comes before anything is changed. */
_must_check_ _nonnull_ int hash_load(Diag *diag);
/* "0123abcd…": lower-case hex of the SHA-256 of data; 64 characters and NUL. */
void sha256_hex(const void *data, size_t size, char ret[static 65]);
/* RFC 2104. */
void hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                 unsigned char ret[static 32]);
