/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap wait`: has this node joined its cluster? The files that kubelet reads and the instance's role
 * → what the API server says. Here stands who this node is to AWS, for kube/, which knows nothing of it:
 * tokens as kubelet's own, and the ARN that has to be mapped. */
#include "commands/commands.h"
#include "commands/hide.h"
#include "commands/run.h"

#include "aws/aws.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "report/join.h"

#include <assert.h>
#include <jansson.h>

#define TOTAL_USEC (300 * USEC_PER_SEC)
#define TOKEN_USEC (10 * USEC_PER_SEC)
#define IMDS_USEC (3 * USEC_PER_SEC)    /* for a name in a message */
#define ROLES     "meta-data/iam/security-credentials/"
#define DOCUMENT  "dynamic/instance-identity/document"

typedef struct Identity { const KubeAccess *access; uint64_t deadline_usec; } Identity;

static int get_token(void *user, char **ret, Diag *diag) {
        const Identity *i = user;
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

/* Nothing says how to reach a cluster. */
static void take_refusal(const Diag *diag, JoinOutcome *outcome) {
        const Diagnostic *error = diag_first_error(diag);
        outcome->cause = error ? error->cause : CAUSE_INTERNAL;
        outcome->text = error ? diagnostic_format(error) : xstrdup("the kubeconfig cannot be read");
}

static void join_as_instance(const Root *root, JoinGoal goal, uint64_t deadline_usec, JoinReport *ret) {
        Diag diag = {};
        if (kube_access_read(root, &ret->access, &diag) >= 0) {
                Identity identity = { &ret->access, deadline_usec };
                KubeIdentity kube = { &identity, get_token, find_principal };
                join_wait(root, &ret->access, &kube, goal, deadline_usec, &ret->outcome);
        } else
                take_refusal(&diag, &ret->outcome);
        diag_done(&diag);
}

int command_wait(Run *run) {
        const Options *o = &run->options;
        int goal = join_goal_from_string(o->goal);
        assert(goal >= 0);              /* the command line takes no others */
        _cleanup_(join_report_done) JoinReport join = { .goal = (JoinGoal)goal,
                                                        .begin_usec = run->begin_usec };
        stop_catch();
        join_as_instance(run->root, join.goal, run->begin_usec + (o->timeout_usec ?: TOTAL_USEC), &join);
        join.end_usec = now_usec();
        hide_in_join(run->root, &join.outcome);
        run->exit_code = report_join(run->root, &join);
        run->reported = true;
        return 0;
}
