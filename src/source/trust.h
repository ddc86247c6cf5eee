/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* TRUSTED_DIR: public keys (*.pub) whose owners may sign configurations, and certificates (*.pem) with which
 * AWS signs the identity of an instance. */
#include "base/root.h"
#include "source/ed25519.h"

typedef struct TrustedKey { char *file, *name; Ed25519Key key; } TrustedKey;    /* "ops.pub", "sha256:…" */
typedef struct Trust {
        TrustedKey *keys; size_t n;     /* in the order of file names */
        char *certificates;             /* PEM, all of them; NULL: none */
} Trust;
Trust *trust_free(Trust *t);
DEFINE_CLEANUP(Trust *, trust_free)
/* *ret is NULL, which accepts unsigned configurations, only where the directory is missing or empty. Names
 * with a dot in front do not count, except those of keys. A negative errno with a diagnostic where it cannot
 * be read, a key is not usable, or others than root could change one. */
_must_check_ _nonnull_ int trust_load(const Root *root, Trust **ret, Diag *diag);
/* One key file of the caller, with any owner. */
_must_check_ _nonnull_ int trust_load_file(const Root *root, const char *path, Trust **ret, Diag *diag);
