/* SPDX-License-Identifier: Apache-2.0
 * The name of a cluster → an ExecCredential with a presigned URL inside, which the API server resolves to
 * find out who asks. https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ Byte for byte
 * what the AWS CLI prints at the same second with the same credentials, so that everything that can read that
 * can read this; tests/boot/token-equality.sh compares them. */
#include "token.h"

#include "aws/aws.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "doc/doc.h"
#include "show.h"

#include <errno.h>
#include <time.h>

#define TOTAL_USEC (10 * USEC_PER_SEC)
#define IMDS_LAST_USEC USEC_PER_SEC     /* what the last attempt may take more */
#define LIFE_SEC   840                  /* a minute less than STS gives to the signature */
#define PREFIX     "k8s-aws-v1."
#define GROUP      "client.authentication.k8s.io/"

static const char *const versions[] = { GROUP "v1beta1", GROUP "v1", GROUP "v1alpha1" };

/* The version that the caller speaks, as it says itself in KUBERNETES_EXEC_INFO; callers before
 * Kubernetes 1.20 say nothing. */
static const char *find_version(void) {
        const char *text = getenv("KUBERNETES_EXEC_INFO");
        if (!text || !*text)
                return versions[0];
        _cleanup_(json_decrefp) json_t *info = json_loads(text, 0, NULL);
        const char *asked = json_string_value(json_object_get(info, "apiVersion"));
        for (size_t i = 0; asked && i < ARRAY_SIZE(versions); i++)
                if (streq(versions[i], asked))
                        return versions[i];
        log_warning(
                "KUBERNETES_EXEC_INFO asks for no version of ExecCredential that is known here; it gets %s.",
                versions[0]);
        return versions[0];
}

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
        Credentials own = {};
        int r = credentials_get(imds, region, q->deadline_usec, q->role_arn ? &own : ret, diag);
        if (r < 0 || !q->role_arn)
                return r;
        r = sts_assume_role(region, q->role_arn, &own, q->deadline_usec, ret, diag);
        credentials_done(&own);
        return r;
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

static char *make_credential(const char *version, const char *token, int64_t now) {
        char until[sizeof "2026-01-02T03:04:05Z"];
        struct tm tm = {};
        time_t t = now + LIFE_SEC;
        strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
        return xasprintf("{\n    \"kind\": \"ExecCredential\",\n    \"apiVersion\": \"%s\",\n    \"spec\": "
                         "{},\n    \"status\": {\n"
                         "        \"expirationTimestamp\": \"%s\",\n        \"token\": \"%s\"\n    }\n}\n\n",
                         version, until, token);
}

int token_print(const Options *o, Diag *diag) {
        TokenRequest request = { o->cluster_id ?: o->cluster_name, o->region, o->role_arn,
                                 now_usec() + TOTAL_USEC };
        _cleanup_(freep) char *token = NULL;
        int64_t now = 0;

        if (!o->development)
                /* in kubelet's journal every 14 minutes: what passed again is not worth a line */
                log_set_level(LOG_WARNING);
        const char *version = find_version();
        int r = token_make(&request, &token, &now, diag);
        if (r < 0)
                return r;
        _cleanup_(freep) char *text = make_credential(version, token, now);
        return show_text(text, diag);
}
