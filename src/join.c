/* SPDX-License-Identifier: Apache-2.0
 * Who this node is to AWS, for kube/, which knows nothing of it: tokens as kubelet's own, and the ARN that
 * has to be mapped. */
#include "join.h"

#include "aws/aws.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "token.h"

#include <errno.h>
#include <jansson.h>

#define TOKEN_USEC (10 * USEC_PER_SEC)
#define IMDS_USEC (3 * USEC_PER_SEC)    /* for a name in a message */
#define ROLES     "meta-data/iam/security-credentials/"
#define DOCUMENT  "dynamic/instance-identity/document"

typedef struct Identity { const KubeAccess *access; uint64_t deadline_usec; } Identity;

void join_done(Join *j) {
        kube_access_done(&j->access);
        kube_outcome_done(&j->outcome);
        *j = (Join){};
}

static int get_token(void *user, char **ret, Diag *diag) {
        const Identity *i = user;
        const KubeAccess *a = i->access;
        uint64_t now = now_usec();
        TokenRequest request = { a->cluster, a->region, a->role,
                                 MIN(MAX(i->deadline_usec, now + USEC_PER_SEC), now + TOKEN_USEC) };
        int64_t seconds;
        return token_make(&request, ret, &seconds, diag);
}

/* "arn:aws:iam::123456789012:role/NAME". The metadata service does not tell the role's path, which most do
 * not have. */
static char *find_instance_role(const char *region) {
        _cleanup_(imds_freep) Imds *imds = imds_new(IMDS_USEC);
        _cleanup_(freep) char *role = NULL, *text = NULL;
        Diag ignored = {};
        int r = imds_get(imds, ROLES, &role, NULL, &ignored);
        if (r >= 0)
                r = imds_get(imds, DOCUMENT, &text, NULL, &ignored);
        diag_done(&ignored);
        if (r < 0)
                return NULL;
        _cleanup_(json_decrefp) json_t *document = json_loads(text, 0, NULL);
        const char *account = json_string_value(json_object_get(document, "accountId"));
        const char *here = region ?: json_string_value(json_object_get(document, "region")) ?: "";
        role[strcspn(role, "\r\n")] = 0;
        return account && *role
                       ? xasprintf("arn:%s:iam::%s:role/%s", partition_find(here)->name, account, role)
                       : NULL;
}

static char *find_principal(void *user) {
        static const char *const others[] = { "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE",
                                              "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                              "AWS_CONTAINER_CREDENTIALS_FULL_URI" };
        const Identity *i = user;
        if (i->access->role)
                return xstrdup(i->access->role);
        for (size_t k = 0; k < ARRAY_SIZE(others); k++)
                if (getenv(others[k]))          /* somebody else's than the instance's */
                        return NULL;
        return find_instance_role(i->access->region);
}

static void refuse(Diag *diag, KubeOutcome *outcome) {
        const Diagnostic *error = diag_first_error(diag);
        outcome->cause = error ? error->cause : CAUSE_INTERNAL;
        outcome->text = error ? diagnostic_format(error) : xstrdup("nobody said why");
}

void join_wait(const Options *o, const Root *root, uint64_t begin_usec, Join *ret) {
        Diag diag = {};
        *ret = (Join){ .goal = o->goal, .begin_usec = begin_usec, .done = true };
        if (kube_access_read(root, &ret->access, &diag) >= 0) {
                Identity identity = { &ret->access, begin_usec + o->timeout_usec };
                KubeIdentity kube = { &identity, get_token, find_principal };
                kube_wait(root, &ret->access, &kube, o->goal, identity.deadline_usec, &ret->outcome);
        } else
                refuse(&diag, &ret->outcome);
        ret->end_usec = now_usec();
        diag_done(&diag);
}
