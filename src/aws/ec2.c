/* SPDX-License-Identifier: Apache-2.0
 * Two questions to the EC2 Query API → a name and two numbers. What EC2 itself refuses is final; everything
 * else, and what EC2 calls temporary, is tried again. A clock that is off by more than EC2 allows is put
 * right for the signature alone.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html */
#include "aws/internal.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#define API_VERSION   "2016-11-15"
#define ATTEMPT_USEC  (5 * USEC_PER_SEC)
#define TOTAL_USEC    (600 * USEC_PER_SEC)
#define CREDENTIALS_USEC (60 * USEC_PER_SEC)
#define BACKOFF_USEC  (100 * USEC_PER_MSEC)
#define BACKOFF_CAP   (20 * USEC_PER_SEC)       /* as the AWS SDKs have it */
#define LIMITS_ATTEMPTS 4u                      /* the number of pods has a fallback: not worth a long wait */
#define LIMITS_USEC   (20 * USEC_PER_SEC)
#define CLOCK_SKEW    240                       /* seconds; EC2 itself accepts about five minutes */

/* No limit to the attempts but the time: of ten thousand nodes that boot within a minute, thirty attempts
 * each would leave a third without a name, and the last of them needs most of these ten minutes
 * (tests/bench/fleet.c). */
const RetryPolicy ec2_retry_policy = { UINT_MAX, TOTAL_USEC, BACKOFF_USEC, BACKOFF_CAP };

/* One set of credentials and one idea of the time for all calls of this process. */
static struct {
        Credentials credentials;
        /* seconds by which EC2's clock is ahead of ours, once that is known to matter */
        int64_t clock_ahead;
        unsigned requests;
} session;

/* Looks for what was asked for: 1 found, 0 not there (yet), -EBADMSG not an answer at all. */
typedef int (*Accept)(const Text *body, void *ret);
typedef struct Call {
        const Ec2 *ec2;
        const char *action, *form;      /* "DescribeInstances", "InstanceId.1=i-…" */
        unsigned attempts;
        uint64_t total_usec;
        Accept accept;
        void *ret;
        const char *missing, *missing_advice;   /* what is said when accept finds nothing */
        const char *instead;            /* the setting that makes the call needless */

        Url url;
        const char *region;
        bool clock_corrected, credentials_renewed;
        char *why;                      /* the last failure, */
        const char *advice;             /* and what to do about it */
} Call;

typedef enum Verdict { VERDICT_FINAL, VERDICT_AGAIN, VERDICT_AGAIN_AT_ONCE, VERDICT_GOOD } Verdict;

unsigned ec2_requests(void) {
        return session.requests;
}

/* ---- a request ---- */
/* VERDICT_GOOD for any HTTP response at all. */
static Verdict perform(Call *c, const char *form, uint64_t limit_usec, HttpsReply *reply) {
        char date[17], *why = NULL;
        sigv4_date(time(NULL) + session.clock_ahead, date);
        const char *headers[][2] = {
                { "content-type",         "application/x-www-form-urlencoded; charset=utf-8" },
                { "host",                 c->url.authority },
                { "x-amz-date",           date },
                { "x-amz-security-token", session.credentials.token },
                { NULL, NULL },
        };
        size_t n = session.credentials.token ? 4 : 3;
        SignedRequest request = {
                .method = "POST",
                .path = *c->url.path ? c->url.path : "/",
                .query = "",
                .headers = headers,
                .n_headers = n,
                .body = form,
                .body_size = strlen(form),
                .region = c->region,
                .service = "ec2",
                .date = date,
        };
        _cleanup_(freep) char *authorization = sigv4_authorization(&request, &session.credentials);
        headers[n][0] = "authorization";
        headers[n][1] = authorization;
        session.requests++;
        if (https_post(&c->url, headers, n + 1, form, limit_usec, reply, &why) >= 0)
                return VERDICT_GOOD;
        free(c->why);
        c->why = why;
        c->advice = "Check the way to the EC2 API: NAT gateway or VPC endpoint, security groups, HTTPS_PROXY "
                    "and NO_PROXY";
        return VERDICT_AGAIN;
}

/* ---- what EC2 says ---- */
/* Signs with EC2's time from now on, where that can be why it refused. */
static bool correct_clock(Call *c, const HttpsReply *reply) {
        int64_t ahead = reply->date - (int64_t)time(NULL), wrong = ahead - session.clock_ahead;
        if (c->clock_corrected || reply->date == 0 || (wrong < CLOCK_SKEW && wrong > -CLOCK_SKEW))
                return false;
        c->clock_corrected = true;
        session.clock_ahead = ahead;
        log_warning("The clock of this machine is %lld s %s EC2's; requests are signed with EC2's time. Look "
                    "at chrony.",
                    (long long)(ahead < 0 ? -ahead : ahead), ahead < 0 ? "ahead of" : "behind");
        return true;
}

static int get_credentials(const Call *c, Credentials *ret, Diag *diag) {
        return credentials_get(c->ec2->imds, c->region, now_usec() + CREDENTIALS_USEC, ret, diag);
}

static bool renew_credentials(Call *c, Diag *diag) {
        Credentials fresh = {};
        if (c->credentials_renewed || get_credentials(c, &fresh, diag) < 0)
                return false;
        c->credentials_renewed = true;
        credentials_done(&session.credentials);
        session.credentials = fresh;
        log_info("EC2 says that the credentials have expired; fetched them again.");
        return true;
}

static void report_refusal(const Call *c, RefusalKind kind, const HttpsReply *reply, const char *code,
                           Diag *diag) {
        _cleanup_(freep) char *id = refusal_word(&reply->body, "Response/RequestID"), *advice = NULL;
        _cleanup_(freep) char *clock = refusal_clock("EC2", reply->date);
        if (kind == REFUSAL_UNAUTHORIZED)
                advice = xasprintf("the role of this instance lacks the permission ec2:%s "
                                   "(AmazonEKSWorkerNodePolicy has it), or a "
                                   "service control policy or the policy of the VPC endpoint denies it",
                                   c->action);
        else if (kind == REFUSAL_EXPIRED)
                advice = xstrdup("the credentials have expired, also after they were fetched again");
        else if (kind == REFUSAL_SIGNATURE)
                advice = xasprintf("it does not accept the credentials or the signature; %s", clock);
        else
                advice = xstrdup("it will not help to ask again");
        diag_error(diag, -EACCES, CAUSE_EC2, "EC2 at %s refused %s: %s (HTTP %ld, request %s): %s",
                   c->url.authority, c->action, code, reply->status, id ?: "without id", advice);
}

static Verdict judge_error(Call *c, const HttpsReply *reply, Diag *diag) {
        _cleanup_(freep) char *code = refusal_word(&reply->body, "Response/Errors/Error/Code");
        RefusalKind kind = code ? refusal_kind(code) : REFUSAL_TEMPORARY;

        free(c->why);
        c->why = reply->status >= 300 && reply->status < 400
                         ? xasprintf("HTTP %ld, a redirect, which is never followed: something else than EC2 "
                                     "answers there",
                                     reply->status)
                         : xasprintf("%s (HTTP %ld)", code ?: "an answer that is not EC2's", reply->status);
        c->advice = code ? "EC2 says so itself and may answer later"
                         : "Something between here and EC2 answers in its place: look at HTTPS_PROXY, "
                           "NO_PROXY, AWS_ENDPOINT_URL and the VPC endpoint";
        /* Only EC2's own word is final: a proxy, or a load balancer in its way, may think better of it. */
        if (kind == REFUSAL_TEMPORARY || reply->status >= 500)
                return VERDICT_AGAIN;
        if ((kind == REFUSAL_SIGNATURE || kind == REFUSAL_EXPIRED) && correct_clock(c, reply))
                return VERDICT_AGAIN_AT_ONCE;
        if (kind == REFUSAL_EXPIRED && renew_credentials(c, diag))
                return VERDICT_AGAIN_AT_ONCE;
        report_refusal(c, kind, reply, code, diag);
        return VERDICT_FINAL;
}

static Verdict attempt(Call *c, const char *form, uint64_t left_usec, Diag *diag) {
        HttpsReply reply = {};
        /* The last attempt, at the end of the time, gets a second too. */
        Verdict v = perform(c, form, MIN(MAX(left_usec, USEC_PER_SEC), ATTEMPT_USEC), &reply);
        if (v == VERDICT_GOOD && reply.status != 200)
                v = judge_error(c, &reply, diag);
        else if (v == VERDICT_GOOD) {
                int r = reply.body.size > 0 ? c->accept(&reply.body, c->ret) : -EBADMSG;
                if (r <= 0) {
                        free(c->why);
                        c->why = xstrdup(r < 0 ? "an answer that is not EC2's XML" : c->missing);
                        c->advice = r < 0 ? "Something between here and EC2 answers in its place: look at "
                                            "HTTPS_PROXY, NO_PROXY and AWS_ENDPOINT_URL"
                                          : c->missing_advice;
                        v = VERDICT_AGAIN;
                }
        }
        text_done(&reply.body);
        return v;
}

/* ---- a call ---- */
static int find_endpoint(Call *c, Diag *diag) {
        const char *variable = "AWS_ENDPOINT_URL_EC2", *url = getenv(variable),
                   *region = getenv("AWS_REGION");
        if (!url || !*url)
                url = getenv(variable = "AWS_ENDPOINT_URL");
        c->region = region && *region ? region : c->ec2->region;
        _cleanup_(freep) char *regional = xasprintf("https://ec2.%s.%s", c->region, c->ec2->domain);
        bool given = url && *url;
        if (url_parse(given ? url : regional, &c->url) < 0)
                return diag_error(diag, -EINVAL, CAUSE_EC2,
                                  "%s is not of the form http[s]://HOST[:PORT][/PATH]",
                                  given ? variable : "the endpoint of EC2, made of region and domain,");
        return 0;
}

static unsigned max_attempts(unsigned limit) {
        const char *text = getenv("AWS_MAX_ATTEMPTS");
        uint64_t n = 0;
        if (text && *text && parse_u64(text, &n) < 0)
                log_warning("AWS_MAX_ATTEMPTS in the environment is not a number; there is no limit to the "
                            "attempts but the time.");
        if (n == 0)
                n = UINT_MAX;           /* as the SDKs read it: no limit but the time */
        return (unsigned)MIN(n, limit);
}

static int report_exhaustion(const Call *c, unsigned attempts, uint64_t usec, Diag *diag) {
        return diag_error(diag, -ETIMEDOUT, CAUSE_EC2,
                          "no usable answer from EC2 at %s to %s, %u requests in %.1f s; the last one: %s. "
                          "%s; with %s EC2 is not asked",
                          c->url.authority, c->action, attempts, (double)usec / USEC_PER_SEC, c->why,
                          c->advice, c->instead);
}

static int report_stop(const Call *c, Diag *diag) {
        return diag_error(diag, -EINTR, CAUSE_INTERRUPTED,
                          "stopped by %s while asking EC2 at %s for %s; nothing was changed",
                          stop_name(stop_signal()), c->url.authority, c->action);
}

static int call_until(Call *c, const char *form, Diag *diag) {
        uint64_t begin = now_usec(), deadline = begin + c->total_usec;
        for (unsigned n = 1, failures = 0;; n++) {
                uint64_t now = now_usec();
                Verdict v = attempt(c, form, deadline > now ? deadline - now : 0, diag);
                if (v == VERDICT_GOOD)
                        return 0;
                if (v == VERDICT_FINAL)
                        return -EACCES;
                if (stop_signal())
                        return report_stop(c, diag);
                now = now_usec();
                if (n >= c->attempts || now >= deadline)
                        return report_exhaustion(c, n, now - begin, diag);
                if (v == VERDICT_AGAIN_AT_ONCE)
                        continue;
                log_line(failures == 0 ? LOG_INFO : LOG_DEBUG, "EC2, %s: %s; trying again.", c->action,
                         c->why);
                uint64_t pause =
                        backoff_usec(failures++, ec2_retry_policy.base_usec, ec2_retry_policy.cap_usec);
                sleep_usec(MIN(pause, deadline - now));
                if (stop_signal())
                        return report_stop(c, diag);
        }
}

static int call(Call *c, Diag *diag) {
        _cleanup_(freep) char *form = xasprintf("Action=%s&%s&Version=" API_VERSION, c->action, c->form);
        int r = find_endpoint(c, diag);
        if (r >= 0 && !session.credentials.key_id)
                r = get_credentials(c, &session.credentials, diag);
        if (r >= 0)
                r = https_load(CAUSE_EC2, diag);
        if (r >= 0)
                r = call_until(c, form, diag);
        url_done(&c->url);
        free(c->why);
        return r;
}

/* What goes into the form needs no encoding, or is not what it should be. */
static bool is_word(const char *s) {
        return *s && !s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")];
}

#define PRIVATE_NAME "DescribeInstancesResponse/reservationSet/item/instancesSet/item/privateDnsName"

static int accept_name(const Text *body, void *ret) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = xml_texts(body->data, body->size, PRIVATE_NAME, &names);
        if (r < 0 || !names || !is_word(names[0]))      /* it will be a flag of kubelet's */
                return r;
        *(char **)ret = xstrdup(names[0]);
        return 1;
}

int ec2_private_dns_name(const Ec2 *ec2, const char *instance_id, char **ret, Diag *diag) {
        _cleanup_(freep) char *form = xasprintf("InstanceId.1=%s", instance_id);
        Call c = {
                .ec2 = ec2,
                .action = "DescribeInstances",
                .form = form,
                .attempts = max_attempts(ec2_retry_policy.attempts),
                .total_usec = ec2_retry_policy.total_usec,
                .accept = accept_name,
                .ret = ret,
                .missing = "the instance has no private DNS name (yet)",
                .missing_advice = "Switch on enableDnsHostnames and enableDnsSupport of the VPC",
                .instead = "spec.featureGates.InstanceIdNodeName: true",
        };
        if (!is_word(instance_id))
                return diag_error(diag, -EINVAL, CAUSE_FACTS, "the instance id has characters that none has");
        return call(&c, diag);
}

#define NETWORK_INFO "DescribeInstanceTypesResponse/instanceTypeSet/item/networkInfo/"

static int numbers_at(const Text *body, const char *path, uint64_t **ret, size_t *ret_n) {
        _cleanup_(strv_freep) char **found = NULL;
        int r = xml_texts(body->data, body->size, path, &found);
        if (r < 0)
                return r;
        *ret_n = strv_length(found);
        *ret = xcalloc(*ret_n, sizeof **ret);
        for (size_t i = 0; i < *ret_n; i++)
                (void)!parse_u64(found[i], &(*ret)[i]);         /* 0 where it is no number */
        return 0;
}

static int accept_limits(const Text *body, void *ret) {
        _cleanup_(freep) uint64_t *addresses = NULL, *card = NULL, *indexes = NULL, *enis = NULL;
        size_t n_addresses, n_cards, n_indexes, n_enis;
        if (numbers_at(body, NETWORK_INFO "ipv4AddressesPerInterface", &addresses, &n_addresses) < 0 ||
            numbers_at(body, NETWORK_INFO "defaultNetworkCardIndex", &card, &n_cards) < 0 ||
            numbers_at(body, NETWORK_INFO "networkCards/item/networkCardIndex", &indexes, &n_indexes) < 0 ||
            numbers_at(body, NETWORK_INFO "networkCards/item/maximumNetworkInterfaces", &enis, &n_enis) < 0)
                return -EBADMSG;
        size_t i = 0;
        while (i < n_indexes && indexes[i] != (n_cards > 0 ? card[0] : 0))
                i++;
        uint64_t limits[] = { i < MIN(n_indexes, n_enis) ? enis[i] : 0, n_addresses > 0 ? addresses[0] : 0 };
        for (size_t k = 0; k < ARRAY_SIZE(limits); k++)
                if (limits[k] < 1 || limits[k] > 1000)
                        return 0;
        memcpy(ret, limits, sizeof limits);
        return 1;
}

int ec2_eni_limits(const Ec2 *ec2, const char *instance_type, unsigned *ret_enis, unsigned *ret_addresses,
                   Diag *diag) {
        _cleanup_(freep) char *form = xasprintf("InstanceType.1=%s", instance_type);
        uint64_t limits[2] = {};
        Call c = {
                .ec2 = ec2,
                .action = "DescribeInstanceTypes",
                .form = form,
                .attempts = max_attempts(LIMITS_ATTEMPTS),
                .total_usec = LIMITS_USEC,
                .accept = accept_limits,
                .ret = limits,
                .missing = "an answer without limits of network interfaces",
                .missing_advice = "Something is wrong with what answers there",
                .instead = "spec.kubelet.config.maxPods",
        };
        if (!is_word(instance_type))
                return diag_error(diag, -EINVAL, CAUSE_FACTS,
                                  "the instance type has characters that none has");
        int r = call(&c, diag);
        if (r < 0)
                return r;
        *ret_enis = (unsigned)limits[0];
        *ret_addresses = (unsigned)limits[1];
        return 0;
}
