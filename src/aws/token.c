/* SPDX-License-Identifier: Apache-2.0
 * A cluster name → a token: a presigned STS URL, which the API server resolves.
 * https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster It equals
 * the token of the AWS CLI at the same second byte for byte (tests/boot/token-equality.sh). */
#include "aws/internal.h"

#include "base/hash.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <time.h>

#define LAST_USEC USEC_PER_SEC  /* the last attempt of IMDS may exceed its budget by this */

/* Given, of the environment, or of the instance. */
static int find_token_region(const TokenRequest *q, Imds *imds, char **ret, Diag *diag) {
        const char *given = q->region && *q->region ? q->region : aws_region();
        if (given) {
                *ret = xstrdup(given);
                return 0;
        }
        int r = imds_get(imds, "meta-data/placement/region", ret, NULL, diag);
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_FACTS,
                                  "the metadata service does not say the region; name it with --region");
        return r;
}

/* The URL alphabet of RFC 4648, without padding. */
static char *encode_token(const char *url) {
        _free_ char *text = base64_encode(url, strlen(url));
        for (char *c = text; *c; c++)
                *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
        text[strcspn(text, "=")] = 0;
        return xasprintf("k8s-aws-v1.%s", text);
}

int token_make(const TokenRequest *q, char **ret, int64_t *ret_seconds, Diag *diag) {
        uint64_t left = usec_left(q->deadline_usec);
        _cleanup_(imds_freep) Imds *imds = imds_new(MAX(left, 2 * LAST_USEC) - LAST_USEC);
        _cleanup_(credentials_done) Credentials credentials = {};
        _free_ char *region = NULL, *url = NULL;

        int r = hash_load(diag);
        THEN(r, find_token_region(q, imds, &region, diag));
        if (r < 0)
                return r;
        if (q->role_arn)
                r = sts_assume_role(imds, region, q->role_arn, q->deadline_usec, &credentials, diag);
        else
                r = credentials_get(imds, region, q->deadline_usec, &credentials, diag);
        if (r < 0)
                return r;
        int64_t seconds = time(NULL);           /* after all waits */
        r = sts_presign_identity(region, q->cluster, &credentials, seconds, &url, diag);
        if (r < 0)
                return r;
        *ret = encode_token(url);
        *ret_seconds = seconds;
        return 0;
}
