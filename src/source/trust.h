/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whom this machine believes: the public keys in TRUSTED_DIR, *.pub, whose owners may sign configurations;
 * and the certificates there, *.pem, by which AWS signs what instance this is. */
#include "base/root.h"
#include "source/ed25519.h"

typedef struct TrustedKey { char *file, *name; Ed25519Key key; } TrustedKey;    /* "ops.pub", "sha256:…" */
typedef struct Trust {
        TrustedKey *keys; size_t n;     /* in the order of their files' names */
        char *certificates;             /* PEM, one behind the other; NULL: none */
} Trust;
Trust *trust_free(Trust *t);
DEFINE_CLEANUP(Trust *, trust_free)
/* *ret is NULL, and anything is taken unsigned, only where the directory is not there or empty (names that
 * begin with a dot do not count, but for hidden keys). Where it cannot be read, as behind a link to nothing,
 * a key cannot be used, or others than root could change one, a negative errno with a diagnostic. */
_must_check_ _nonnull_ int trust_load(const Root *root, Trust **ret, Diag *diag);
/* The one key of a file of the caller's, whoever owns it. */
_must_check_ _nonnull_ int trust_load_file(const Root *root, const char *path, Trust **ret, Diag *diag);
