/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A support bundle: collected in memory, packed at the end, when every secret is known. */
#include "base/root.h"
#include "redact/mask.h"

typedef struct BundleMember { char *name, *data; size_t size; } BundleMember;
typedef struct Bundle {
        const Root *root;
        char *top;                      /* the top directory: "nodestrap-HOST-TIME" */
        Secrets secrets;
        bool blind;                     /* no NodeConfig names the secrets */
        BundleMember *members;
        size_t n, size;                 /* size: of all members */
        Text missing;                   /* errors.txt: a line for each missing item */
        size_t n_missing;
        uint64_t deadline_usec;         /* of all programs and reads, CLOCK_MONOTONIC */
} Bundle;
_nonnull_ void bundle_begin(Bundle *b, const Root *root);
void bundle_done(Bundle *b);

/* Takes data over. Drops a name that is there already; drops and notes what makes the bundle too large. */
_nonnull_ void bundle_add(Bundle *b, const char *name, char *data, size_t size);
_nonnull_ bool bundle_has(const Bundle *b, const char *name);
/* Notes why something is missing. */
void bundle_miss(Bundle *b, const char *name, const char *format, ...) _nonnull_ _printf_(3, 4);
/* Runs the tables of bundle-collect.c. */
_nonnull_ void bundle_gather(Bundle *b);
/* The .tar.gz without secrets; the caller frees it. */
_malloc_ _nonnull_ char *bundle_pack(Bundle *b, size_t *ret_size);
