/* SPDX-License-Identifier: Apache-2.0
 * The name of a cluster → a bearer token for its API server: a presigned question to STS, who we are, in
 * the alphabet of URLs (https://github.com/kubernetes-sigs/aws-iam-authenticator). */
#include "aws/aws.h"

#include "base/str.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <time.h>

#define IMDS_LAST_USEC USEC_PER_SEC     /* what the last attempt may take more */
#define PREFIX         "k8s-aws-v1."

static int find_region(const TokenRequest *q, Imds *imds, char **ret, Diag *diag) {
        const char *const given[] = { q->region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION") };
        for (size_t i = 0; i < ARRAY_SIZE(given); i++)
                if (given[i] && *given[i]) {
                        *ret = xstrdup(given[i]);
                        return 0;
                }
        int r = imds_get(imds, "meta-data/placement/region", ret, NULL, diag);
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_FACTS,
                                  "the metadata service does not say the region; name it with --region");
        return r;
}

static int find_credentials(const TokenRequest *q, Imds *imds, const char *region, Credentials *ret,
                            Diag *diag) {
        if (q->role_arn)
                return sts_assume_role(imds, region, q->role_arn, q->deadline_usec, ret, diag);
        return credentials_get(imds, region, q->deadline_usec, ret, diag);
}

/* RFC 4648's alphabet for URLs, without padding. */
static char *encode(const char *url) {
        _cleanup_(freep) char *text = base64_encode(url, strlen(url));
        for (char *c = text; *c; c++)
                *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
        text[strcspn(text, "=")] = 0;
        return xasprintf(PREFIX "%s", text);
}

int token_make(const TokenRequest *q, char **ret, int64_t *ret_seconds, Diag *diag) {
        uint64_t now = now_usec(), left = q->deadline_usec - MIN(now, q->deadline_usec);
        _cleanup_(imds_freep) Imds *imds =
                imds_new(left > 2 * IMDS_LAST_USEC ? left - IMDS_LAST_USEC : IMDS_LAST_USEC);
        _cleanup_(credentials_done) Credentials credentials = {};
        _cleanup_(freep) char *region = NULL, *url = NULL;

        int r = find_region(q, imds, &region, diag);
        if (r >= 0)
                r = find_credentials(q, imds, region, &credentials, diag);
        if (r < 0)
                return r;
        *ret_seconds = time(NULL);      /* after all waiting: the signature counts from here */
        r = sts_presign_identity(region, q->cluster, &credentials, *ret_seconds, &url, diag);
        if (r >= 0)
                *ret = encode(url);
        return r;
}
