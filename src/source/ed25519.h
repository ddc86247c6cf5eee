/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ed25519 (RFC 8032) by libcrypto, and its keys as `openssl genpkey -algorithm ed25519` and `openssl pkey
 * -pubout` write them (RFC 8410). Nothing of libcrypto is initialised before the first call. */
#include "base/error.h"

#define ED25519_KEY       32
#define ED25519_SIGNATURE 64

/* A public key, or the secret that a private one is made of. */
typedef struct Ed25519Key { unsigned char bytes[ED25519_KEY]; } Ed25519Key;

/* PEM → key: one block of that kind and nothing else. -EINVAL for any other text, and *ret_why (static
 * text) says what it is. */
_must_check_ _nonnull_ int ed25519_parse_public(const char *text, size_t size, Ed25519Key *ret,
                                                const char **ret_why);
_must_check_ _nonnull_ int ed25519_parse_private(const char *text, size_t size, Ed25519Key *ret,
                                                 const char **ret_why);
/* "sha256:0123…", which the caller frees: what `openssl pkey -pubin -outform DER | sha256sum` says of a
 * public key. Wants hash_load(). */
_malloc_ _nonnull_ char *ed25519_name(const Ed25519Key *key);
/* 1 where that is a signature of data by the owner of this public key, 0 where it is none. Both of these:
 * -ENOTSUP with a diagnostic where libcrypto's configuration allows no Ed25519. */
_must_check_ _nonnull_ int ed25519_verify(const Ed25519Key *key, const void *data, size_t size,
                                          const unsigned char signature[static ED25519_SIGNATURE],
                                          Diag *diag);
/* With a private key; its public one, too. */
_must_check_ _nonnull_ int ed25519_sign(const Ed25519Key *key, const void *data, size_t size,
                                        unsigned char ret[static ED25519_SIGNATURE], Ed25519Key *ret_public,
                                        Diag *diag);
