/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* All that a support case needs, collected in memory; packed at the end, when every secret is known. */
#include "base/root.h"
#include "redact/mask.h"

typedef struct BundleMember { char *name, *data; size_t size; } BundleMember;
typedef struct Bundle {
        const Root *root;
        char *top;                      /* the directory in it: "nodestrap-HOST-TIME" */
        Secrets secrets;
        bool blind;                     /* no NodeConfig tells of any */
        BundleMember *members;
        size_t n, size;                 /* size: of all members */
        Text missing;                   /* errors.txt: a line for what could not be had */
        size_t n_missing;
        uint64_t deadline_usec;         /* of all that is asked of others, CLOCK_MONOTONIC */
} Bundle;
_nonnull_ void bundle_begin(Bundle *b, const Root *root);
void bundle_done(Bundle *b);

/* Takes data over. One whose name is there already, or that makes the bundle too large, is dropped; the
 * latter is noted. */
_nonnull_ void bundle_add(Bundle *b, const char *name, char *data, size_t size);
_nonnull_ bool bundle_has(const Bundle *b, const char *name);
/* Why something is not in it. */
void bundle_miss(Bundle *b, const char *name, const char *format, ...) _nonnull_ _printf_(3, 4);
/* Files, programs, journals and what the kernel tells, by the tables of bundle-collect.c. */
_nonnull_ void bundle_gather(Bundle *b);
/* The .tar.gz, the caller's, without the secrets. */
_malloc_ _nonnull_ char *bundle_pack(Bundle *b, size_t *ret_size);
