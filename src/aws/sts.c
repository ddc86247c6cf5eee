/* SPDX-License-Identifier: Apache-2.0
 * The Security Token Service: a role → credentials, credentials → a presigned URL.
 * https://docs.aws.amazon.com/STS/latest/APIReference/ */
#include "aws/internal.h"

#include "base/hash.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

#define API_VERSION  "2011-06-15"
#define BACKOFF_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_CAP  (2 * USEC_PER_SEC)
/* Seconds, as in the AWS CLI; STS itself accepts 15 minutes from the date of the signature. */
#define URL_EXPIRES  60u

const QueryService sts_api = {
        .service = AWS_STS,
        .name = "STS",
        .full_name = "STS",
        .id = "sts",
        .version = API_VERSION,
        .url_variable = "AWS_ENDPOINT_URL_STS",
        .variable_place = " in the environment",
        .region_setting = "--region or AWS_REGION",
        .code_path = "ErrorResponse/Error/Code",
        .request_id_path = "ErrorResponse/RequestId",
        .if_stopped = "",
        .other_bundle = "REQUESTS_CA_BUNDLE",
        .cause = CAUSE_STS,
        .endpoint_cause = CAUSE_USAGE,
};

int sts_presign_identity(const char *region, const char *cluster, const Credentials *with, int64_t seconds,
                         char **ret_url, Diag *diag) {
        _cleanup_(query_endpoint_done) QueryEndpoint e = {};
        char date[17];
        int r = query_endpoint(&sts_api, region, NULL, &e, diag);
        if (r < 0)
                return r;
        sigv4_date(query_clock(seconds), date);
        const char *const headers[][2] = { { "host", e.host }, { "x-k8s-aws-id", cluster } };
        SignedRequest request = {
                .method = "GET",
                .path = e.path,
                .query = "Action=GetCallerIdentity&Version=" API_VERSION,
                .headers = headers,
                .n_headers = ARRAY_SIZE(headers),
                .body = "",
                .region = region,
                .service = sts_api.id,
                .date = date,
        };
        _free_ char *query = sigv4_presigned_query(&request, with, URL_EXPIRES);
        *ret_url = xasprintf("%s://%s%s?%s", e.url.https ? "https" : "http", e.url.authority, e.path, query);
        return 0;
}

/* 1: a text fit for a request, 0: none, or an error of xml_texts(). */
static int read_credential(const Query *q, const Text *body, const char *name, char **ret) {
        _free_ char *path =
                xasprintf("%sResponse/%sResult/Credentials/%s", q->action, q->action, name);
        _strv_ char **found = NULL;
        int r = xml_texts(body->data, body->size, path, &found);
        if (r < 0 || !found || !credentials_text_is_valid(found[0]))
                return MIN(r, 0);
        *ret = xstrdup(found[0]);
        return 1;
}

static int accept_credentials(const Query *q, const Text *body) {
        Credentials fresh = {};
        int r = read_credential(q, body, "AccessKeyId", &fresh.key_id);
        if (r > 0)
                r = read_credential(q, body, "SecretAccessKey", &fresh.secret);
        if (r > 0)
                r = read_credential(q, body, "SessionToken", &fresh.token);
        if (r > 0)
                *(Credentials *)q->ret = fresh;
        else
                credentials_done(&fresh);
        return r;
}

static void add_field(Text *fields, const char *name, const char *value) {
        text_add(fields, "&%s=", name);
        text_add_encoded(fields, value);
}

/* Takes and erases the fields, which may hold a secret. */
static int assume_role(Query *q, Text *fields, uint64_t deadline_usec, Diag *diag) {
        _free_ char *text = text_take(fields);
        q->service = &sts_api;
        q->fields = text;
        q->retry = (RetryPolicy){
                .attempts = UINT_MAX,
                .total_usec = usec_left(deadline_usec),
                .base_usec = BACKOFF_USEC,
                .cap_usec = BACKOFF_CAP,
        };
        q->accept = accept_credentials;
        q->missing = "an answer without credentials";
        int r = query_ask(q, diag);
        explicit_bzero(text, strlen(text));
        return r;
}

int sts_assume_role(Imds *imds, const char *region, const char *role_arn, uint64_t deadline_usec,
                    Credentials *ret, Diag *diag) {
        _cleanup_(credentials_done) Credentials own = {};
        Text fields = {};
        Query q = {
                .region = region,
                .action = "AssumeRole",
                .credentials = &own,
                .imds = imds,
                .ret = ret,
                .unauthorized = "the trust policy of the role in --role-arn must name the identity in use, "
                                "whose own policies must allow sts:AssumeRole",
                .expired = "the credentials in use have expired",
        };
        int r = credentials_get(imds, region, deadline_usec, &own, diag);
        if (r < 0)
                return r;
        add_field(&fields, "RoleArn", role_arn);
        /* like the CLI: access entries, trust policies may name it */
        add_field(&fields, "RoleSessionName", "EKSGetTokenAuth");
        return assume_role(&q, &fields, deadline_usec, diag);
}

int sts_assume_role_with_web_identity(const char *region, const char *role_arn, const char *session,
                                      const char *token, uint64_t deadline_usec, Credentials *ret,
                                      Diag *diag) {
        Text fields = {};
        Query q = {
                .region = region,
                .action = "AssumeRoleWithWebIdentity",
                .ret = ret,
                .unauthorized = "the trust policy of AWS_ROLE_ARN must name the identity provider, subject "
                                "and audience of the token in AWS_WEB_IDENTITY_TOKEN_FILE",
                .expired = "the token in AWS_WEB_IDENTITY_TOKEN_FILE has expired",
        };
        add_field(&fields, "RoleArn", role_arn);
        add_field(&fields, "RoleSessionName", session);
        add_field(&fields, "WebIdentityToken", token);
        return assume_role(&q, &fields, deadline_usec, diag);
}

/* ---- tokens ----
 * A presigned URL, which the API server resolves, byte for byte that of the AWS CLI at the same second
 * (tests/boot/token-equality.sh).
 * https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster */

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
                                  "the metadata service does not have the region; name it with --region");
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
