/* SPDX-License-Identifier: Apache-2.0
 * Bearer tokens for the cluster by the instance role, and the ARN that must be mapped there. */
#include "apply/identity.h"

#include "aws/aws.h"
#include "base/json.h"
#include "base/str.h"
#include "base/time.h"

#include <jansson.h>

#define TOKEN_USEC (10 * USEC_PER_SEC)
#define IMDS_USEC  (3 * USEC_PER_SEC)   /* for a name in a message */
#define ROLES      "meta-data/iam/security-credentials/"
#define PROFILE    "meta-data/iam/info"
#define DOCUMENT   "dynamic/instance-identity/document"

static int get_token(void *user, char **ret, Diag *diag) {
        const ClusterIdentity *i = user;
        const KubeAccess *a = i->access;
        uint64_t now = now_usec();
        TokenRequest request = { .cluster = a->cluster,
                                 .region = a->region,
                                 .role_arn = a->role,
                                 .deadline_usec =
                                         MIN(MAX(i->deadline_usec, now + USEC_PER_SEC), now + TOKEN_USEC) };
        int64_t seconds;
        return token_make(&request, ret, &seconds, diag);
}

/* "/team/" of "arn:aws:iam::123456789012:instance-profile/team/NAME". The metadata service does not return
 * the role path; it usually equals that of the profile. */
static char *find_path(Imds *imds) {
        static const char mark[] = ":instance-profile";
        _free_ char *text = NULL;
        _cleanup_(diag_done) Diag ignored = {};
        if (imds_get(imds, PROFILE, &text, NULL, &ignored) < 0)
                return xstrdup("/");
        _cleanup_(json_decrefp) json_t *profile = json_loads(text, 0, NULL);
        const char *path = strstr(json_get_text(profile, "InstanceProfileArn"), mark);
        const char *last = path ? strrchr(path, '/') : NULL;
        path += path ? strlen(mark) : 0;
        return last && *path == '/' ? xstrndup(path, (size_t)(last + 1 - path)) : xstrdup("/");
}

/* "arn:aws:iam::123456789012:role/NAME". */
static char *find_instance_role(const char *region) {
        _cleanup_(imds_freep) Imds *imds = imds_new(IMDS_USEC);
        _free_ char *role = NULL, *text = NULL;
        Diag ignored = {};
        int r = imds_get(imds, ROLES, &role, NULL, &ignored);
        THEN(r, imds_get(imds, DOCUMENT, &text, NULL, &ignored));
        diag_done(&ignored);
        if (r < 0)
                return NULL;
        _cleanup_(json_decrefp) json_t *document = json_loads(text, 0, NULL);
        const char *account = json_string_value(json_object_get(document, "accountId"));
        const char *here = region ?: json_string_value(json_object_get(document, "region")) ?: "";
        _free_ char *path = find_path(imds);
        role[strcspn(role, "\r\n")] = 0;
        return account && *role
                       ? xasprintf("arn:%s:iam::%s:role%s%s", partition_find(here)->name, account, path, role)
                       : NULL;
}

static char *find_principal(void *user) {
        static const char others[][40] = { "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE",
                                           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                           "AWS_CONTAINER_CREDENTIALS_FULL_URI" };
        const ClusterIdentity *i = user;
        if (i->access->role)
                return xstrdup(i->access->role);
        for (size_t k = 0; k < ARRAY_SIZE(others); k++)
                if (getenv(others[k]))          /* not those of the instance */
                        return NULL;
        return find_instance_role(i->access->region);
}

KubeIdentity cluster_identity(ClusterIdentity *i) {
        return (KubeIdentity){ .user = i, .token = get_token, .principal = find_principal };
}
