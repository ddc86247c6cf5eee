/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `nodestrap token`: kubelet's exec credential, what `aws eks get-token` prints. Nothing is kept: each call
 * is a process of its own, and kubelet makes one every 14 minutes and after each 401. */
#include "cli.h"

typedef struct TokenRequest {
        const char *cluster;            /* its name, or the id of a local one */
        const char *region, *role_arn;  /* NULL: as the environment or the
                                         * metadata service say; no other role */
        uint64_t deadline_usec;         /* now_usec() */
} TokenRequest;
/* The token itself, a secret, and the second from which it counts. */
_must_check_ _nonnull_ int token_make(const TokenRequest *request, char **ret, int64_t *ret_seconds,
                                      Diag *diag);
/* An ExecCredential on stdout, from what the environment and the metadata service say, within ten seconds. */
_must_check_ _nonnull_ int token_print(const Options *o, Diag *diag);
