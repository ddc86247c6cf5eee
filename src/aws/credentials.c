/* SPDX-License-Identifier: Apache-2.0
 * The environment, or else the metadata service → the keys that sign requests. Nothing of them ever reaches a message.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html */
#include "aws/internal.h"

#include "base/time.h"

#include <errno.h>
#include <jansson.h>

#define ROLES "meta-data/iam/security-credentials/"

static void forget(char *secret) {
        if (secret)
                explicit_bzero(secret, strlen(secret));
        free(secret);
}

void credentials_done(Credentials *c) {
        free(c->key_id);
        forget(c->secret);
        forget(c->token);
        *c = (Credentials){};
}

/* All of it goes into headers and a signature: a control character is damage. */
static bool is_plain(const char *s) {
        for (; *s; s++)
                if (*s <= ' ' || *s > '~')
                        return false;
        return true;
}

static char *copy_environment(const char *name) {
        const char *value = getenv(name);
        return value && *value ? str_strip(value) : NULL;
}

static bool from_environment(Credentials *ret) {
        Credentials c = {
                .key_id = copy_environment("AWS_ACCESS_KEY_ID"),
                .secret = copy_environment("AWS_SECRET_ACCESS_KEY"),
                .token = copy_environment("AWS_SESSION_TOKEN"),
        };
        if (!c.key_id || !c.secret || !is_plain(c.key_id) || (c.token && !is_plain(c.token))) {
                credentials_done(&c);
                return false;
        }
        *ret = c;
        return true;
}

/* The role of a fresh instance takes a moment to reach the metadata service, which says 404 until then; nodeadm gives it 15
 * attempts (nodeadm/internal/aws/imds), about as long as this. */
static int get_patiently(Imds *imds, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        for (unsigned n = 0;; n++) {
                int r = imds_get(imds, path, ret, ret_size, diag);
                if (r != -ENOENT)
                        return r;
                if (n == 9)
                        return diag_error(diag, r, CAUSE_CREDENTIALS, NULL, NULL,
                                          "the metadata service has no credentials of a role for this instance: it was launched "
                                          "without an instance profile, or the profile has no role");
                sleep_usec(backoff_usec(n, 100 * USEC_PER_MSEC, 2 * USEC_PER_SEC));
        }
}

/* A copy of the member, or NULL where there is none that could go into a request. */
static char *copy_member(const json_t *object, const char *name) {
        const char *value = json_string_value(json_object_get(object, name));
        return value && *value && is_plain(value) ? xstrdup(value) : NULL;
}

static int parse_role(const char *text, size_t size, Credentials *ret, Diag *diag) {
        json_t *o = json_loadb(text, size, 0, NULL);
        _cleanup_(freep) char *code = copy_member(o, "Code");
        Credentials c = {
                .key_id = copy_member(o, "AccessKeyId"),
                .secret = copy_member(o, "SecretAccessKey"),
                .token = copy_member(o, "Token"),
        };
        const char *why = !o ? "its answer is not JSON"
                        : code && !streq(code, "Success") ? "its answer has another Code than Success"
                        : !c.key_id || !c.secret ? "its answer lacks AccessKeyId or SecretAccessKey" : NULL;
        json_decref(o);
        if (!why) {
                *ret = c;
                return 0;
        }
        credentials_done(&c);
        return diag_error(diag, -EBADMSG, CAUSE_CREDENTIALS, NULL, NULL,
                          "the metadata service does not hand out credentials of this instance's role: %s; look at the role's trust "
                          "policy, ec2.amazonaws.com must be allowed to assume it", why);
}

int credentials_get(Imds *imds, Credentials *ret, Diag *diag) {
        _cleanup_(freep) char *role = NULL, *text = NULL;
        size_t size = 0;

        if (from_environment(ret))
                return 0;
        int r = get_patiently(imds, ROLES, &role, NULL, diag);
        if (r < 0)
                return r;
        role[strcspn(role, "\r\n")] = 0;
        if (!*role || !is_plain(role) || strpbrk(role, "/?#"))
                return diag_error(diag, -EBADMSG, CAUSE_CREDENTIALS, NULL, NULL,
                                  "the metadata service names no role under " ROLES);
        _cleanup_(freep) char *path = xasprintf(ROLES "%s", role);
        r = get_patiently(imds, path, &text, &size, diag);
        if (r < 0)
                return r;
        r = parse_role(text, size, ret, diag);
        explicit_bzero(text, size);
        return r;
}
