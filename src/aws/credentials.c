/* SPDX-License-Identifier: Apache-2.0
 * The environment, a token file, a container endpoint or the metadata service → credentials. No message has
 * any part of them. https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html */
#include "aws/internal.h"

#include "base/root.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#define ROLES        "meta-data/iam/security-credentials/"
#define ROLE_ATTEMPTS 10
#define MAX_TOKEN    (64u << 10)
#define ATTEMPT_USEC (2 * USEC_PER_SEC)
#define BACKOFF_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_CAP  (2 * USEC_PER_SEC)

void credentials_done(Credentials *c) {
        free(c->key_id);
        forget_secret(c->secret);
        forget_secret(c->token);
        *c = (Credentials){};
}

bool credentials_text_is_valid(const char *s) {
        for (; *s; s++)
                if (*s <= ' ' || *s > '~')
                        return false;
        return true;
}

static char *copy_environment(const char *name) {
        const char *value = environment_value(name);
        return value ? str_strip(value) : NULL;
}

/* 1: found, 0: none here; the same for each source. */
static int from_environment(Credentials *ret) {
        Credentials c = {
                .key_id = copy_environment("AWS_ACCESS_KEY_ID"),
                .secret = copy_environment("AWS_SECRET_ACCESS_KEY"),
                .token = copy_environment("AWS_SESSION_TOKEN"),
        };
        if (!c.key_id || !c.secret || !credentials_text_is_valid(c.key_id) ||
            (c.token && !credentials_text_is_valid(c.token))) {
                credentials_done(&c);
                return 0;
        }
        *ret = c;
        return 1;
}

/* A copy, or NULL if it is missing or unfit for a request. */
static char *copy_member(const json_t *object, const char *name) {
        const char *value = json_string_value(json_object_get(object, name));
        return value && *value && credentials_text_is_valid(value) ? xstrdup(value) : NULL;
}

/* NULL, or the fault. */
static const char *parse_credentials(const char *text, size_t size, Credentials *ret) {
        json_t *o = json_loadb(text, size, 0, NULL);
        _free_ char *code = copy_member(o, "Code");
        Credentials c = {
                .key_id = copy_member(o, "AccessKeyId"),
                .secret = copy_member(o, "SecretAccessKey"),
                .token = copy_member(o, "Token"),
        };
        const char *why = !o ? "its answer is not JSON"
                        : code && !streq(code, "Success") ? "its answer has a Code other than Success"
                        : !c.key_id || !c.secret ? "its answer lacks AccessKeyId or SecretAccessKey" : NULL;
        json_decref(o);
        if (why)
                credentials_done(&c);
        else
                *ret = c;
        return why;
}

int environment_read(const char *path, size_t limit, char **ret) {
        _cleanup_(root_freep) Root *root = NULL;
        int r = root_new("/", &root);
        _free_ char *absolute = r >= 0 ? root_absolute(root, path) : NULL;
        if (r < 0)
                return r;
        return absolute ? root_read(root, absolute, limit, ret, NULL) : -ENOENT;
}

/* EKS renews the file in place, so each call reads it. */
static int read_token(const char *variable, const char *path, char **ret, Diag *diag) {
        _cleanup_(forget_secretp) char *text = NULL;
        int r = environment_read(path, MAX_TOKEN, &text);
        if (r < 0)
                return diag_error(diag, r, CAUSE_CREDENTIALS, "%s, which %s names, cannot be read: %s", path,
                                  variable, strerror(-r));
        char *token = str_strip(text);
        if (!*token || !credentials_text_is_valid(token)) {
                forget_secret(token);
                return diag_error(diag, -EBADMSG, CAUSE_CREDENTIALS, "%s, which %s names, %s", path, variable,
                                  *text ? "contains no valid token" : "is empty");
        }
        *ret = token;
        return 1;
}

static int from_web_identity(const char *region, uint64_t deadline, Credentials *ret, Diag *diag) {
        _cleanup_(forget_secretp) char *token = NULL;
        const char *file = environment_value("AWS_WEB_IDENTITY_TOKEN_FILE");
        const char *role = environment_value("AWS_ROLE_ARN");
        const char *session = environment_value("AWS_ROLE_SESSION_NAME");
        if (!file)
                return 0;
        if (!role)
                return diag_error(diag, -EINVAL, CAUSE_CREDENTIALS,
                                  "AWS_ROLE_ARN is not in the environment, but AWS_WEB_IDENTITY_TOKEN_FILE "
                                  "needs it");
        int r = read_token("AWS_WEB_IDENTITY_TOKEN_FILE", file, &token, diag);
        if (r < 0 || !token)
                return r;
        r = sts_assume_role_with_web_identity(region, role, session ?: "nodestrap", token, deadline, ret,
                                              diag);
        return r < 0 ? r : 1;
}

#define RELATIVE_URI "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
#define FULL_URI     "AWS_CONTAINER_CREDENTIALS_FULL_URI"

/* Plain HTTP may carry secrets only inside the machine. The addresses of ECS (169.254.170.2) and EKS Pod
 * Identity (the two others besides loopback) stay inside, too:
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html */
static bool is_local(const char *host) {
        struct in_addr address;
        return ONE_OF(host, "localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23", "::1") ||
               (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static int find_container(Url *ret, char **ret_target, Diag *diag) {
        const char *relative = environment_value(RELATIVE_URI), *full = environment_value(FULL_URI);
        _free_ char *text =
                relative ? xasprintf("http://169.254.170.2%s", relative) : xstrdup(full);
        const char *start = startswith(text, "http://") ? text + strlen("http://") : NULL;
        size_t length = start ? strcspn(start, "/?#") : 0;
        _free_ char *base = xasprintf("http://%.*s", (int)length, start ?: "");
        Url url = {};
        if (!start || start[length] == '#' || (relative && *relative != '/') ||
            !credentials_text_is_valid(text) || url_parse(base, &url) < 0)
                return diag_error(
                        diag, -EINVAL, CAUSE_CREDENTIALS, "%s in the environment is not of the form %s",
                        relative ? RELATIVE_URI : FULL_URI, relative ? "/PATH" : "http://HOST[:PORT]/PATH");
        if (!is_local(url.host)) {
                url_done(&url);
                return diag_error(diag, -EPERM, CAUSE_CREDENTIALS,
                                  FULL_URI " names another machine: nodestrap takes credentials over plain "
                                           "HTTP only from this machine, or from the agents of EKS and ECS");
        }
        *ret = url;
        *ret_target = xasprintf("%s%s", start[length] == '/' ? "" : "/", start + length);
        return 0;
}

static int make_container_request(const Url *url, const char *target, Text *ret, Diag *diag) {
        _cleanup_(forget_secretp) char *token = NULL;
        const char *file = environment_value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        int r = file ? read_token("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file, &token, diag) : 0;
        if (r < 0)
                return r;
        token = token ?: copy_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        if (token && !credentials_text_is_valid(token))
                return diag_error(diag, -EINVAL, CAUSE_CREDENTIALS,
                                  "AWS_CONTAINER_AUTHORIZATION_TOKEN in the environment has invalid "
                                  "characters");
        text_add(ret,
                 "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: nodestrap/" VERSION
                 "\r\nAccept: application/json\r\n",
                 target, url->authority);
        if (token)
                text_add(ret, "Authorization: %s\r\n", token);
        text_add(ret, "\r\n");
        return 0;
}

/* 1: credentials, 0: retry, else final. *why is a clause. */
static int ask_container(const Url *url, int *fd, const Text *request, uint64_t deadline, Credentials *ret,
                         char **why) {
        _cleanup_(http_response_done) HttpResponse answer = {};
        uint64_t now = now_usec(), left = deadline > now ? deadline - now : 0;
        int r = http_exchange(url, fd, request, now + MIN(MAX(left, USEC_PER_SEC), ATTEMPT_USEC), &answer);
        free(*why);
        if (r < 0) {
                *why = xasprintf("%s", r == -ETIMEDOUT ? "no answer in time" : strerror(-r));
                return 0;
        }
        const char *wrong = answer.status != 200
                                    ? NULL
                                    : parse_credentials(answer.body.data ?: "", answer.body.size, ret);
        if (answer.body.data)
                explicit_bzero(answer.body.data, answer.body.size);
        *why = wrong ? xstrdup(wrong) : xasprintf("HTTP %u", answer.status);
        if (answer.status == 200 && !wrong)
                return 1;
        return answer.status == 200 || (answer.status < 500 && answer.status != 429) ? -EACCES : 0;
}

static int ask_container_until(const Url *url, const Text *request, uint64_t deadline, Credentials *ret,
                               Diag *diag) {
        _free_ char *why = NULL;
        int fd = -1, r = 0;
        for (unsigned n = 0;; n++) {
                r = ask_container(url, &fd, request, deadline, ret, &why);
                uint64_t pause = backoff_usec(n, BACKOFF_USEC, BACKOFF_CAP);
                if (r != 0 || stop_signal() || now_usec() + pause >= deadline)
                        break;
                sleep_usec(pause);
        }
        close_fd(&fd);
        if (r > 0)
                return r;
        return diag_error(diag, r ?: -ETIMEDOUT, CAUSE_CREDENTIALS,
                          "the credential endpoint at %s gives no credentials: %s; check the EKS Pod "
                          "Identity agent and its association",
                          url->authority, why);
}

static int from_container(uint64_t deadline, Credentials *ret, Diag *diag) {
        _cleanup_(url_done) Url url = {};
        _free_ char *target = NULL;
        Text request = {};
        if (!environment_value(RELATIVE_URI) && !environment_value(FULL_URI))
                return 0;
        int r = find_container(&url, &target, diag) ?:
                make_container_request(&url, target, &request, diag) ?:
                ask_container_until(&url, &request, deadline, ret, diag);
        if (request.data)
                explicit_bzero(request.data, request.size);
        text_done(&request);
        return r;
}

/* IMDS says 404 until the role of a new instance arrives. nodeadm retries 15 times (awslabs/amazon-eks-ami:
 * nodeadm/internal/aws/imds), for about as long. */
static int get_patiently(Imds *imds, const char *path, uint64_t deadline, char **ret, size_t *ret_size,
                         Diag *diag) {
        for (unsigned n = 0;; n++) {
                int r = imds_get(imds, path, ret, ret_size, diag);
                if (r != -ENOENT)
                        return r;
                uint64_t pause = backoff_usec(n, BACKOFF_USEC, BACKOFF_CAP);
                if (n + 1 >= ROLE_ATTEMPTS || now_usec() + pause >= deadline)
                        return diag_error(diag, r, CAUSE_CREDENTIALS,
                                          "the metadata service has no role credentials for this instance: "
                                          "it was launched without an instance profile, or the "
                                          "profile has no role");
                sleep_usec(pause);
        }
}

static int from_role(Imds *imds, uint64_t deadline, Credentials *ret, Diag *diag) {
        _free_ char *role = NULL, *text = NULL;
        size_t size = 0;
        int r = get_patiently(imds, ROLES, deadline, &role, NULL, diag);
        if (r < 0)
                return r;
        role[strcspn(role, "\r\n")] = 0;
        if (!*role || !credentials_text_is_valid(role) || strpbrk(role, "/?#"))
                return diag_error(diag, -EBADMSG, CAUSE_CREDENTIALS,
                                  "the metadata service names no role under " ROLES);
        _free_ char *path = xasprintf(ROLES "%s", role);
        r = get_patiently(imds, path, deadline, &text, &size, diag);
        if (r < 0)
                return r;
        const char *why = parse_credentials(text, size, ret);
        explicit_bzero(text, size);
        if (why)
                return diag_error(diag, -EBADMSG, CAUSE_CREDENTIALS,
                                  "the metadata service gives no credentials for the instance role: %s; the "
                                  "trust policy of the role must allow ec2.amazonaws.com to assume it",
                                  why);
        return 1;
}

int credentials_get(Imds *imds, const char *region, uint64_t deadline, Credentials *ret, Diag *diag) {
        int r = from_environment(ret);
        if (r == 0)
                r = from_web_identity(region, deadline, ret, diag);
        if (r == 0)
                r = from_container(deadline, ret, diag);
        if (r == 0)
                r = from_role(imds, deadline, ret, diag);
        return MIN(r, 0);
}
