/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Signed configurations. The signature is the last part of a multipart message, of a type that cloud-init and
 * nodeadm pass over:
 *
 *      --BOUNDARY
 *      Content-Type: application/vnd.nodestrap.signature
 *      MIME-Version: 1.0
 *
 *      version: 1
 *      key: sha256:…             of the public key's SubjectPublicKeyInfo
 *      serial: 1767323045        never lower than before
 *      account: 123456789012     and these where they are bound
 *      region: us-west-2
 *      cluster: NAME
 *      signature: BASE64
 *      --BOUNDARY--
 *
 * Signed, by Ed25519, are SIGNATURE_DOMAIN and every byte of the message (outer base64 and gzip undone) up to
 * that of BASE64: headers, delimiters, parts of all types, and the fields above it. Behind it stands the
 * closing delimiter, and nothing else but line ends. So whatever a reader of MIME makes of the message, it
 * makes of what was signed. */
#include "doc/doc.h"
#include "source/trust.h"

#define SIGNATURE_TYPE   "application/vnd.nodestrap.signature"
#define SIGNATURE_DOMAIN "nodestrap signed configuration, version 1\n"

/* What is said beside the configuration; account, region and cluster are NULL where any will do. */
typedef struct Signature {
        char *source;                   /* "user-data" */
        char *key, *file;               /* "sha256:…"; of which file that key is */
        char *account, *region, *cluster;
        uint64_t serial;
} Signature;
typedef struct Signatures { Signature *items; size_t n; } Signatures;
_nonnull_ void signature_done(Signature *s);
_nonnull_ void signatures_done(Signatures *s);

/* Every blob that is neither empty nor guarded is unpacked, and then bears a signature by a key of trust, or
 * it is a failure, the first of which is told. */
_must_check_ _nonnull_ int signatures_verify(Blobs *blobs, const Trust *trust, Signatures *ret, Diag *diag);
/* Does it look signed, whatever that may be worth? */
_nonnull_ bool signature_is_there(const Blob *blob);
/* "user-data is signed with sha256:… (ops.pub), serial 5, for account …, cluster …" */
_malloc_ _nonnull_ char *signature_text(const Signature *s);
/* Words that a field can hold. */
_nonnull_ bool signature_field_is_valid(const char *field, const char *value);
/* One multipart message, or texts each of which becomes a part → the signed message, the caller's. Of
 * fields serial, account, region and cluster are read. */
_must_check_ _nonnull_ int signature_make(Blobs *blobs, const Ed25519Key *private, const Signature *fields,
                                          char **ret, Diag *diag);
