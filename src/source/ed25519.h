/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ed25519 (RFC 8032) by libcrypto, with keys as `openssl genpkey -algorithm ed25519` and `openssl pkey
 * -pubout` write them (RFC 8410). */
#include "base/error.h"

#define ED25519_KEY       32
#define ED25519_SIGNATURE 64

/* A public key, or the secret of a private one. */
typedef struct Ed25519Key { unsigned char bytes[ED25519_KEY]; } Ed25519Key;

/* PEM → key: exactly one block of that kind; -EINVAL with *ret_why (static text) for any other text. */
_must_check_ _nonnull_ int ed25519_parse_public(const char *text, size_t size, Ed25519Key *ret,
                                                const char **ret_why);
_must_check_ _nonnull_ int ed25519_parse_private(const char *text, size_t size, Ed25519Key *ret,
                                                 const char **ret_why);
/* "sha256:0123…" of a public key (its DER), for the caller to free. Needs hash_load(). */
_malloc_ _nonnull_ char *ed25519_name(const Ed25519Key *key);
/* 1: signed by the owner of this public key; 0: not. Both functions: -ENOTSUP with a diagnostic where the
 * configuration of libcrypto does not allow Ed25519. */
_must_check_ _nonnull_ int ed25519_verify(const Ed25519Key *key, const void *data, size_t size,
                                          const unsigned char signature[static ED25519_SIGNATURE],
                                          Diag *diag);
/* Also returns the public key of the private one. */
_must_check_ _nonnull_ int ed25519_sign(const Ed25519Key *key, const void *data, size_t size,
                                        unsigned char ret[static ED25519_SIGNATURE], Ed25519Key *ret_public,
                                        Diag *diag);
