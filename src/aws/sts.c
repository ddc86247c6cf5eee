/* SPDX-License-Identifier: Apache-2.0
 * The Security Token Service: a role → credentials, credentials → a presigned question who they belong to.
 * https://docs.aws.amazon.com/STS/latest/APIReference/ */
#include "aws/internal.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <time.h>

#define API_VERSION  "2011-06-15"
#define ATTEMPT_USEC (5 * USEC_PER_SEC)
#define BACKOFF_USEC (100 * USEC_PER_MSEC)
#define BACKOFF_CAP  (2 * USEC_PER_SEC)
#define URL_EXPIRES  60u        /* seconds, as the AWS CLI writes it; STS itself
                                 * goes by the signature and takes 15 minutes */

/* ---- where ---- */
typedef struct Endpoint {
        Url url;
        char *host;                     /* as the Host header has it */
        const char *path;               /* as a request has it: "/" where the URL has none */
} Endpoint;

static void endpoint_done(Endpoint *e) {
        url_done(&e->url);
        free(e->host);
}

static bool is_true(const char *variable) {
        const char *value = getenv(variable);
        return value && strcasecmp(value, "true") == 0;
}

/* The variable that names an endpoint, or NULL. */
static const char *configured_endpoint(void) {
        static const char *const variables[] = { "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL" };
        for (size_t i = 0; i < ARRAY_SIZE(variables) && !is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
             i++) {
                const char *value = getenv(variables[i]);
                if (value && *value)
                        return variables[i];
        }
        return NULL;
}

/* The rules of the AWS CLI's own model of STS; regional endpoints alone, which every VPC can reach through an
 * interface endpoint. */
static char *regional_endpoint(const char *region) {
        const Partition *p = partition_find(region);
        bool fips = is_true("AWS_USE_FIPS_ENDPOINT"), dual_stack = is_true("AWS_USE_DUALSTACK_ENDPOINT");
        if (streq(p->name, "aws-us-gov") && !dual_stack)
                fips = false;           /* those of GovCloud are validated as they are */
        return xasprintf("https://sts%s.%s.%s", fips ? "-fips" : "", region,
                         dual_stack ? p->dual_stack : p->domain);
}

static int find_endpoint(const char *region, Endpoint *ret, Diag *diag) {
        const char *variable = configured_endpoint();
        Endpoint e = {};
        if (!region_is_valid(region))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "\"%s\" is not the name of a region; --region or AWS_REGION takes "
                                  "one like us-west-2",
                                  region);
        _cleanup_(freep) char *text = variable ? xstrdup(getenv(variable)) : regional_endpoint(region);
        if (url_parse(text, &e.url) < 0)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "%s in the environment is not of the form http[s]://HOST[:PORT][/PATH]",
                                  variable ?: "the endpoint");
        _cleanup_(freep) char *host = str_lower(e.url.host);
        bool literal = strchr(host, ':'), usual = streq(e.url.port, e.url.https ? "443" : "80");
        e.host = xasprintf("%s%s%s%s%s", literal ? "[" : "", host, literal ? "]" : "", usual ? "" : ":",
                           usual ? "" : e.url.port);
        e.path = e.url.path && *e.url.path ? e.url.path : "/";
        *ret = e;
        return 0;
}

/* ---- a presigned URL ---- */
int sts_presign_identity(const char *region, const char *cluster, const Credentials *with, int64_t seconds,
                         char **ret_url, Diag *diag) {
        _cleanup_(endpoint_done) Endpoint e = {};
        char date[17];
        int r = find_endpoint(region, &e, diag);
        if (r < 0)
                return r;
        sigv4_date(seconds, date);
        const char *const headers[][2] = { { "host", e.host }, { "x-k8s-aws-id", cluster } };
        SignedRequest request = {
                .method = "GET",
                .path = e.path,
                .query = "Action=GetCallerIdentity&Version=" API_VERSION,
                .headers = headers,
                .n_headers = ARRAY_SIZE(headers),
                .body = "",
                .body_size = 0,
                .region = region,
                .service = "sts",
                .date = date,
        };
        _cleanup_(freep) char *query = sigv4_presigned_query(&request, with, URL_EXPIRES);
        *ret_url = xasprintf("%s://%s%s?%s", e.url.https ? "https" : "http", e.url.authority, e.path, query);
        return 0;
}

/* ---- a call ---- */
typedef struct Call {
        const char *region, *action, *form;
        const Credentials *with;        /* NULL: not signed, the form says who asks */
        const char *unauthorized, *expired;     /* what to do about these refusals */
        uint64_t deadline;
        Credentials *ret;

        Endpoint endpoint;
        char *why;                      /* the last failure, */
        const char *advice;             /* and what to do about it */
} Call;

/* A failure that may pass; 0 always. */
static int again(Call *c, char *why, const char *advice) {
        free(c->why);
        c->why = why;
        c->advice = advice;
        return 0;
}

/* 1 for an HTTP response of any kind, 0 for none. */
static int perform(Call *c, uint64_t limit_usec, HttpsReply *reply) {
        char date[17], *why = NULL;
        _cleanup_(freep) char *authorization = NULL;
        const char *headers[5][2] = {
                { "content-type", "application/x-www-form-urlencoded; charset=utf-8" },
                { "host",         c->endpoint.host },
        };
        size_t n = 2;
        if (c->with) {
                sigv4_date(time(NULL), date);
                headers[n][0] = "x-amz-date", headers[n++][1] = date;
                if (c->with->token)
                        headers[n][0] = "x-amz-security-token", headers[n++][1] = c->with->token;
                SignedRequest request = {
                        .method = "POST",
                        .path = c->endpoint.path,
                        .query = "",
                        .headers = headers,
                        .n_headers = n,
                        .body = c->form,
                        .body_size = strlen(c->form),
                        .region = c->region,
                        .service = "sts",
                        .date = date,
                };
                authorization = sigv4_authorization(&request, c->with);
                headers[n][0] = "authorization", headers[n++][1] = authorization;
        }
        if (https_post(&c->endpoint.url, headers, n, c->form, limit_usec, reply, &why) >= 0)
                return 1;
        return again(c, why,
                     "Check the way to STS: NAT gateway or VPC endpoint, security groups, HTTPS_PROXY and "
                     "NO_PROXY");
}

static int refuse(const Call *c, const HttpsReply *reply, const char *code, Diag *diag) {
        _cleanup_(freep) char *id = refusal_word(&reply->body, "ErrorResponse/RequestId"),
                              *clock = refusal_clock("STS", reply->date);
        _cleanup_(freep) char *signature =
                xasprintf("it does not accept the credentials or the signature; %s", clock);
        RefusalKind kind = refusal_kind(code);
        const char *advice = kind == REFUSAL_UNAUTHORIZED ? c->unauthorized
                             : kind == REFUSAL_EXPIRED    ? c->expired
                             : kind == REFUSAL_SIGNATURE  ? signature
                             : streq(code, "RegionDisabledException")
                                     ? "switch STS on for this region in the account settings of IAM"
                                     : "it will not help to ask again";
        return diag_error(diag, -EACCES, CAUSE_STS, "STS at %s refused %s: %s (HTTP %ld, request %s): %s",
                          c->endpoint.host, c->action, code, reply->status, id ?: "without id", advice);
}

static int judge_error(Call *c, const HttpsReply *reply, Diag *diag) {
        _cleanup_(freep) char *code = refusal_word(&reply->body, "ErrorResponse/Error/Code");
        if (!code)
                return again(c, xasprintf("HTTP %ld and no word of STS", reply->status),
                             "Something between here and STS answers in its place: look at HTTPS_PROXY, "
                             "NO_PROXY, AWS_ENDPOINT_URL and the VPC endpoint");
        if (refusal_kind(code) == REFUSAL_TEMPORARY || reply->status >= 500)
                return again(c, xasprintf("%s (HTTP %ld)", code, reply->status),
                             "STS says so itself and may answer later");
        return refuse(c, reply, code, diag);
}

static char *copy_text(const Call *c, const Text *body, const char *name) {
        _cleanup_(freep) char *path =
                xasprintf("%sResponse/%sResult/Credentials/%s", c->action, c->action, name);
        _cleanup_(strv_freep) char **found = NULL;
        if (body->size == 0 || xml_texts(body->data, body->size, path, &found) < 0 || !found ||
            !credentials_text_is_valid(found[0]))
                return NULL;
        return xstrdup(found[0]);
}

static int accept(Call *c, const Text *body) {
        Credentials fresh = {
                .key_id = copy_text(c, body, "AccessKeyId"),
                .secret = copy_text(c, body, "SecretAccessKey"),
                .token = copy_text(c, body, "SessionToken"),
        };
        if (fresh.key_id && fresh.secret && fresh.token) {
                *c->ret = fresh;
                return 1;
        }
        credentials_done(&fresh);
        return again(c, xstrdup("an answer without credentials"),
                     "Something between here and STS answers in its place: look at HTTPS_PROXY, NO_PROXY and "
                     "AWS_ENDPOINT_URL");
}

/* 1 there are credentials, 0 try again, else final. */
static int attempt(Call *c, uint64_t left_usec, Diag *diag) {
        HttpsReply reply = {};
        int r = perform(c, MIN(MAX(left_usec, USEC_PER_SEC), ATTEMPT_USEC), &reply);
        if (r > 0)
                r = reply.status == 200 ? accept(c, &reply.body) : judge_error(c, &reply, diag);
        if (reply.body.data)
                explicit_bzero(reply.body.data, reply.body.size);
        text_done(&reply.body);
        return r;
}

static int call_until(Call *c, Diag *diag) {
        uint64_t begin = now_usec();
        for (unsigned n = 1;; n++) {
                uint64_t now = now_usec();
                int r = attempt(c, c->deadline > now ? c->deadline - now : 0, diag);
                if (r != 0)
                        return MIN(r, 0);
                if (stop_signal())
                        return diag_error(diag, -EINTR, CAUSE_INTERRUPTED,
                                          "stopped by %s while asking STS at %s for %s",
                                          stop_name(stop_signal()), c->endpoint.host, c->action);
                now = now_usec();
                uint64_t pause = backoff_usec(n - 1, BACKOFF_USEC, BACKOFF_CAP);
                if (now + pause >= c->deadline)
                        return diag_error(diag, -ETIMEDOUT, CAUSE_STS,
                                          "no usable answer from STS at %s to %s, %u requests in %.1f s; the "
                                          "last one: %s. %s",
                                          c->endpoint.host, c->action, n,
                                          (double)(now - begin) / USEC_PER_SEC, c->why, c->advice);
                log_line(n == 1 ? LOG_INFO : LOG_DEBUG, "STS, %s: %s; trying again.", c->action, c->why);
                sleep_usec(pause);
        }
}

static int call(Call *c, Diag *diag) {
        int r = find_endpoint(c->region, &c->endpoint, diag);
        if (r >= 0)
                r = https_load(CAUSE_STS, diag);
        if (r >= 0)
                r = call_until(c, diag);
        endpoint_done(&c->endpoint);
        free(c->why);
        return r;
}

static void add_field(Text *form, const char *name, const char *value) {
        text_add(form, "&%s=", name);
        text_add_encoded(form, value);
}

int sts_assume_role(const char *region, const char *role_arn, const Credentials *with, uint64_t deadline_usec,
                    Credentials *ret, Diag *diag) {
        Text form = {};
        text_add(&form, "Action=AssumeRole&Version=" API_VERSION);
        add_field(&form, "RoleArn", role_arn);
        /* the CLI's, which access entries and trust policies may name */
        add_field(&form, "RoleSessionName", "EKSGetTokenAuth");
        _cleanup_(freep) char *text = text_take(&form);
        Call c = {
                .region = region,
                .action = "AssumeRole",
                .form = text,
                .with = with,
                .deadline = deadline_usec,
                .ret = ret,
                .unauthorized = "the trust policy of that role must name who asks here, and no policy of who "
                                "asks may be without sts:AssumeRole",
                .expired = "the credentials that ask have expired",
        };
        return call(&c, diag);
}

int sts_assume_role_with_web_identity(const char *region, const char *role_arn, const char *session,
                                      const char *token, uint64_t deadline_usec, Credentials *ret,
                                      Diag *diag) {
        Text form = {};
        text_add(&form, "Action=AssumeRoleWithWebIdentity&Version=" API_VERSION);
        add_field(&form, "RoleArn", role_arn);
        add_field(&form, "RoleSessionName", session);
        add_field(&form, "WebIdentityToken", token);
        _cleanup_(freep) char *text = text_take(&form);
        Call c = {
                .region = region,
                .action = "AssumeRoleWithWebIdentity",
                .form = text,
                .deadline = deadline_usec,
                .ret = ret,
                .unauthorized = "the trust policy of AWS_ROLE_ARN must name the identity provider, subject "
                                "and audience of the token in AWS_WEB_IDENTITY_TOKEN_FILE",
                .expired = "the token in AWS_WEB_IDENTITY_TOKEN_FILE has expired",
        };
        int r = call(&c, diag);
        explicit_bzero(text, strlen(text));
        return r;
}
