/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap token`: the exec credential of kubelet, with a presigned URL that the API server resolves to
 * find the caller (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/). It has the
 * bytes of the AWS CLI at the same second with the same credentials, so that all its readers can read this
 * (tests/boot/token-equality.sh). Nothing is kept: kubelet asks every 14 minutes and after each 401. */
#include "commands/output.h"
#include "commands/run.h"

#include "aws/aws.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <time.h>

#define TOTAL_USEC (10 * USEC_PER_SEC)
#define LIFE_SEC   840                  /* a minute less than STS gives to the signature */
#define GROUP      "client.authentication.k8s.io/"

static const char versions[][40] = { GROUP "v1beta1", GROUP "v1", GROUP "v1alpha1" };

/* The version in KUBERNETES_EXEC_INFO; callers before Kubernetes 1.20 do not set that. */
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
                "KUBERNETES_EXEC_INFO asks for an unknown version of ExecCredential; nodestrap answers with "
                "%s.",
                versions[0]);
        return versions[0];
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

/* It becomes a header of the presigned URL. */
static bool is_cluster(const char *name) {
        for (const char *c = name; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        return false;
        return *name;
}

static int check_cluster(const Options *o, Diag *diag) {
        const char *cluster = o->cluster_id ?: o->cluster_name;
        if (!cluster || (o->cluster_id && o->cluster_name))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "token needs either --cluster-name NAME or --cluster-id ID");
        if (!is_cluster(cluster))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "the cluster name or id is empty, or has a control character");
        if (o->role_arn && !*o->role_arn)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--role-arn is empty; leave it out for the role of this instance");
        return 0;
}

int command_token(Run *run) {
        const Options *o = &run->options;
        TokenRequest request = { .cluster = o->cluster_id ?: o->cluster_name,
                                 .region = o->region,
                                 .role_arn = o->role_arn,
                                 .deadline_usec = now_usec() + TOTAL_USEC };
        _free_ char *token = NULL;
        int64_t now = 0;

        int r = check_cluster(o, &run->diag);
        if (r < 0)
                return r;
        run->step = "token";
        if (!o->development)
                /* the journal of kubelet gets this every 14 minutes: successes are not worth a line */
                log_set_level(LOG_WARNING);
        const char *version = find_version();
        r = token_make(&request, &token, &now, &run->diag);
        if (r < 0)
                return r;
        _free_ char *text = make_credential(version, token, now);
        return output_text(text, &run->diag);
}
