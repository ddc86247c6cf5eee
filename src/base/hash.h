/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 and HMAC over it, by libcrypto. */
#include "base/macro.h"

/* "0123abcd…": lower-case hex of the SHA-256 of data; 64 characters and NUL. */
void sha256_hex(const void *data, size_t size, char ret[static 65]);
/* RFC 2104. */
void hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                 unsigned char ret[static 32]);
