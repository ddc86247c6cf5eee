/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 and HMAC by the provider of the libcrypto configuration. */
#include "base/error.h"

/* Finds both, once. -ENOTSUP: the libcrypto configuration allows no provider ("fips=yes" without a FIPS one).
 * Call it before any change of the machine: the functions below abort in that case. */
_must_check_ _nonnull_ int hash_load(Diag *diag);
/* 64 hexadecimal digits and NUL */
void sha256_hex(const void *data, size_t size, char ret[static 65]);
/* RFC 2104 */
void hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                 unsigned char ret[static 32]);
