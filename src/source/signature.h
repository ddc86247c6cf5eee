/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Signed configurations. The signature is the last part of a multipart message, of a type that cloud-init and
 * nodeadm ignore:
 *
 *      --BOUNDARY
 *      Content-Type: application/vnd.nodestrap.signature
 *      MIME-Version: 1.0
 *
 *      version: 1
 *      key: sha256:…             of the SubjectPublicKeyInfo of the public key
 *      serial: 1767323045        never lower than before
 *      account: 123456789012     optional, as the next two
 *      region: us-west-2
 *      cluster: NAME
 *      signature: BASE64
 *      --BOUNDARY--
 *
 * Ed25519 signs SIGNATURE_DOMAIN and each byte of the message, without outer base64 and gzip, up to BASE64.
 * After that only the closing delimiter and line ends may follow. So every reader of MIME sees only what was
 * signed. */
#include "aws/aws.h"
#include "config/config.h"
#include "source/ed25519.h"

#define SIGNATURE_TYPE   "application/vnd.nodestrap.signature"
#define SIGNATURE_DOMAIN "nodestrap signed configuration, version 1\n"

/* ---- trust.c ---- */
/* TRUSTED_DIR: public keys (*.pub) whose owners may sign configurations, and certificates (*.pem) with which
 * AWS signs the identity of an instance. */
typedef struct TrustedKey { char *file, *name; Ed25519Key key; } TrustedKey;    /* "ops.pub", "sha256:…" */
typedef struct Trust {
        TrustedKey *keys; size_t n;     /* in the order of file names */
        char *certificates;             /* PEM, all of them; NULL: none */
} Trust;
Trust *trust_free(Trust *t);
DEFINE_CLEANUP(Trust *, trust_free)
/* *ret is NULL, which accepts unsigned configurations, only where the directory is missing or empty. Names
 * that start with a dot do not count, except those of keys. A negative errno with a diagnostic where it
 * cannot be read, a key is not usable, or non-root users could change one. */
_must_check_ _nonnull_ int trust_load(const Root *root, Trust **ret, Diag *diag);
/* One key file of the caller, with any owner. */
_must_check_ _nonnull_ int trust_load_file(const Root *root, const char *path, Trust **ret, Diag *diag);

/* ---- signature.c ---- */
/* account, region and cluster: NULL for any. */
typedef struct Signature {
        char *source;                   /* "user-data" */
        char *key, *file;               /* "sha256:…", and its file */
        char *account, *region, *cluster;
        uint64_t serial;
} Signature;
typedef struct Signatures { Signature *items; size_t n; } Signatures;
_nonnull_ void signature_done(Signature *s);
_nonnull_ void signatures_done(Signatures *s);

/* Unpacks each blob that is neither empty nor guarded. Refuses one without a trusted signature. */
_must_check_ _nonnull_ int signatures_verify(Blobs *blobs, const Trust *trust, Signatures *ret, Diag *diag);
/* Does it look signed? */
_nonnull_ bool signature_is_there(const Blob *blob);
/* "user-data is signed with sha256:… (ops.pub), serial 5, for account …, cluster …" */
_malloc_ _nonnull_ char *signature_text(const Signature *s);
_nonnull_ bool signature_field_is_valid(const char *field, const char *value);
/* One multipart message, or texts that become its parts → the signed message, for the caller to free. From
 * fields, it uses serial, account, region, cluster. */
_must_check_ _nonnull_ int signature_make(Blobs *blobs, const Ed25519Key *private, const Signature *fields,
                                          char **ret, Diag *diag);

/* ---- binding.c ---- */
/* Fails for another account, region or cluster, and for a serial below the one that this machine applied
 * last. A check that is not possible fails, too; with only_looks it is a warning, and imds may be NULL. */
_must_check_ _nonnull(1, 2, 3, 4, 7) int signatures_check(const Root *root, const Signatures *signatures,
                                                          const Trust *trust, const Config *config,
                                                          Imds *imds, bool only_looks, Diag *diag);
/* Records their serials; the machine then refuses lower ones. */
_must_check_ _nonnull_ int signatures_keep(const Root *root, const Signatures *signatures, Diag *diag);
